"""Trains a policy profile by self-play in an OpenSpiel game, with NashConv in the loop.

    python run_scripts/train_game.py --game=leduc_poker
    python run_scripts/train_game.py --game=leduc_poker --policy=neural --output_dir=runs/leduc_neural
    python run_scripts/train_game.py --game="kuhn_poker(players=3)" --update=expected --output_dir=runs/kuhn3
    python run_scripts/train_game.py --game=phantom_ttt --update=expected --output_dir=runs/phantom
    python run_scripts/train_game.py --game="dark_hex(board_size=4)" --policy=neural --output_dir=runs/hex

Writes config.json, metrics.csv, checkpoints/ and curve.png into --output_dir, and ends with one line of JSON.
Ctrl-C saves a checkpoint; the same command with --resume goes on from it.
"""

import dataclasses
import functools
import json
import sys

from pohp_neurd.experiment import command_line, configs, game_config

command_line.define(game_config.Config)
command_line.define(game_config.Actors)
command_line.define(configs.Folder, output_dir="runs/game")
command_line.define(configs.Events)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    config = command_line.config(game_config.Config)
    folder = dataclasses.asdict(command_line.config(configs.Folder))
    events = dataclasses.asdict(command_line.config(configs.Events))
    where = command_line.config(game_config.Actors)
    command_line.opening(
        f"Training by self-play in {config.game}: loading and compiling take some seconds, then it counts"
    )
    from pohp_neurd.experiment import game

    given = command_line.given(game_config.Config)
    tell = functools.partial(print, file=sys.stderr)
    path = folder.pop("output_dir")
    figures = game.run(config, path, given=given, where=where, tell=tell, **folder, **events)
    command_line.closing(f"All files are in {path}. Next: `pohp-neurd report --checkpoint={path}`.")
    print(f"{'Return' if figures['nash_conv'] is None else 'NashConv'} over time: {figures['curve']}")
    print(json.dumps(figures))


if __name__ == "__main__":
    command_line.run(main, __doc__)
