"""Episodes a second in an `rl_environment` loop: our agents, OpenSpiel's JAX policy gradient, and none.

One loop for all sides, on one core, in turns: only the player to move is stepped, and all at the end. "None"
draws legal actions at random: the speed of the environment, which no agent can pass. OpenSpiel's agent needs
packages that this project does not ship.
"""

import os

# One core, and before JAX starts: all sides get the same.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import random
import time

from open_spiel.python import rl_agent, rl_environment

from pohp_neurd import openspiel

try:
    from open_spiel.python.jax import policy_gradient
except ImportError:
    policy_gradient = None

GAMES = ("kuhn_poker", "leduc_poker")
EPISODES, REPEATS, WARM_UP = {"ours": 2_000, "OpenSpiel": 300, "none": 2_000}, 5, 200


class Random(rl_agent.AbstractAgent):
    """Any legal action."""

    def __init__(self, player_id: int) -> None:
        self.player_id = player_id

    def step(self, time_step, is_evaluation=False):
        if time_step.last():
            return None
        legal = time_step.observations["legal_actions"][self.player_id]
        return rl_agent.StepOutput(legal[int(random.random() * len(legal))], None)


def play(env: rl_environment.Environment, agents: list, episodes: int) -> float:
    start = time.perf_counter()
    for _ in range(episodes):
        time_step = env.reset()
        while not time_step.last():
            output = agents[time_step.observations["current_player"]].step(time_step)
            time_step = env.step([output.action])
        for agent in agents:
            agent.step(time_step)
    return episodes / (time.perf_counter() - start)


def measure(game: str) -> dict[str, float]:
    env = rl_environment.Environment(game)
    env.seed(0)
    sizes = env.observation_spec()["info_state"][0], env.action_spec()["num_actions"]
    sides = {
        "ours": [openspiel.NeuRDCIX(player, *sizes, seed=player) for player in range(2)],
        "none": [Random(player) for player in range(2)],
    }
    if policy_gradient is not None:
        sides["OpenSpiel"] = [policy_gradient.PolicyGradient(player, *sizes) for player in range(2)]
    for agents in sides.values():
        play(env, agents, WARM_UP)  # compilation
    speeds = dict.fromkeys(sides, 0.0)
    # In turns, and the best of each: what else the machine does falls on all sides alike.
    for _ in range(REPEATS):
        for name, agents in sides.items():
            speeds[name] = max(speeds[name], play(env, agents, EPISODES[name]))
    return speeds


def main() -> None:
    for game in GAMES:
        speeds = measure(game)
        line = f"{game}: {speeds['ours']:,.0f} episodes/s"
        if "OpenSpiel" in speeds:
            ratio = speeds["ours"] / speeds["OpenSpiel"]
            line += f", OpenSpiel's JAX policy gradient {speeds['OpenSpiel']:,.0f}: {ratio:.1f}x (bar 3x)"
        share = speeds["ours"] / speeds["none"]
        print(f"{line}; the environment alone {speeds['none']:,.0f}: we reach {share:.0%} of it")
    if policy_gradient is None:
        print(
            "OpenSpiel's side is missing: install chex, flax, rlax, distrax and tfp-nightly beside this "
            "package in an environment of its own, and run this file there."
        )


if __name__ == "__main__":
    main()
