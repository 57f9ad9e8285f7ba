"""`NeuRDCIXSolver(game)`, exact updates of all players, against C++ CFR and CFR+."""

import os

# One core for every side: set before JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import time  # noqa: E402

import pyspiel  # noqa: E402

from pohp_neurd import exact, openspiel  # noqa: E402


def seconds(act):
    """Of CPU: other work on the machine does not count."""
    start = time.process_time()
    act()
    return time.process_time() - start


def compare(name, count, repeats, bar, iterations):
    """Prints the ratio an iteration, then the ratios to the NashConv of both after some `iterations`."""
    game = pyspiel.load_game(name)
    tree = openspiel.compile_game(game)
    cfr, solver = pyspiel.CFRSolver(game), openspiel.NeuRDCIXSolver(tree)
    solver.evaluate_and_update_policy(count)  # compiles
    ours = theirs = float("inf")
    for _ in range(repeats):
        ours = min(ours, seconds(lambda: solver.evaluate_and_update_policy(count)) / count)
        theirs = min(theirs, seconds(cfr.evaluate_and_update_policy))
    print(
        f"{name}: {ours * 1e3:.4f} ms an iteration, CFRSolver {theirs * 1e3:.2f} ms: {theirs / ours:.0f}x "
        f"(bar {bar}x)"
    )

    for peer in (pyspiel.CFRSolver, pyspiel.CFRPlusSolver):
        to_equal_nash_conv(game, tree, peer, count, iterations)


def to_equal_nash_conv(game, tree, peer, count, iterations):
    cfr, spent, done = peer(game), 0.0, 0
    for made in (iterations // 10, iterations):
        spent += seconds(lambda more=made - done: [cfr.evaluate_and_update_policy() for _ in range(more)])
        done = made
        target = exact.nash_conv(tree, openspiel.table_of(tree, cfr.average_policy()))
        print(
            f"  to the NashConv of {made:,} iterations of {peer.__name__}, {target:.4f} after {spent:.2f} s:"
        )
        took, updates, reached = until(tree, count, target, 3 * spent)
        verdict = f"{spent / took:.1f}x" if reached <= target else "not there in three times that"
        print(f"    NeuRDCIXSolver: {reached:.4f} after {updates:,} iterations, {took:.2f} s: {verdict}")


def until(tree, count, target, limit):
    """Seconds of training (the evaluations between are not counted), iterations, NashConv of the average."""
    solver = openspiel.NeuRDCIXSolver(tree)
    solver.evaluate_and_update_policy(
        count
    )  # compiles: its updates are counted at the price of the next call
    spent, reached = 0.0, float("inf")
    while reached > target and spent <= limit:
        took = seconds(lambda: solver.evaluate_and_update_policy(count))
        spent += took if spent else 2 * took
        reached = solver.nash_conv()
    return spent, solver.updates, reached


def main():
    compare("kuhn_poker", 1000, 50, 1, 10_000)
    compare("leduc_poker", 200, 60, 30, 1_000)
    compare("liars_dice", 10, 25, 10, 50)


if __name__ == "__main__":
    main()
