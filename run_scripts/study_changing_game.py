"""Studies what exploration does when the game changes: rock-paper-scissors whose bias jumps.

SPG, NeuRD and NeuRD-CIX learn in self-play, and against an opponent that lags behind the jumps; step sizes
are chosen on seeds of their own. Prints a row for each setting, the mean over seeds with its 95% interval;
writes NAME.csv (a row for each run), NAME_summary.csv, NAME_step_sizes.csv, NAME_curves.csv, NAME.json and
pictures into --output_dir.

    python run_scripts/study_changing_game.py --output_dir=runs/changing_game
    python run_scripts/study_changing_game.py --jump_every=200 --cycles=20 --name=fast
"""

import sys

import command_line
from absl import flags

from pohp_neurd.experiment import changing_game_config

TOPICS = {
    "The game": {
        "bias": "How many times the favoured win counts.",
        "jump_every": "Updates between two jumps; a multiple of 20.",
        "cycles": "How often the three phases are gone through.",
        "batch_size": "Games of one update.",
    },
    "The learners": {
        "decay_start": "Decreasing exploration falls as 1 / sqrt(1 + t / decay_start) at update t.",
        "magnet_speed": "How far the magnet moves to the policy in an update.",
        "baseline_speed": "How far the running mean of returns moves in an update.",
    },
    "Seeds": {
        "seeds": "Reported seeds, a multiple of --tuning_seeds.",
        "tuning_seeds": "Seeds after those, on which step sizes are chosen.",
        "seed": "The first seed.",
    },
}

command_line.define(changing_game_config.Config, TOPICS)
_FILES = {
    "output_dir": ("runs/changing_game", "The folder for tables and picture."),
    "name": ("rock_paper_scissors", "What their names begin with."),
}
for _name, (_default, _meaning) in _FILES.items():
    flags.DEFINE_string(_name, _default, _meaning)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config, runs the study and prints its summary."""
    config = command_line.config(changing_game_config.Config, TOPICS)
    from pohp_neurd.experiment import changing_game_study

    rows = changing_game_study.run(config, flags.FLAGS.output_dir, flags.FLAGS.name)
    for row in rows:
        if row["merit"] == "tracking":
            print(changing_game_study.line(row))


if __name__ == "__main__":
    shown = {name: meaning for name, (_, meaning) in _FILES.items()}
    command_line.run(main, str(sys.modules["__main__"].__doc__), TOPICS | {"Files": shown}, {})
