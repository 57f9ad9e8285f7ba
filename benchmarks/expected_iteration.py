"""A full-width update of all players against C++ CFR: time of an iteration, and time to equal NashConv."""

import os

# One core for every side: set before JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import functools  # noqa: E402
import time  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pyspiel  # noqa: E402

from pohp_neurd import exact, full_width, openspiel  # noqa: E402


@functools.partial(jax.jit, static_argnames="count")
def train(form, state, count):
    def step(state, _):
        update = full_width.iteration(form, state, step_size=lambda t: 1.0, weight=lambda t: t + 1.0)
        return update, None

    return jax.lax.scan(step, state, None, length=count)[0]


def seconds(act):
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def compare(name, count, repeats, bar, iterations):
    """Prints the ratio an iteration, then to the NashConv of CFR after a tenth and after all `iterations`."""
    game = pyspiel.load_game(name)
    tree = openspiel.compile_game(game)
    cfr = pyspiel.CFRSolver(game)
    with jax.enable_x64(True):
        form = exact.sequence_form_of(tree)
        state = train(form, full_width.init(form, jnp.float64), count)  # compiles
        ours = theirs = float("inf")
        for _ in range(repeats):
            start = time.perf_counter()
            state = jax.block_until_ready(train(form, state, count))
            ours = min(ours, (time.perf_counter() - start) / count)
            theirs = min(theirs, seconds(cfr.evaluate_and_update_policy))
    print(
        f"{name}: {ours * 1e3:.4f} ms an iteration, CFRSolver {theirs * 1e3:.2f} ms: {theirs / ours:.0f}x "
        f"(bar {bar}x)"
    )

    cfr = pyspiel.CFRSolver(game)
    spent, done = 0.0, 0
    for made in (iterations // 10, iterations):
        spent += seconds(lambda more=made - done: [cfr.evaluate_and_update_policy() for _ in range(more)])
        done = made
        target = exact.nash_conv(tree, openspiel.table_of(tree, cfr.average_policy()))
        print(f"  to the NashConv of {made:,} iterations of CFRSolver, {target:.4f} after {spent:.2f} s:")
        for what, (took, updates, reached) in {
            "full-width updates": _full_width(tree, form, count, target, 3 * spent),
            "NeuRDCIXSolver, its defaults": _solver(tree, count, target, 3 * spent),
        }.items():
            verdict = f"{spent / took:.1f}x" if reached <= target else "not there in three times that"
            print(f"    {what}: {reached:.4f} after {updates:,} iterations, {took:.2f} s: {verdict}")


def _full_width(tree, form, count, target, limit):
    with jax.enable_x64(True):
        state, legal = full_width.init(form, jnp.float64), jnp.asarray(tree.legal)

        def advance():
            nonlocal state
            state = jax.block_until_ready(train(form, state, count))
            return int(state.iterations)

        return _until(
            advance,
            lambda: exact.nash_conv(tree, np.asarray(full_width.average_policy(form, legal, state))),
            target,
            limit,
        )


def _solver(tree, count, target, limit):
    solver = openspiel.NeuRDCIXSolver(tree)
    solver.evaluate_and_update_policy(count)  # compiles; a call of `count` updates that is not timed
    done = count

    def advance():
        nonlocal done
        solver.evaluate_and_update_policy(count)
        done += count
        return done

    return _until(advance, solver.nash_conv, target, limit)


def _until(advance, nash_conv, target, limit):
    """Seconds of training (the evaluations between are not counted), iterations, NashConv of the average."""
    spent = 0.0
    while True:
        start = time.perf_counter()
        made = advance()
        spent += time.perf_counter() - start
        reached = nash_conv()
        if reached <= target or spent > limit:
            return spent, made, reached


def main():
    compare("kuhn_poker", 1000, 20, 1, 10_000)
    compare("leduc_poker", 200, 10, 30, 1_000)
    compare("liars_dice", 10, 5, 60, 50)


if __name__ == "__main__":
    main()
