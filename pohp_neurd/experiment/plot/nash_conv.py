"""NashConv over episodes, of the current and of the average policy."""

from collections.abc import Mapping, Sequence
from typing import Any

from pohp_neurd.experiment import records
from pohp_neurd.experiment.plot import style


def draw(path: records.Path, rows: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draws the rows of a metrics.csv, NashConv on a logarithmic axis."""
    episodes = [float(row["episodes"]) for row in rows]
    with style.picture(path) as figure:
        axes = figure.add_subplot()
        for column, label, line in (
            ("nash_conv", "current policy", "-"),
            ("nash_conv_average", "average policy", "--"),
        ):
            axes.plot(episodes, [float(row[column]) for row in rows], line, label=label)
        axes.set(title=title, xlabel="episodes", ylabel="NashConv", yscale="log")
        axes.set_xlim(left=0)
        axes.legend()
