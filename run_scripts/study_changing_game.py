"""Studies what exploration does when the game changes: rock-paper-scissors whose bias jumps.

SPG, NeuRD and NeuRD-CIX learn in self-play, and against an opponent that lags behind the jumps; step sizes
are chosen on seeds of their own. Prints a row for each setting, the mean over seeds with its 95% interval;
writes NAME.csv (a row for each run), NAME_summary.csv, NAME_step_sizes.csv, NAME_curves.csv, NAME.json and
pictures into --output_dir.

    python run_scripts/study_changing_game.py --output_dir=runs/changing_game
    python run_scripts/study_changing_game.py --jump_every=200 --cycles=20 --name=fast
"""

import dataclasses

from pohp_neurd.experiment import changing_game_config, command_line, schema


@dataclasses.dataclass(frozen=True)
class Files:
    """Where tables and picture go."""

    output_dir: str = schema.field("runs/changing_game", "The folder for tables and picture.", "Files")
    name: str = schema.field("rock_paper_scissors", "What their names begin with.", "Files")


command_line.define(changing_game_config.Config)
command_line.define(Files)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config, runs the study and prints its summary."""
    config, place = command_line.config(changing_game_config.Config), command_line.config(Files)
    from pohp_neurd.experiment import changing_game_study

    for row in changing_game_study.run(config, place.output_dir, place.name):
        if row["merit"] == "tracking":
            print(changing_game_study.line(row))


if __name__ == "__main__":
    command_line.run(main, __doc__)
