"""Draws runs of train_single_agent.py on one picture: every seed thin, their mean thick.

    python run_scripts/plot_learning_curves.py --title="Catch" --output=catch.png \
        "SPG=runs/catch_spg/metrics.csv" "NeuRD-CIX(1)=runs/catch_neurd_cix/metrics.csv"

A file with several explorations is narrowed to one by "name=file@exploration".
"""

import sys

from absl import app, flags

from pohp_neurd.experiment import single_agent
from pohp_neurd.experiment.plot import learning_curve

_TITLE = flags.DEFINE_string("title", "", "Above the picture.")
_OUTPUT = flags.DEFINE_string("output", None, "The picture, PNG.", required=True)


def main(arguments: list[str]) -> None:
    """Reads the files that are named and draws them."""
    try:
        runs = {}
        for argument in arguments[1:]:
            name, found, source = argument.partition("=")
            if not found:
                raise ValueError(f"runs are given as name=file, but one is {argument!r}.")
            file, _, exploration = source.partition("@")
            rows = single_agent.read_rows(file)
            runs[name] = [r for r in rows if not exploration or r["exploration"] == float(exploration)]
            if not runs[name]:
                raise ValueError(f"{source} has no rows.")
        if not runs:
            raise ValueError("there is nothing to draw: give at least one name=file.")
        learning_curve.compare(_OUTPUT.value, runs, title=_TITLE.value)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    app.run(main)
