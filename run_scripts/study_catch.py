"""Shows what became of the agents of a catch run: policy, torso and critic, on every board there is.

    python run_scripts/study_catch.py --run=runs/catch

Prints a row for every seed as CSV; see `pohp_neurd/experiment/catch_study.py` for the columns.
"""

import csv
import sys

from absl import app, flags, logging

from pohp_neurd.experiment import catch_study

_RUN = flags.DEFINE_string(
    "run", None, "The folder of a run of train_single_agent.py in catch.", required=True
)


def main(_: list[str]) -> None:
    """Reads the run and prints the study."""
    logging.set_verbosity(logging.WARNING)
    try:
        rows = catch_study.study(_RUN.value)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    writer = csv.DictWriter(sys.stdout, catch_study.COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    app.run(main)
