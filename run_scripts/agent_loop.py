"""Two NeuRD-CIX agents in a plain OpenSpiel loop, on Kuhn poker or any other game with turns.

Prints NashConv of their joint policy as it falls, and ends with one line of JSON. --checkpoint_dir keeps the
agents: run it again with the same folder and training goes on from there.

    python run_scripts/agent_loop.py --network=table
    python run_scripts/agent_loop.py --game=leduc_poker --learner=spg --episodes=50000
"""

import json
import sys

import tqdm
from absl import app, flags, logging
from open_spiel.python import rl_environment

from pohp_neurd import openspiel

_GAME = flags.DEFINE_string("game", "kuhn_poker", "An OpenSpiel game, small enough for exact NashConv.")
_LEARNER = flags.DEFINE_enum("learner", "neurd_cix", ["spg", "neurd", "neurd_cix"], "The algorithm.")
_EXPLORATION = flags.DEFINE_float("exploration", 0.1, "η of NeuRD-CIX, in [0, 1].")
_NETWORK = flags.DEFINE_enum("network", "mlp", ["mlp", "table"], "What holds the policy.")
_BATCH = flags.DEFINE_integer("batch_size", 32, "Episodes of one update.")
_EPISODES = flags.DEFINE_integer("episodes", 20_000, "Episodes in all.", lower_bound=1)
_REPORTS = flags.DEFINE_integer("reports", 10, "How often NashConv is printed.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "The seed of the agents and of chance.")
_CHECKPOINTS = flags.DEFINE_string("checkpoint_dir", None, "Agents are restored from here, and saved.")


def main(_: list[str]) -> None:
    """Trains, reports, saves."""
    logging.set_verbosity(logging.WARNING)
    try:
        tree = openspiel.compile_game(_GAME.value)
        game = openspiel.load_game(_GAME.value)
        sizes = game.information_state_tensor_size(), game.num_distinct_actions()
        settings = {
            "learner": _LEARNER.value,
            "exploration": _EXPLORATION.value,
            "network": _NETWORK.value,
            "batch_size": _BATCH.value,
        }
        agents = [
            openspiel.NeuRDCIX(player, *sizes, seed=_SEED.value * game.num_players() + player, **settings)
            for player in range(game.num_players())
        ]
        for agent in agents:
            if _CHECKPOINTS.value and agent.has_checkpoint(_CHECKPOINTS.value):
                agent.restore(_CHECKPOINTS.value)
    except ValueError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    env = rl_environment.Environment(game)
    env.seed(_SEED.value)
    joint = openspiel.JointPolicy(game, agents, use_observation=False)
    every = max(1, _EPISODES.value // _REPORTS.value)
    for episode in tqdm.tqdm(range(1, _EPISODES.value + 1), disable=None, leave=False):
        time_step = env.reset()
        while not time_step.last():
            output = agents[time_step.observations["current_player"]].step(time_step)
            time_step = env.step([output.action])
        for agent in agents:
            agent.step(time_step)
        if episode % every == 0:
            print(f"{episode:8,} episodes   NashConv {openspiel.nash_conv(tree, joint.to_tabular()):.4f}")
    if _CHECKPOINTS.value:
        for agent in agents:
            agent.save(_CHECKPOINTS.value)
    nash_conv = float(openspiel.nash_conv(tree, joint.to_tabular()))
    print(json.dumps({"episodes": agents[0].episode_counter, "nash_conv": nash_conv}))


if __name__ == "__main__":
    app.run(main)
