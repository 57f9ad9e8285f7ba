"""A full-width update of all players with its average policy, against one iteration of C++ CFR."""

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


def compare(name, count, repeats, bar):
    game = pyspiel.load_game(name)
    tree = openspiel.compile_game(game)
    solver = pyspiel.CFRSolver(game)
    solver.evaluate_and_update_policy()
    with jax.enable_x64(True):
        form = exact.sequence_form_of(tree)
        state = train(form, full_width.init(form, jnp.float64), count)  # compiles
        ours = theirs = float("inf")
        for _ in range(repeats):
            start = time.perf_counter()
            state = jax.block_until_ready(train(form, state, count))
            ours = min(ours, (time.perf_counter() - start) / count)
            start = time.perf_counter()
            solver.evaluate_and_update_policy()
            theirs = min(theirs, time.perf_counter() - start)
        average = np.asarray(full_width.average_policy(form, jnp.asarray(tree.legal), state))
    print(
        f"{name}: {ours * 1e3:.4f} ms an iteration, CFRSolver {theirs * 1e3:.2f} ms: {theirs / ours:.0f}x "
        f"(bar {bar}x); NashConv of the average after {int(state.iterations)} iterations "
        f"{exact.nash_conv(tree, average):.4f}"
    )


def main():
    compare("kuhn_poker", 1000, 20, 1)
    compare("leduc_poker", 200, 10, 30)
    compare("liars_dice", 10, 5, 60)


if __name__ == "__main__":
    main()
