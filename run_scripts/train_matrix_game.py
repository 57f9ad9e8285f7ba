"""Trains two NeuRD-CIX agents against each other in biased rock-paper-scissors.

Rock beats scissors for 2, so the equilibrium is rock 1/4, paper 1/2, scissors 1/4. Prints NashConv as it
falls; writes config.json, metrics.csv and curve.png into --output_dir; ends with one line of JSON.

    python run_scripts/train_matrix_game.py --learner=spg
    python run_scripts/train_matrix_game.py --learner=neurd_cix --exploration=0 --magnet_strength=0
"""

import json
import sys

from absl import app, flags, logging

from pohp_neurd import checks
from pohp_neurd.experiment import matrix_self_play

_DEFAULTS = matrix_self_play.Config()

_LEARNER = flags.DEFINE_enum("learner", _DEFAULTS.learner, ["spg", "neurd", "neurd_cix"], "The algorithm.")
_EXPLORATION = flags.DEFINE_float("exploration", _DEFAULTS.exploration, "η of NeuRD-CIX, in [0, 1].")
_STEP_SIZE = flags.DEFINE_float("step_size", _DEFAULTS.step_size, "α, of every update.")
_STRENGTH = flags.DEFINE_float(
    "magnet_strength", _DEFAULTS.magnet_strength, "Pull to a slowly moving policy."
)
_SPEED = flags.DEFINE_float(
    "magnet_speed", _DEFAULTS.magnet_speed, "How fast that policy follows, in [0, 1]."
)
_BATCH = flags.DEFINE_integer("batch_size", _DEFAULTS.batch_size, "Episodes of one update.")
_EPISODES = flags.DEFINE_integer("episodes", _DEFAULTS.episodes, "Episodes in all.")
_SEED = flags.DEFINE_integer("seed", _DEFAULTS.seed, "The seed of everything random.")
_OUTPUT = flags.DEFINE_string("output_dir", "runs/matrix_game", "The folder of the run.")
_OVERWRITE = flags.DEFINE_bool("overwrite", False, "Throw away the run that is in --output_dir.")


def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    try:
        config = matrix_self_play.Config(
            learner=_LEARNER.value,
            exploration=_EXPLORATION.value,
            step_size=_STEP_SIZE.value,
            magnet_strength=_STRENGTH.value,
            magnet_speed=_SPEED.value,
            batch_size=_BATCH.value,
            episodes=_EPISODES.value,
            seed=_SEED.value,
        )
        figures = matrix_self_play.run(config, _OUTPUT.value, overwrite=_OVERWRITE.value)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except checks.Diverged as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    print(json.dumps(figures))


if __name__ == "__main__":
    app.run(main)
