"""All figures: runs over time, and what they come to over explorations and learning rates.

`nash_conv`, `reward` and `regret` draw one run's metrics.csv; `compare_nash_conv` and `compare_rewards` many;
`sensitivity` is the paper's figure. One look for all of them: readable in print and for colour-blind readers,
written whole or not at all. Settings are told apart by name, and by colour, line and marker together.
"""

import contextlib
import io
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import cycler
import matplotlib
import numpy as np
from matplotlib import figure as figures
from matplotlib import lines, ticker
from matplotlib.backends import backend_agg

from pohp_neurd import files
from pohp_neurd.results import records, table

# Okabe and Ito's colours: distinguishable with every common form of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_SETTINGS: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.prop_cycle": cycler.cycler(color=COLOURS),
    "figure.dpi": 150,
    "font.size": 10,
    "legend.frameon": False,
}

_NAMES = {"spg": "SPG", "neurd": "NeuRD", "neurd_cix": "NeuRD-CIX"}
_PLAIN = ("environment", "game", "input", "learner", "policy", "setting")
_LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2, 1, 1, 1, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@contextlib.contextmanager
def figure(path: str | os.PathLike[str], *, width: float = 6.4, height: float = 4.0) -> Iterator[Any]:
    """A figure to draw on, saved to `path` when the block ends; its folder is made only then.

    It has no window and no global state, so it works in threads, workers and without a screen.
    """
    path = pathlib.Path(path)
    with matplotlib.rc_context(_SETTINGS):
        drawn = figures.Figure(figsize=(width, height), layout="constrained")
        backend_agg.FigureCanvasAgg(drawn)
        yield drawn
        content = io.BytesIO()  # all that can fail for what is drawn does so before anything is on disk
        drawn.savefig(content, format=path.suffix.lstrip(".") or "png")
    with contextlib.suppress(FileExistsError, NotADirectoryError):  # a file is in its place: told below
        path.parent.mkdir(parents=True, exist_ok=True)
    with files.atomic(path, binary=True) as file:
        file.write(content.getbuffer())


class Look(NamedTuple):
    """What matplotlib is to draw a setting with; any two of the first 35 differ in more than colour."""

    color: str
    linestyle: Any
    marker: str


def look(index: int) -> Look:
    """The look of the setting at `index`."""
    return Look(COLOURS[index % len(COLOURS)], _LINES[index % len(_LINES)], _MARKERS[index % len(_MARKERS)])


def names(columns: Sequence[str], settings: Sequence[Sequence[Any]]) -> list[str]:
    """Settings as a legend says them: numbers have six digits, or as many as it takes to tell them apart.

    >>> names(["learner", "exploration"], [["neurd_cix", 0.1], ["neurd_cix", 0.10000001]])
    ['NeuRD-CIX, exploration 0.1', 'NeuRD-CIX, exploration 0.10000001']
    """
    found: list[str] = []
    for digits in range(6, 18):
        found = [name(columns, setting, digits) for setting in settings]
        if len(set(found)) == len(found):
            break
    return found


def name(columns: Sequence[str], setting: Sequence[Any], digits: int = 6) -> str:
    """A setting as a legend says it.

    >>> name(["learner", "exploration"], ["neurd_cix", 0.1])
    'NeuRD-CIX, exploration 0.1'
    """
    words = []
    for column, content in zip(columns, setting, strict=True):
        if content == "":  # a flag that this setting does not have
            continue
        text = _NAMES.get(content, content) if isinstance(content, str) else f"{content:.{digits}g}"
        words.append(readable(text) if column in _PLAIN else f"{readable(column)} {text}")
    if columns and not words:  # matplotlib leaves an empty name out of the legend
        return f"without {' and '.join(map(readable, columns))}"
    return ", ".join(words)


def readable(text: str) -> str:
    """A column's or a game's name without its underscores."""
    return text.replace("_", " ")


def count_runs(counts: set[int]) -> str:
    """How many runs the settings have.

    >>> count_runs({3, 5}), count_runs({1})
    ('3 to 5 runs', '1 run')
    """
    low, high = min(counts), max(counts)
    number = f"{low}" if low == high else f"{low} to {high}"
    return f"{number} run" if number == "1" else f"{number} runs"


def legend_below(figure: Any, handles: Iterable[Any], labels: Iterable[str], **look: Any) -> None:
    """One legend beneath all panels: runs go everywhere, so no corner is free."""
    figure.legend(handles, labels, loc="outside lower center", **{"ncols": 2, "fontsize": 8, **look})


def logarithmic(axes: Any) -> None:
    """Makes the axis of NashConv logarithmic, with as many labels as it takes to read it."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")

    def label(value: float, _: int) -> str:
        # At 2 and 5 times a power of ten: enough to read it by, unless all is within less than a power.
        low, high = axes.get_ylim()
        return f"{value:g}" if high < 5 * low or f"{value:.0e}"[0] in "25" else ""

    axes.yaxis.set_minor_formatter(label)


_PANELS = {"nash_conv": "current policy", "nash_conv_average": "average policy"}


def _middle_half(moments: Sequence[Sequence[table.Row]], unit: str, column: str, name: str) -> Any:
    values = [table.finite(here, column, name) for here in moments]
    return np.quantile(values, [0.25, 0.5, 0.75], axis=1)


def _mean_interval(moments: Sequence[Sequence[table.Row]], unit: str, column: str, name: str) -> Any:
    found = table.summarise([row for here in moments for row in here], by=[unit], value=column)
    return [[row[key] for row in found] for key in ("mean_low", "mean", "mean_high")]


Band = tuple[str, Callable[[Sequence[Sequence[table.Row]], str, str, str], Any]]
BANDS: dict[str, Band] = {
    "interquartile": ("line: median of {}; band: their middle half", _middle_half),
    "bootstrap": ("line: mean of {}; band: 95% bootstrap interval", _mean_interval),
}
"""How a line and a band sum up the runs of a setting: what the legend says of so many runs, and (rows of each
evaluation, its column of time, the column that is drawn, the setting) -> low, middle and high at each."""


def nash_conv(path: records.Path, rows: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draws the rows of a metrics.csv, NashConv on a logarithmic axis; of live play, returns instead."""
    unit = _unit(rows)
    done = _column(rows, unit)
    with figure(path) as page:
        axes = page.add_subplot()
        axes.set(title=title)
        if rows[-1]["nash_conv"] == "":
            alone = "mean_return" in rows[-1]
            means = np.array(_column(rows, "mean_return" if alone else "return_against_uniform"))
            widths = np.array(_column(rows, "half_width"))
            axes.plot(done, means, label="current policy")
            axes.fill_between(done, means - widths, means + widths, alpha=0.25, label="95% interval")
            axes.axhline(0, color="grey", linewidth=0.8)
            axes.set(ylabel="return" if alone else "return against uniform play")
        else:
            for (column, label), line in zip(_PANELS.items(), ("-", "--"), strict=True):
                if rows[-1][column] != "":  # without perfect recall there is no average
                    axes.plot(done, _column(rows, column), line, label=label)
            axes.set(ylabel="NashConv")
            logarithmic(axes)
        _time_axis(axes, unit)
        axes.legend()


def compare_nash_conv(
    path: records.Path,
    rows: Sequence[table.Row],
    *,
    series: Sequence[str] = ("exploration",),
    band: Band = BANDS["interquartile"],
    title: str = "",
) -> None:
    """Draws settings on one figure, current policy left and average policy right, with a band over seeds.

    Args:
        path: The figure.
        rows: Of many runs, with the settings as columns.
        series: Columns whose values make a line each.
        band: One of BANDS. A setting of one run has no band.
        title: Above the figure.
    """
    if not rows:
        raise ValueError("there is nothing to draw: there are no rows.")
    table.require(rows, ["updates", "episodes", *_PANELS])
    table.check_numbers(rows, ["updates", "episodes"], [*series, "seed", "updates", "episodes"])
    unit = _unit(rows)
    table.check_runs(rows, series, [unit])
    settings = table.groups(rows, series)
    labels = names(series, list(settings))
    counts, (legend, spread) = set(), band
    with figure(path, width=8.8, height=4.2) as page:
        grid = page.subplots(1, len(_PANELS), sharey=True)
        for index, (name, here) in enumerate(zip(labels, settings.values(), strict=True)):
            drawn, moments = look(index), list(table.groups(here, [unit]).values())
            # Those that all runs have: a median over fewer would jump where one ends.
            runs = max(map(len, moments))
            moments = [moment for moment in moments if len(moment) == runs]
            counts.add(runs)
            done = [moment[0][unit] for moment in moments]
            for axes, column in zip(grid, _PANELS, strict=True):
                low, middle, high = spread(moments, unit, column, name)
                line: Any = {**drawn._asdict(), "markevery": 0.1, "markersize": 4.5, "linewidth": 1.6}
                axes.plot(done, middle, **line, label=name)
                if runs > 1:
                    axes.fill_between(done, low, high, color=drawn.color, alpha=0.2, linewidth=0)
        for axes, label in zip(grid, _PANELS.values(), strict=True):
            axes.set_title(label, fontsize=10)
            logarithmic(axes)
            _time_axis(axes, unit)
        grid[0].set_ylabel("NashConv")
        page.suptitle(title, fontsize=10)
        what = "a run each" if counts == {1} else legend.format(count_runs(counts))
        style: Any = {"ncols": 4, "fontsize": 9, "title": what, "title_fontsize": 9}
        legend_below(page, *grid[0].get_legend_handles_labels(), **style)


def _unit(rows: Sequence[Mapping[str, Any]]) -> str:
    """What time is counted in: updates where none is made of episodes."""
    return "episodes" if any(float(row["episodes"]) for row in rows) else "updates"


def _time_axis(axes: Any, unit: str) -> None:
    axes.set_xlabel("iterations" if unit == "updates" else unit)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))


def reward(path: records.Path, rows: Sequence[table.Row], *, title: str) -> None:
    """Draws the rows of a single-agent experiment, a colour for every learning rate and exploration."""
    with figure(path) as page:
        axes = page.subplots()
        if _draw_rewards(axes, rows, ("learning_rate", "exploration")) > 1:
            axes.legend(fontsize=8, handlelength=3.5)
        axes.set_title(title, fontsize=9)


def compare_rewards(
    path: records.Path, rows: Sequence[table.Row], *, series: Sequence[str], title: str
) -> None:
    """Draws several experiments on one figure, a colour and a line for each setting of `series`."""
    with figure(path, height=4.4) as page:
        axes = page.subplots()
        _draw_rewards(axes, rows, series)
        legend_below(page, *axes.get_legend_handles_labels(), handlelength=3.5)
        axes.set_title(title, fontsize=9)


def _draw_rewards(axes: Any, rows: Sequence[table.Row], series: Sequence[str]) -> int:
    """Every seed a thin line and their mean a thick one; how many settings there are."""
    table.require(rows, ["steps", "seed", "reward"])
    table.check_numbers(rows, ["steps", "reward"], [*series, "seed", "steps"])
    if min(row["steps"] for row in rows) <= 0:
        raise ValueError("steps must be above 0 in every row: they are those that a reward is of.")
    table.check_runs(rows, series, ["steps"])
    settings = table.groups(rows, series)
    labels = names(series, list(settings))
    for index, (name, here) in enumerate(zip(labels, settings.values(), strict=True)):
        color, linestyle, _ = look(index)
        steps, curves = _smoothed(here, 10_000)
        axes.plot(steps, curves.T, color=color, linewidth=0.6, alpha=0.35)
        axes.plot(steps, curves.mean(axis=0), color=color, linestyle=linestyle, linewidth=2.2, label=name)
    axes.set_xlabel("steps")
    axes.set_ylabel("reward per 1,000 steps")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    return len(settings)


def _smoothed(rows: Sequence[table.Row], span: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps [T], and for each seed the reward per 1,000 steps [seeds, T], a mean over `span` steps."""
    steps, columns = np.unique([row["steps"] for row in rows], return_inverse=True)
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    if len(rows) < len(seeds) * len(steps):
        raise ValueError("the runs of a curve must have the same steps, but some seeds lack rows of others.")
    rewards = np.zeros((len(seeds), len(steps)))
    rewards[[seeds.index(row["seed"]) for row in rows], columns] = [row["reward"] for row in rows]
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
    curves = table.groups(rows, ["estimator"])
    with figure(path) as page:
        axes = page.subplots()
        handles = []
        for place, ((estimator,), here) in enumerate(curves.items()):
            drawn: Any = {"color": COLOURS[place], "linewidth": _WIDTHS[estimator]}
            for name, (_, dashes) in _QUANTILES.items():
                axes.plot(_column(here, "updates"), _column(here, name), linestyle=dashes, **drawn)
            handles.append(lines.Line2D([], [], label=_ESTIMATORS[estimator], **drawn))
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


_LABELS = {
    "total_reward": "accumulated reward",
    "nash_conv": "NashConv, current policy",
    "nash_conv_average": "NashConv, average policy",
}
_SPREAD = 0.08
"""Half the width over which a setting's dots are spread, in units of the distance between two settings."""

Handles = dict[tuple[tuple[Any, ...] | None, str], Any]
"""What matplotlib has drawn, by setting, None for the reference, and by the text of the legend."""


def sensitivity(
    path: records.Path,
    rows: Sequence[table.Row],
    *,
    x: str,
    reference: Sequence[table.Row] = (),
    value: str = "total_reward",
    series: Sequence[str] = ("learner",),
    panels: Sequence[str] = (),
    title: str = "",
) -> None:
    """Draws `value` over `x`: each run a dot, their mean a line.

    Args:
        path: The figure.
        rows: A row for every run.
        x: "exploration", at equal distances, or "learning_rate", on a logarithmic axis.
        reference: Runs without `x`: a dashed line is their mean, shading goes from best to worst.
        value: The column that is drawn.
        series: Columns whose values make a line each.
        panels: Columns whose values make a panel each, side by side.
        title: Above the figure.
    """
    known = [name for name in series if any(name in row for row in rows)]
    if not rows:
        raise ValueError("there is nothing to draw: there are no rows.")
    if table.finite(rows, x, "some rows")[0] <= 0 and x == "learning_rate":
        raise ValueError("learning_rate must be above 0 in every run: its axis is logarithmic.")
    table.check_runs(rows, [*panels, *known, x])
    table.check_runs(reference, panels)
    parts = table.groups(rows, panels)
    beside = table.groups(reference, panels)
    # Over all panels, so that a setting looks the same in each of them.
    settings = list(table.groups(rows, known))
    labels = names(known, settings)
    places = {setting: (look(index), labels[index]) for index, setting in enumerate(settings)}
    with figure(path, width=max(6.0, 4.4 * len(parts)), height=4.2) as page:
        grid = page.subplots(1, len(parts), squeeze=False)[0]
        handles: Handles = {}
        titles = names(panels, list(parts))
        for axes, panel, (setting, here) in zip(grid, titles, parts.items(), strict=True):
            if setting in beside:
                handles |= _reference(axes, beside[setting], value)
            handles |= _lines(axes, here, x, value, known, places)
            axes.set_title(panel, fontsize=10)
            axes.set_xlabel(readable(x))
            if value.startswith("nash_conv"):
                logarithmic(axes)
            else:
                axes.yaxis.set_major_formatter("{x:,.10g}")
        grid[0].set_ylabel(_LABELS.get(value, readable(value)))
        page.suptitle(title, fontsize=10)
        legend_below(page, handles.values(), [label for _, label in handles])


def _lines(
    axes: Any,
    rows: Sequence[table.Row],
    x: str,
    value: str,
    series: Sequence[str],
    places: Mapping[tuple[Any, ...], tuple[Look, str]],
) -> Handles:
    """Draws every setting of `series`; their handles."""
    ticks = sorted({row[x] for row in rows})
    # Explorations have 0 among them, which a logarithmic axis has no place for, and 0.01 to 1, which a linear
    # one crowds together: they stand at equal distances, in order. Rates are never 0.
    logarithmic = x == "learning_rate"
    positions = dict(
        zip(ticks, np.log10(ticks) if logarithmic else np.arange(len(ticks), dtype=float), strict=True)
    )
    step = min(np.diff(list(positions.values())), default=1.0)
    groups = table.groups(rows, series)
    room = step * min(1.0, 4 / len(groups))
    handles: Handles = {}
    for index, (setting, here) in enumerate(groups.items()):
        drawn, label = places[setting]
        # Several settings stand beside each other, not on top of each other.
        shift = 3 * _SPREAD * room * (index - (len(groups) - 1) / 2)
        means, counts = [], set()
        for (tick,), runs in table.groups(here, [x]).items():
            values = table.finite(runs, value, table.describe([*series, x], [*setting, tick]))
            centre = positions[tick] + shift
            dots = centre + _SPREAD * room * sideways(len(values))
            marks = axes.plot(
                dots, values, drawn.marker, color=drawn.color, alpha=0.45, markersize=3.5, markeredgewidth=0
            )
            means.append((centre, values.mean()))
            counts.add(len(values))
        edge: Any = {"markersize": 5.5, "markeredgecolor": "white", "linewidth": 1.6}
        line = axes.plot(*zip(*means, strict=True), **drawn._asdict(), **edge)
        label = f"{label}: " if series else ""
        handles[setting, f"{label}a run"] = marks[0]
        handles[setting, f"{label}mean of {count_runs(counts)}"] = line[0]
    axes.set_xticks(
        list(positions.values()),
        [
            np.format_float_positional(tick, trim="-") if named else ""
            for tick, named in zip(ticks, spaced(list(positions.values())), strict=True)
        ],
    )
    if len(ticks) > 6:
        axes.tick_params(axis="x", labelsize=8, rotation=45 if logarithmic else 0)
    return handles


def spaced(positions: Sequence[float]) -> list[bool]:
    """Which of the ascending `positions` can be named, where a name takes a twentieth of the whole width.

    >>> spaced([0.0, 0.01, 0.5, 1.0])
    [True, False, True, True]
    """
    named, last = [], -np.inf
    for position in positions:
        named.append(bool(position - last >= (positions[-1] - positions[0]) / 20))
        last = position if named[-1] else last
    return named


def sideways(runs: int) -> np.ndarray:
    """Places in [-1, 1] for runs in the order of their values: neighbours apart, and no trend."""
    golden = (5**0.5 - 1) / 2
    return 2 * ((np.arange(runs) + 1) * golden % 1) - 1 if runs > 1 else np.zeros(runs)


def _reference(axes: Any, rows: Sequence[table.Row], value: str) -> Handles:
    values = table.finite(rows, value, "the reference")
    column = next((column for column in ("input", "learner") if column in rows[0]), None)
    label = name([column], [rows[0][column]]) if column else "reference"
    band = axes.axhspan(values.min(), values.max(), color="grey", alpha=0.2, linewidth=0)
    line = axes.axhline(values.mean(), color="black", linestyle=(0, (5, 3)), linewidth=1.4)
    return {
        (None, f"{label}: best to worst"): band,
        (None, f"{label}: mean of {count_runs({len(values)})}"): line,
    }
