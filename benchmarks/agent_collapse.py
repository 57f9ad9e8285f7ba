"""Biased rock-paper-scissors (matrix_brps): who keeps near the equilibrium, and who runs into a corner?

Two agents of a kind play each other in OpenSpiel's `rl_environment`. Printed at powers of two: the distance
of the worse policy to the equilibrium (1/16, 10/16, 5/16), in total variation, and the smallest probability
in the two policies. Uniform play has a distance of 0.29; the corner of paper has 0.38.
"""

import sys

import numpy as np
from open_spiel.python import rl_environment

from pohp_neurd import openspiel

try:
    from open_spiel.python.jax import policy_gradient
except ImportError:
    policy_gradient = None

EPISODES = 32_768
EQUILIBRIUM = np.array([1, 10, 5]) / 16


def run(env: rl_environment.Environment, agents: list) -> list[str]:
    shown = []
    for episode in range(1, EPISODES + 1):
        time_step = env.reset()
        while not time_step.last():
            time_step = env.step([agent.step(time_step).action for agent in agents])
        for agent in agents:
            agent.step(time_step)
        if episode >= 1024 and episode & (episode - 1) == 0:
            start = env.reset()
            policies = [np.asarray(agent.step(start, is_evaluation=True).probs) for agent in agents]
            distance = max(np.abs(policy - EQUILIBRIUM).sum() / 2 for policy in policies)
            shown.append(f"{distance:.2f} ({min(policy.min() for policy in policies):.3f})")
    return shown


def main() -> None:
    env = rl_environment.Environment("matrix_brps")
    sizes = env.observation_spec()["info_state"][0], env.action_spec()["num_actions"]
    sides = {
        f"NeuRD-CIX, {network}": [openspiel.NeuRDCIX(p, *sizes, network=network, seed=p) for p in range(2)]
        for network in ("mlp", "table")
    }
    if policy_gradient is None:
        print("OpenSpiel's agents are missing: see benchmarks/agent.py for how to get them.", file=sys.stderr)
    else:
        for loss in ("a2c", "rpg", "qpg"):
            sides[f"OpenSpiel, {loss}"] = [
                policy_gradient.PolicyGradient(p, *sizes, loss_str=loss, seed=p) for p in range(2)
            ]
    print(f"{'episodes':18}", *(f"{2**power:>13,}" for power in range(10, 16)))
    for name, agents in sides.items():
        env.seed(0)
        print(f"{name:18}", *(f"{text:>13}" for text in run(env, agents)), flush=True)


if __name__ == "__main__":
    main()
