"""Trains two NeuRD-CIX agents against each other in biased rock-paper-scissors.

Rock beats scissors for 2, so the equilibrium is rock 1/4, paper 1/2, scissors 1/4. Prints NashConv as it
falls; writes config.json, metrics.csv and curve.png into --output_dir; ends with one line of JSON.

    python run_scripts/train_matrix_game.py --learner=spg
    python run_scripts/train_matrix_game.py --learner=neurd_cix --exploration=0 --magnet_strength=0
"""

import json

import command_line
from absl import flags

from pohp_neurd.experiment import matrix_config

TOPICS = {
    "What is trained": {
        "learner": "spg, neurd or neurd_cix.",
        "exploration": "η of NeuRD-CIX, in [0, 1].",
        "step_size": "α, of every update.",
        "magnet_strength": "Pull to a slowly moving policy.",
        "magnet_speed": "How fast that policy follows, in [0, 1].",
        "batch_size": "Episodes of one update.",
        "episodes": "Episodes in all.",
        "seed": "The seed of everything random.",
    }
}
command_line.define(matrix_config.Config, TOPICS)
command_line.define_run("runs/matrix_game", command_line.OVERWRITE)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    config = command_line.config(matrix_config.Config, TOPICS)
    from pohp_neurd.experiment import matrix_self_play

    figures = matrix_self_play.run(config, flags.FLAGS.output_dir, overwrite=flags.FLAGS.overwrite)
    print(json.dumps(figures))


if __name__ == "__main__":
    command_line.run(main, __doc__, {**TOPICS, "The run": command_line.OVERWRITE}, {})
