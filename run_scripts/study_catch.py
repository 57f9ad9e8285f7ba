"""Shows what became of the agents of a catch run: policy, torso and critic, on every board there is.

    python run_scripts/study_catch.py --run=runs/catch

Prints a row for every seed as CSV; see `pohp_neurd/experiment/catch_study.py` for the columns.
"""

import csv
import dataclasses
import pathlib
import sys

from pohp_neurd.experiment import command_line, schema


@dataclasses.dataclass(frozen=True)
class Config:
    """Which run is studied."""

    run: str | None = schema.field(
        None, "The folder of a run of train_single_agent.py in catch.", "What", shown="none, it must be given"
    )

    def __post_init__(self) -> None:
        if not self.run:
            raise ValueError("run must be given: the folder of a run in catch.")
        if not pathlib.Path(self.run).is_dir():
            raise ValueError(f"{self.run} is not the folder of a run.")


command_line.define(Config)


@command_line.told
def main(_: list[str]) -> None:
    """Reads the run and prints the study."""
    config = command_line.config(Config)
    from pohp_neurd.experiment import catch_study

    writer = csv.DictWriter(sys.stdout, catch_study.COLUMNS, lineterminator="\n")
    rows = catch_study.study(config.run)
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    command_line.run(main, __doc__)
