"""Runs over time: NashConv in games, reward in single-agent tasks, regret in bandits.

`nash_conv`, `reward` and `regret` draw one run's metrics.csv; `compare_nash_conv` and `compare_rewards` many.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import lines, ticker

from pohp_neurd.results import records, style, summary, table

_PANELS = {"nash_conv": "current policy", "nash_conv_average": "average policy"}

Spread = tuple[Any, Any, Any]
"""Low, middle and high at every evaluation; where there is one run, without low and high."""


class Band(NamedTuple):
    """How a line and a band sum up the runs of a setting."""

    legend: str
    """With {} for how many runs there are."""
    spread: Callable[[Sequence[Sequence[table.Row]], str, str, str], Spread]
    """(rows of each evaluation, its column of time, the column that is drawn, the setting) -> the spread."""


def _middle_half(moments: Sequence[Sequence[table.Row]], unit: str, column: str, name: str) -> Spread:
    values = [summary.finite(here, column, name) for here in moments]
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=1)
    return low, middle, high


def _mean_interval(moments: Sequence[Sequence[table.Row]], unit: str, column: str, name: str) -> Spread:
    found = summary.summarise([row for here in moments for row in here], by=[unit], value=column)
    low, middle, high = ([row[key] for row in found] for key in ("mean_low", "mean", "mean_high"))
    return low, middle, high


INTERQUARTILE = Band("line: median of {}; band: their middle half", _middle_half)
BOOTSTRAP = Band("line: mean of {}; band: 95% bootstrap interval", _mean_interval)


def nash_conv(path: records.Path, rows: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draws the rows of a metrics.csv, NashConv on a logarithmic axis; of live play, returns instead."""
    unit = _unit(rows)
    done = [float(row[unit]) for row in rows]
    with style.figure(path) as figure:
        axes = figure.add_subplot()
        axes.set(title=title)
        if rows[-1]["nash_conv"] == "":
            _draw_returns(axes, done, rows)
        else:
            _draw_nash_conv(axes, done, rows)
        _time_axis(axes, unit)
        axes.legend()


def compare_nash_conv(
    path: records.Path,
    rows: Sequence[table.Row],
    *,
    series: Sequence[str] = ("exploration",),
    band: Band = INTERQUARTILE,
    title: str = "",
) -> None:
    """Draws settings on one figure, current policy left and average policy right, with a band over seeds.

    Args:
        path: The figure.
        rows: Of many runs, with the settings as columns.
        series: Columns whose values make a line each.
        band: INTERQUARTILE or BOOTSTRAP. A setting of one run has no band.
        title: Above the figure.
    """
    if not rows:
        raise ValueError("there is nothing to draw: there are no rows.")
    table.require(rows, ["updates", "episodes", *_PANELS])
    table.check_numbers(rows, ["updates", "episodes"], [*series, "seed", "updates", "episodes"])
    unit = _unit(rows)
    table.check_runs(rows, series, [unit])
    settings = table.groups(rows, series)
    names = style.names(series, list(settings))
    counts = set()
    with style.figure(path, width=8.8, height=4.2) as figure:
        grid = figure.subplots(1, len(_PANELS), sharey=True)
        for index, (name, here) in enumerate(zip(names, settings.values(), strict=True)):
            look, moments = style.look(index), _complete(here, unit)
            counts.add(len(moments[0]))
            done = [here[0][unit] for here in moments]
            for axes, column in zip(grid, _PANELS, strict=True):
                low, middle, high = band.spread(moments, unit, column, name)
                line: Any = {**look._asdict(), "markevery": 0.1, "markersize": 4.5, "linewidth": 1.6}
                axes.plot(done, middle, **line, label=name)
                if len(moments[0]) > 1:
                    axes.fill_between(done, low, high, color=look.color, alpha=0.2, linewidth=0)
        for axes, label in zip(grid, _PANELS.values(), strict=True):
            axes.set_title(label, fontsize=10)
            style.logarithmic(axes)
            _time_axis(axes, unit)
        grid[0].set_ylabel("NashConv")
        figure.suptitle(title, fontsize=10)
        what = "a run each" if counts == {1} else band.legend.format(style.count_runs(counts))
        look_of_legend: Any = {"ncols": 4, "fontsize": 9, "title": what, "title_fontsize": 9}
        style.legend_below(figure, *grid[0].get_legend_handles_labels(), **look_of_legend)


def _complete(rows: Sequence[table.Row], unit: str) -> list[list[table.Row]]:
    """The rows of each evaluation that all runs have: a median over fewer runs would jump where one ends."""
    moments = list(table.groups(rows, [unit]).values())
    runs = max(map(len, moments))
    return [here for here in moments if len(here) == runs]


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
        axes.plot(done, _column(rows, column), line, label=label)
    axes.set(ylabel="NashConv")
    style.logarithmic(axes)


def _draw_returns(axes: Any, done: list[float], rows: Sequence[Mapping[str, Any]]) -> None:
    alone = "mean_return" in rows[-1]
    means = np.array(_column(rows, "mean_return" if alone else "return_against_uniform"))
    widths = np.array(_column(rows, "half_width"))
    axes.plot(done, means, label="current policy")
    axes.fill_between(done, means - widths, means + widths, alpha=0.25, label="95% interval")
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set(ylabel="return" if alone else "return against uniform play")


def reward(path: records.Path, rows: Sequence[table.Row], *, title: str) -> None:
    """Draws the rows of a single-agent experiment, a colour for every learning rate and exploration."""
    with style.figure(path) as figure:
        axes = figure.subplots()
        if _draw_rewards(axes, rows, ("learning_rate", "exploration")) > 1:
            axes.legend(fontsize=8, handlelength=3.5)
        axes.set_title(title, fontsize=9)


def compare_rewards(
    path: records.Path, rows: Sequence[table.Row], *, series: Sequence[str], title: str
) -> None:
    """Draws several experiments on one figure, a colour and a line for each setting of `series`."""
    with style.figure(path, height=4.4) as figure:
        axes = figure.subplots()
        _draw_rewards(axes, rows, series)
        style.legend_below(figure, *axes.get_legend_handles_labels(), handlelength=3.5)
        axes.set_title(title, fontsize=9)


def _draw_rewards(axes: Any, rows: Sequence[table.Row], series: Sequence[str]) -> int:
    """Every seed a thin line and their mean a thick one; how many settings there are."""
    table.require(rows, ["steps", "seed", "reward"])
    table.check_numbers(rows, ["steps", "reward"], [*series, "seed", "steps"])
    if min(row["steps"] for row in rows) <= 0:
        raise ValueError("steps must be above 0 in every row: they are those that a reward is of.")
    table.check_runs(rows, series, ["steps"])
    settings = table.groups(rows, series)
    names = style.names(series, list(settings))
    for index, (name, here) in enumerate(zip(names, settings.values(), strict=True)):
        color, linestyle, _ = style.look(index)
        steps, curves = _smoothed(here, 10_000)
        axes.plot(steps, curves.T, color=color, linewidth=0.6, alpha=0.35)
        axes.plot(steps, curves.mean(axis=0), color=color, linestyle=linestyle, linewidth=2.2, label=name)
    axes.set_xlabel("steps")
    axes.set_ylabel("reward per 1,000 steps")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    return len(settings)


def _smoothed(rows: Sequence[table.Row], span: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps [T], and for each seed the reward per 1,000 steps [seeds, T], a mean over `span` steps."""
    steps = np.array(sorted({row["steps"] for row in rows}))
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    if len(rows) < len(seeds) * len(steps):
        raise ValueError("the runs of a curve must have the same steps, but some seeds lack rows of others.")
    place = {step: column for column, step in enumerate(steps)}
    rewards = np.zeros((len(seeds), len(steps)))
    for row in rows:
        rewards[seeds.index(row["seed"]), place[row["steps"]]] = row["reward"]
    interval = steps[0]
    width = max(1, min(span // interval, len(steps)))
    sums = np.cumsum(np.pad(rewards, ((0, 0), (width, 0))), axis=1)
    lengths = np.minimum(np.arange(len(steps)) + 1, width) * interval
    means = (sums[:, width:] - sums[:, :-width]) / lengths
    return steps, 1_000 * means


_ESTIMATORS = {"importance": "importance weights", "ix": "IX", "cix": "CIX"}
_QUANTILES: Any = {
    "regret_median": ("median", "-"),
    "regret_95": ("95%", "--"),
    "regret_worst": ("worst", ":"),
}
# IX and CIX often lie on each other: the wide line stays visible under the narrow one.
_WIDTHS = {"importance": 1.6, "ix": 3.2, "cix": 1.2}


def regret(path: records.Path, rows: Sequence[Mapping[str, Any]], *, title: str, delta: float) -> None:
    """Draws the rows of a bandit run's metrics.csv: quantiles of every estimator, and Theorem 1's bound."""
    curves: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        curves.setdefault(row["estimator"], []).append(row)
    with style.figure(path) as figure:
        axes = figure.subplots()
        handles = []
        for place, (estimator, here) in enumerate(curves.items()):
            look: Any = {"color": style.COLOURS[place], "linewidth": _WIDTHS[estimator]}
            for name, (_, dashes) in _QUANTILES.items():
                axes.plot(_column(here, "updates"), _column(here, name), linestyle=dashes, **look)
            handles.append(lines.Line2D([], [], label=_ESTIMATORS[estimator], **look))
        for label, dashes in _QUANTILES.values():
            handles.append(lines.Line2D([], [], label=f"{label} of the runs", linestyle=dashes, color="grey"))
        bounded = [here for here in curves.values() if here[0]["bound"] != ""]
        if bounded:
            rounds, bound = _column(bounded[0], "updates"), _column(bounded[0], "bound")
            handles += axes.plot(rounds, bound, color="black", label=f"Theorem 1's bound, δ = {delta:g}")
        axes.set(xlabel="rounds", ylabel="regret against the best arm", title=title)
        axes.set_xlim(left=0)
        axes.legend(handles=handles, fontsize=8)


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(row[name]) for row in rows]
