"""Accumulated reward over explorations, which is the paper's figure, and over learning rates."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pohp_neurd.results import records, style, summary, table

_LABELS = {
    "total_reward": "accumulated reward",
    "nash_conv": "NashConv, current policy",
    "nash_conv_average": "NashConv, average policy",
}
_SPREAD = 0.08
"""Half the width over which a setting's dots are spread, in units of the distance between two settings."""

Handles = dict[tuple[tuple[Any, ...] | None, str], Any]
"""What matplotlib has drawn, by setting, None for the reference, and by the text of the legend."""


def draw(
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
    if summary.finite(rows, x, "some rows")[0] <= 0 and x == "learning_rate":
        raise ValueError("learning_rate must be above 0 in every run: its axis is logarithmic.")
    table.check_runs(rows, [*panels, *known, x])
    table.check_runs(reference, panels)
    parts = table.groups(rows, panels)
    beside = table.groups(reference, panels)
    # Over all panels, so that a setting looks the same in each of them.
    settings = list(table.groups(rows, known))
    names = style.names(known, settings)
    places = {setting: (style.look(index), names[index]) for index, setting in enumerate(settings)}
    with style.figure(path, width=max(6.0, 4.4 * len(parts)), height=4.2) as figure:
        grid = figure.subplots(1, len(parts), squeeze=False)[0]
        handles: Handles = {}
        titles = style.names(panels, list(parts))
        for axes, panel, (setting, here) in zip(grid, titles, parts.items(), strict=True):
            if setting in beside:
                handles |= _reference(axes, beside[setting], value)
            handles |= _lines(axes, here, x, value, known, places)
            axes.set_title(panel, fontsize=10)
            axes.set_xlabel(style.readable(x))
            if value.startswith("nash_conv"):
                style.logarithmic(axes)
            else:
                axes.yaxis.set_major_formatter("{x:,.10g}")
        grid[0].set_ylabel(_LABELS.get(value, style.readable(value)))
        figure.suptitle(title, fontsize=10)
        style.legend_below(figure, handles.values(), [label for _, label in handles])


def _lines(
    axes: Any,
    rows: Sequence[table.Row],
    x: str,
    value: str,
    series: Sequence[str],
    places: Mapping[tuple[Any, ...], tuple[style.Look, str]],
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
        look, name = places[setting]
        # Several settings stand beside each other, not on top of each other.
        shift = 3 * _SPREAD * room * (index - (len(groups) - 1) / 2)
        means, counts = [], set()
        for (tick,), runs in table.groups(here, [x]).items():
            values = summary.finite(runs, value, table.describe([*series, x], [*setting, tick]))
            centre = positions[tick] + shift
            dots = centre + _SPREAD * room * sideways(len(values))
            marks = axes.plot(
                dots, values, look.marker, color=look.color, alpha=0.45, markersize=3.5, markeredgewidth=0
            )
            means.append((centre, values.mean()))
            counts.add(len(values))
        edge: Any = {"markersize": 5.5, "markeredgecolor": "white", "linewidth": 1.6}
        line = axes.plot(*zip(*means, strict=True), **look._asdict(), **edge)
        name = f"{name}: " if series else ""
        handles[setting, f"{name}a run"] = marks[0]
        handles[setting, f"{name}mean of {style.count_runs(counts)}"] = line[0]
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


def spaced(positions: Sequence[float], room: float = 1 / 20) -> list[bool]:
    """Which of the ascending `positions` can be named without names on top of each other.

    A name takes the part `room` of the whole width.

    >>> spaced([0.0, 0.01, 0.5, 1.0])
    [True, False, True, True]
    """
    named, last = [], -np.inf
    for position in positions:
        named.append(bool(position - last >= room * (positions[-1] - positions[0])))
        last = position if named[-1] else last
    return named


def sideways(runs: int) -> np.ndarray:
    """Places in [-1, 1] for runs in the order of their values: neighbours apart, and no trend."""
    golden = (5**0.5 - 1) / 2
    return 2 * ((np.arange(runs) + 1) * golden % 1) - 1 if runs > 1 else np.zeros(runs)


def _reference(axes: Any, rows: Sequence[table.Row], value: str) -> Handles:
    values = summary.finite(rows, value, "the reference")
    column = next((column for column in ("input", "learner") if column in rows[0]), None)
    name = style.name([column], [rows[0][column]]) if column else "reference"
    band = axes.axhspan(values.min(), values.max(), color="grey", alpha=0.2, linewidth=0)
    line = axes.axhline(values.mean(), color="black", linestyle=(0, (5, 3)), linewidth=1.4)
    labels = f"{name}: best to worst", f"{name}: mean of {style.count_runs({len(values)})}"
    return {(None, label): handle for label, handle in zip(labels, (band, line), strict=True)}
