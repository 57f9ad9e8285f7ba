"""Trains two NeuRD-CIX agents against each other in biased rock-paper-scissors.

Rock beats scissors for 2, so the equilibrium is rock 1/4, paper 1/2, scissors 1/4. Prints NashConv as it
falls; writes config.json, metrics.csv and curve.png into --output_dir; ends with one line of JSON.

    python run_scripts/train_matrix_game.py --learner=spg
    python run_scripts/train_matrix_game.py --learner=neurd_cix --exploration=0 --magnet_strength=0
"""

import json

from pohp_neurd.experiment import command_line, configs, matrix_config

command_line.define(matrix_config.Config)
command_line.define(configs.Folder, output_dir="runs/matrix_game")


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    config, folder = command_line.config(matrix_config.Config), command_line.config(configs.Folder)
    from pohp_neurd.experiment import matrix_self_play

    print(json.dumps(matrix_self_play.run(config, folder.output_dir, overwrite=folder.overwrite)))


if __name__ == "__main__":
    command_line.run(main, __doc__)
