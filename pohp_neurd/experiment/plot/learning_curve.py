"""Learning curves: reward over steps, every seed a thin line and their mean a thick one."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pohp_neurd.experiment.plot import style


def draw(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draws the rows of a single-agent experiment to `path`, a colour for every setting."""
    with style.picture(path, width=6.4, height=4.0) as figure:
        axes = figure.subplots()
        panel(axes, rows)
        axes.set_title(title, fontsize=9)


def panel(axes: Any, rows: Sequence[Mapping[str, Any]], *, smoothed: int = 10_000) -> None:
    """The curves of `rows` on `axes`: reward per 1,000 steps, averaged over windows of `smoothed` steps."""
    settings = sorted({(row["learning_rate"], row["exploration"]) for row in rows})
    for index, setting in enumerate(settings):
        here = [row for row in rows if (row["learning_rate"], row["exploration"]) == setting]
        steps, curves = _curves(here, smoothed)
        colour = style.COLOURS[index % len(style.COLOURS)]
        axes.plot(steps, curves.T, color=colour, linewidth=0.6, alpha=0.35)
        label = f"learning rate {setting[0]:g}, exploration {setting[1]:g}"
        axes.plot(steps, curves.mean(axis=0), color=colour, linewidth=2.2, label=label)
    axes.set_xlabel("steps")
    axes.set_ylabel("reward per 1,000 steps")
    axes.ticklabel_format(axis="x", style="plain")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    if len(settings) > 1:
        axes.legend(fontsize=8)


def _curves(rows: Sequence[Mapping[str, Any]], smoothed: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps [T], and a curve for each seed [seeds, T]."""
    steps = np.array(sorted({row["steps"] for row in rows}))
    seeds = sorted({row["seed"] for row in rows})
    place = {step: column for column, step in enumerate(steps)}
    table = np.zeros((len(seeds), len(steps)))
    for row in rows:
        table[seeds.index(row["seed"]), place[row["steps"]]] = row["reward"]
    interval = steps[0]
    width = max(1, min(smoothed // interval, len(steps)))
    sums = np.cumsum(np.pad(table, ((0, 0), (width, 0))), axis=1)
    lengths = np.minimum(np.arange(len(steps)) + 1, width) * interval
    means = (sums[:, width:] - sums[:, :-width]) / lengths
    return steps, 1_000 * means
