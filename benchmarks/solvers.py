"""NashConv after some CPU seconds, on one core: `NeuRDCIXSolver(game, learner=...)` beside C++ solvers.

    python benchmarks/solvers.py --games leduc_poker liars_dice --seconds 1 3 10 --solvers rm_plus cfr_plus

Seconds are of training alone: compilation is listed apart, and evaluations between are not counted.
"""

import os

# One core for every side: set before JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import argparse  # noqa: E402
import time  # noqa: E402

import pyspiel  # noqa: E402

from pohp_neurd import exact, openspiel  # noqa: E402

GAMES = (
    "kuhn_poker",
    "leduc_poker",
    "liars_dice",
    "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=5,points_order=descending))",
)
THEIRS = {
    "cfr": pyspiel.CFRSolver,
    "cfr_plus": pyspiel.CFRPlusSolver,
    "es_mccfr": pyspiel.ExternalSamplingMCCFRSolver,
    "os_mccfr": pyspiel.OutcomeSamplingMCCFRSolver,
}
OURS = ("rm_plus", "predictive_rm_plus", "neurd")


def ours(tree, learner):
    """A step of many updates, NashConv of the average policy, and the CPU seconds of compilation."""
    start = time.process_time()
    solver = openspiel.NeuRDCIXSolver(tree, learner=learner)
    solver.evaluate_and_update_policy()
    return solver.evaluate_and_update_policy, solver.nash_conv, time.process_time() - start


def theirs(game, tree, kind):
    start = time.process_time()
    solver = kind(game)
    step = getattr(solver, "evaluate_and_update_policy", None) or solver.run_iteration

    def steps(count):
        for _ in range(count):
            step()

    def nash_conv():
        return exact.nash_conv(tree, openspiel.table_of(tree, solver.average_policy()))

    steps(1)
    return steps, nash_conv, time.process_time() - start


def measure(steps, nash_conv, seconds):
    """NashConv after each of `seconds`, and the milliseconds of one update."""
    spent, made, count, found = 0.0, 0, 1, []
    for limit in seconds:
        while spent < limit:
            start = time.process_time()
            steps(count)
            took = time.process_time() - start
            spent, made = spent + took, made + count
            # Calls of about a twentieth of a second, and none that would overshoot by more.
            count = max(1, int(count * min(10.0, min(0.05, max(limit - spent, 0.0)) / max(took, 1e-6))))
        found.append(nash_conv())
    return found, 1e3 * spent / made


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", nargs="+", default=GAMES)
    parser.add_argument("--seconds", nargs="+", type=float, default=(1.0, 3.0, 10.0, 30.0))
    parser.add_argument("--solvers", nargs="+", default=(*OURS, *THEIRS), choices=(*OURS, *THEIRS))
    asked = parser.parse_args()
    for name in asked.games:
        game = pyspiel.load_game(name)
        tree = openspiel.compile_game(game)
        print(name)
        print(f"  {'solver':20s}{'compiled in':>12s}{'an update':>12s}", end="")
        print("".join(f"{f'{limit:g} s':>11s}" for limit in asked.seconds))
        for solver in asked.solvers:
            made = theirs(game, tree, THEIRS[solver]) if solver in THEIRS else ours(tree, solver)
            *parts, compiling = made
            found, each = measure(*parts, asked.seconds)
            print(f"  {solver:20s}{compiling:10.1f} s{each:9.4f} ms", end="")
            print("".join(f"{value:11.2e}" for value in found), flush=True)


if __name__ == "__main__":
    main()
