"""2,000 runs of 10,000 rounds with 10 arms: the package against a plain numpy loop over rounds.

Both play Hedge with CIX on the same Bernoulli arms in float32, on one core, and both keep every arm's total
for the regret. The numpy loop is vectorised over runs; it is timed with runs first, as one would write it,
and with arms first, the layout of the package.
"""

import os

# One core, and before JAX starts: both sides get the same.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import time

import jax
import numpy as np

from pohp_neurd import bandit, directions

RUNS, ROUNDS, ARMS, REPEATS = 2_000, 10_000, 10, 3
LOSSES = [0.4] + [0.5] * (ARMS - 1)
XI = bandit.best_xi(ARMS, 0.05)


def package() -> np.ndarray:
    totals = bandit.simulate(PROBLEM, PLAYER, [ROUNDS], RUNS, key=jax.random.key(0))
    return bandit.regret.worst_regret(totals)[0]


def numpy_loop(arms_first: bool) -> np.ndarray:
    arm = 0 if arms_first else 1
    shape = (ARMS, RUNS) if arms_first else (RUNS, ARMS)
    one = (1, RUNS) if arms_first else (RUNS, 1)
    losses = np.expand_dims(np.array(LOSSES, np.float32), 1 - arm)
    random = np.random.Generator(np.random.SFC64(0))  # numpy's fastest
    scale = np.sqrt(np.log(ARMS) / ARMS)
    believed, worth = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    received = np.zeros(one, np.float32)
    for t in range(1, ROUNDS + 1):
        exploration = np.float32(min(1.0, XI / np.sqrt(ARMS * t)))
        logits = np.float32(scale / np.sqrt(t)) * believed
        policy = np.exp(logits - logits.max(axis=arm, keepdims=True))
        policy /= policy.sum(axis=arm, keepdims=True)
        utilities = -(random.random(shape, np.float32) < losses).astype(np.float32)
        passed = np.cumsum(policy, axis=arm) <= random.random(one, np.float32)
        action = np.minimum(passed.sum(axis=arm, keepdims=True), ARMS - 1)
        utility = np.take_along_axis(utilities, action, arm)
        probability = np.take_along_axis(policy, action, arm)
        estimate = utility / np.minimum(1, probability + exploration)
        np.put_along_axis(believed, action, np.take_along_axis(believed, action, arm) + estimate, arm)
        worth += utilities
        received += utility
    return (worth - received).max(axis=arm)


PROBLEM = bandit.problems.bernoulli(LOSSES)
PLAYER = bandit.reduction(
    bandit.learners.hedge(bandit.learners.anytime_step_size(ARMS, 1.0)),
    "cix",
    directions.theorem1_exploration(XI, ARMS),
)


def main() -> None:
    sides = {
        "package": package,
        "numpy, runs first": lambda: numpy_loop(False),
        "numpy, arms first": lambda: numpy_loop(True),
    }
    start = time.perf_counter()
    package()
    print(f"first call of the package, compilation included: {time.perf_counter() - start:.2f} s")
    # In turns, and the best of each: what else the machine does falls on all sides alike.
    seconds = dict.fromkeys(sides, np.inf)
    medians = {}
    for _ in range(REPEATS):
        for name, side in sides.items():
            start = time.perf_counter()
            regrets = side()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
            medians[name] = np.median(regrets)
    print(f"{RUNS:,} runs x {ROUNDS:,} rounds x {ARMS} arms, one core, best of {REPEATS}:")
    for name, taken in seconds.items():
        ratio = taken / seconds["package"]
        print(f"  {name:18} {taken:6.2f} s   {ratio:4.1f}x   median regret {medians[name]:.0f}")


if __name__ == "__main__":
    main()
