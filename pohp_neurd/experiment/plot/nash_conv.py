"""NashConv over episodes, of the current and of the average policy."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import ticker

from pohp_neurd import checks
from pohp_neurd.experiment import records, summary, table
from pohp_neurd.experiment.plot import series as looks
from pohp_neurd.experiment.plot import style

_PANELS = {"nash_conv": "current policy", "nash_conv_average": "average policy"}
BANDS = ("interquartile", "bootstrap")


def draw(path: records.Path, rows: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draws the rows of a metrics.csv, NashConv on a logarithmic axis; of live play, returns instead."""
    unit = _unit(rows)
    done = [float(row[unit]) for row in rows]
    with style.picture(path) as figure:
        axes = figure.add_subplot()
        axes.set(title=title)
        if rows[-1]["nash_conv"] == "":
            _draw_returns(axes, done, rows)
        else:
            _draw_nash_conv(axes, done, rows)
        _time_axis(axes, unit)
        axes.legend()


def compare(
    path: records.Path,
    rows: Sequence[table.Row],
    *,
    series: Sequence[str] = ("exploration",),
    band: str = "interquartile",
    title: str = "",
) -> None:
    """Draws settings side by side, current policy left and average policy right, with a band over seeds.

    With `band` "interquartile" a line is the median and its band the middle half of the runs; with
    "bootstrap" the mean and its 95% interval (`summary.summarise`). A setting of one run has no band.
    """
    checks.one_of("band", band, BANDS)
    if not rows:
        raise ValueError("there is nothing to draw: there are no rows.")
    table.require(rows, ["updates", "episodes", *_PANELS])
    table.check_numbers(rows, ["updates", "episodes"], [*series, "seed", "updates", "episodes"])
    unit = _unit(rows)
    table.check_runs(rows, series, [unit])
    settings = table.groups(rows, series)
    names = looks.names(series, list(settings))
    counts = set()
    with style.picture(path, width=8.8, height=4.2) as figure:
        grid = figure.subplots(1, len(_PANELS), sharey=True)
        for index, (name, here) in enumerate(zip(names, settings.values(), strict=True)):
            look, complete = looks.look(index), _complete(here, unit)
            counts.add(len(complete[0]))
            for axes, column in zip(grid, _PANELS, strict=True):
                _draw_band(axes, complete, unit, column, band, look, name)
        for axes, label in zip(grid, _PANELS.values(), strict=True):
            axes.set_title(label, fontsize=10)
            logarithmic(axes)
            _time_axis(axes, unit)
        grid[0].set_ylabel("NashConv")
        figure.suptitle(title, fontsize=10)
        what = {
            "interquartile": "line: median of {}; band: their middle half",
            "bootstrap": "line: mean of {}; band: 95% bootstrap interval",
        }[band]
        what = "a run each" if counts == {1} else what.format(_runs(counts))
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=4, fontsize=9, title=what, title_fontsize=9
        )


def _complete(rows: Sequence[table.Row], unit: str) -> list[list[table.Row]]:
    """The rows of each evaluation that all runs have: a median over fewer runs would jump where one ends."""
    moments = list(table.groups(rows, [unit]).values())
    runs = max(map(len, moments))
    return [here for here in moments if len(here) == runs]


def _draw_band(
    axes: Any,
    moments: Sequence[Sequence[table.Row]],
    unit: str,
    column: str,
    band: str,
    look: looks.Look,
    name: str,
) -> None:
    done = [here[0][unit] for here in moments]
    if band == "bootstrap":
        rows = [row for here in moments for row in here]
        found = summary.summarise(rows, by=[unit], value=column)
        middle, low, high = ([row[key] for row in found] for key in ("mean", "mean_low", "mean_high"))
    else:
        values = [summary.finite(here, column, name) for here in moments]
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=1)
    axes.plot(done, middle, **look._asdict(), markevery=0.1, markersize=4.5, linewidth=1.6, label=name)
    if len(moments[0]) > 1:
        axes.fill_between(done, low, high, color=look.color, alpha=0.2, linewidth=0)


def _runs(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low} runs" if low == high else f"{low} to {high} runs"


def _unit(rows: Sequence[Mapping[str, Any]]) -> str:
    """What time is counted in: updates where none is made of episodes."""
    return "episodes" if any(float(row["episodes"]) for row in rows) else "updates"


def _time_axis(axes: Any, unit: str) -> None:
    axes.set_xlabel("iterations" if unit == "updates" else unit)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))


def _draw_nash_conv(axes: Any, done: list[float], rows: Sequence[Mapping[str, Any]]) -> None:
    for (column, label), line in zip(_PANELS.items(), ("-", "--"), strict=True):
        if rows[-1][column] == "":  # without perfect recall there is no average
            continue
        axes.plot(done, [float(row[column]) for row in rows], line, label=label)
    axes.set(ylabel="NashConv")
    logarithmic(axes)


def logarithmic(axes: Any) -> None:
    """Makes the axis of NashConv logarithmic, with as many labels as it takes to read it."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(ticker.FuncFormatter(_sparse))


def _sparse(value: float, _: Any) -> str:
    """Labels at 2 and 5 times a power of ten: enough to read a logarithmic axis by."""
    text = f"{value:.0e}"
    return f"{value:g}" if text[0] in "25" else ""


def _draw_returns(axes: Any, done: list[float], rows: Sequence[Mapping[str, Any]]) -> None:
    alone = "mean_return" in rows[-1]
    means = [float(row["mean_return" if alone else "return_against_uniform"]) for row in rows]
    widths = [float(row["half_width"]) for row in rows]
    low, high = ([m + sign * w for m, w in zip(means, widths, strict=True)] for sign in (-1, 1))
    axes.plot(done, means, label="current policy")
    axes.fill_between(done, low, high, alpha=0.25, label="95% interval")
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set(ylabel="return" if alone else "return against uniform play")
