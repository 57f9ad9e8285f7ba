"""Shows what became of the agents of a catch run: policy, torso and critic, on every board there is.

    python run_scripts/study_catch.py --run=runs/catch

Prints a row for every seed as CSV; see `pohp_neurd/experiment/catch_study.py` for the columns.
"""

import csv
import pathlib
import sys

import command_line
from absl import flags

TOPICS = {"What": {"run": "The folder of a run of train_single_agent.py in catch."}}
_RUN = flags.DEFINE_string("run", None, TOPICS["What"]["run"])


@command_line.told
def main(_: list[str]) -> None:
    """Reads the run and prints the study."""
    if not _RUN.value:
        raise ValueError("run must be given: the folder of a run in catch.")
    if not pathlib.Path(_RUN.value).is_dir():
        raise ValueError(f"{_RUN.value} is not the folder of a run.")
    from pohp_neurd.experiment import catch_study

    rows = catch_study.study(_RUN.value)
    writer = csv.DictWriter(sys.stdout, catch_study.COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    command_line.run(main, __doc__, TOPICS, {"run": "none, it must be given"})
