"""Does it hurt to play with the parameters of one update before? Leduc poker played live, by exact NashConv.

    python studies/live/staleness.py > studies/live/staleness.csv

What is judged is the network, at every information state of the compiled game, not its matches.
"""

import argparse
import time

import numpy as np

from pohp_neurd import exact, openspiel, policy
from pohp_neurd.experiment import game_config, live
from pohp_neurd.openspiel.live import train

COLUMNS = "staleness,seed,episodes,nash_conv,nash_conv_average,cpu_seconds"


def run(seed: int, staleness: int, episodes: int) -> str:
    """One row of COLUMNS."""
    config = game_config.Config(
        game="leduc_poker",
        policy="neural",
        play="live",
        hidden_layers=(64, 64),
        episodes=episodes,
        seed=seed,
        staleness=staleness,
    )
    config = game_config.resolved(config, "live")
    trainer, begun = live.trainer(config), time.process_time()
    state, _ = train.advance(trainer, train.init(trainer), game_config.updates(config))
    took = time.process_time() - begun
    tree = openspiel.compile_game("leduc_poker")
    seen = np.concatenate([tree.features, np.eye(2, dtype=np.float32)[tree.state_player]], axis=1)
    found = []
    for average in (False, True):
        network = train.network(trainer, state, average=average)
        table = policy.table(network.model.apply, network.parameters, seen, tree.legal)
        found.append(exact.nash_conv(tree, np.asarray(table, np.float64)))
    return ",".join(map(str, (staleness, seed, episodes, *(round(f, 6) for f in found), round(took, 1))))


def main() -> None:
    """Prints a row for every seed with and without staleness."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=128_000)
    told = parser.parse_args()
    print(COLUMNS)
    for seed in range(told.seeds):
        for staleness in (0, 1):
            print(run(seed, staleness, told.episodes), flush=True)


if __name__ == "__main__":
    main()
