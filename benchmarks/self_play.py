"""Sampled self-play: episodes a second against OpenSpiel's own, and NashConv at the same time on the clock.

All on one core, speeds by its seconds of CPU. Ours plays, updates and averages: by default with a learnt
value of every history, then with the paper's estimator, whose baseline is a state's, in batches of 2,048. C++
`OutcomeSamplingMCCFRSolver` does the same, an episode an iteration. OpenSpiel's JAX policy gradient plays in
its `rl_environment` loop; it needs packages that this project does not ship: install chex, flax, rlax,
distrax and tfp-nightly beside this package in an environment of its own, and run this file there. For games
that are played live, see live.py.
"""

import os

# One core, and before JAX starts: all sides get the same.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import time

import jax
import numpy as np
import pyspiel
from open_spiel.python import rl_environment

from pohp_neurd import exact, openspiel
from pohp_neurd.experiment import game as runs
from pohp_neurd.experiment import game_config

try:
    from open_spiel.python.jax import policy_gradient
except ImportError:
    policy_gradient = None

REPEATS = 5


def best(speeds) -> float:
    """The best of several: what else the machine does only slows."""
    return max(speeds)


def ours(game: str, updates: int, **options) -> float:
    config, task = runs.build(game_config.Config(game=game, **options))
    state = jax.block_until_ready(task.advance(task.begin(), 1))

    def measured():
        start = time.process_time()
        jax.block_until_ready(task.advance(state, updates))
        return updates * config.batch_size / (time.process_time() - start)

    return best(measured() for _ in range(REPEATS))


def mccfr(game: str, iterations: int) -> float:
    solver = pyspiel.OutcomeSamplingMCCFRSolver(pyspiel.load_game(game))

    def measured():
        start = time.process_time()
        for _ in range(iterations):
            solver.run_iteration()
        return iterations / (time.process_time() - start)

    return best(measured() for _ in range(REPEATS))


def gradient(game: str, episodes: int) -> float | None:
    if policy_gradient is None:
        return None
    env = rl_environment.Environment(game)
    sizes = env.observation_spec()["info_state"][0], env.action_spec()["num_actions"]
    agents = [policy_gradient.PolicyGradient(player, *sizes) for player in range(2)]

    def measured(count):
        start = time.process_time()
        for _ in range(count):
            time_step = env.reset()
            while not time_step.last():
                agent = agents[time_step.observations["current_player"]]
                time_step = env.step([agent.step(time_step).action])
            for agent in agents:
                agent.step(time_step)
        return count / (time.process_time() - start)

    measured(50)  # compilation
    return best(measured(episodes) for _ in range(3))


def speed(game: str) -> None:
    table, paper = ours(game, 300), ours(game, 300, baseline_of="state", batch_size=2048)
    network = ours(game, 30, policy="neural")
    solver, agent = mccfr(game, 20_000), gradient(game, 200)
    print(
        f"{game}: table {table:,.0f} episodes/s, OutcomeSamplingMCCFRSolver {solver:,.0f} iterations/s: "
        f"{table / solver:,.0f}x (bar 10x, goal 20x); "
        f"with the paper's estimator {paper:,.0f} episodes/s: {paper / solver:,.0f}x"
    )
    if agent is None:
        print("  OpenSpiel's JAX policy gradient is not installed: see the head of this file")
    else:
        print(
            f"  OpenSpiel's JAX policy gradient {agent:,.0f} episodes/s: table {table / agent:,.0f}x "
            f"(bar 1,000x), network {network:,.0f} episodes/s {network / agent:,.0f}x (bar 500x)"
        )


def same_clock(game: str, episodes: int) -> None:
    """Ours to its end, compilation included; then MCCFR for as long."""
    start = time.perf_counter()
    config, task = runs.build(game_config.Config(game=game, episodes=episodes))
    state = task.advance(task.begin(), game_config.updates(config))
    jax.block_until_ready(state)
    seconds = time.perf_counter() - start
    (figures,) = task.evaluate(state, game_config.updates(config), [])
    solver = pyspiel.OutcomeSamplingMCCFRSolver(pyspiel.load_game(game))
    start, iterations = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(1_000):
            solver.run_iteration()
        iterations += 1_000
    tree = openspiel.compile_game(game)
    theirs = float(exact.nash_conv(tree, np.asarray(openspiel.table_of(tree, solver.average_policy()))))
    print(
        f"{game}, {seconds:.1f} s each, game and code compiled within: "
        f"NashConv {figures['nash_conv_average']:.3f} (average), "
        f"{figures['nash_conv']:.3f} (current) after {episodes:,} episodes; "
        f"OutcomeSamplingMCCFRSolver {theirs:.3f} after {iterations:,} iterations"
    )


def main() -> None:
    for game in ("kuhn_poker", "leduc_poker"):
        speed(game)
    same_clock("leduc_poker", 30_000_000)
    same_clock("liars_dice", 20_000_000)


if __name__ == "__main__":
    main()
