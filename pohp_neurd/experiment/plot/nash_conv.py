"""NashConv over episodes, of the current and of the average policy."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import ticker

from pohp_neurd.experiment import records
from pohp_neurd.experiment.plot import style


def draw(path: records.Path, rows: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draws the rows of a metrics.csv, NashConv on a logarithmic axis; of live play, returns instead."""
    unit = "episodes" if any(float(row["episodes"]) for row in rows) else "updates"
    done = [float(row[unit]) for row in rows]
    with style.picture(path) as figure:
        axes = figure.add_subplot()
        axes.set(title=title, xlabel="iterations" if unit == "updates" else unit)
        if rows[-1]["nash_conv"] == "":
            _draw_returns(axes, done, rows)
        else:
            _draw_nash_conv(axes, done, rows)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        axes.legend()


def _draw_nash_conv(axes: Any, done: list[float], rows: Sequence[Mapping[str, Any]]) -> None:
    for column, label, line in (
        ("nash_conv", "current policy", "-"),
        ("nash_conv_average", "average policy", "--"),
    ):
        axes.plot(done, [float(row[column]) for row in rows], line, label=label)
    axes.set(ylabel="NashConv", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(ticker.FuncFormatter(_sparse))


def _sparse(value: float, _: Any) -> str:
    """Labels at 2 and 5 times a power of ten: enough to read a logarithmic axis by."""
    text = f"{value:.0e}"
    return f"{value:g}" if text[0] in "25" else ""


def _draw_returns(axes: Any, done: list[float], rows: Sequence[Mapping[str, Any]]) -> None:
    means = [float(row["return_against_uniform"]) for row in rows]
    widths = [float(row["half_width"]) for row in rows]
    low, high = ([m + sign * w for m, w in zip(means, widths, strict=True)] for sign in (-1, 1))
    axes.plot(done, means, label="current policy")
    axes.fill_between(done, low, high, alpha=0.25, label="95% interval")
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set(ylabel="return against uniform play")
