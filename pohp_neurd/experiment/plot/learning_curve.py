"""Learning curves: reward over steps, every seed a thin line and their mean a thick one."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pohp_neurd.experiment import table
from pohp_neurd.experiment.plot import series, style


def draw(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draws the rows of a single-agent experiment to `path`, a colour for every setting."""
    with style.picture(path, width=6.4, height=4.0) as figure:
        axes = figure.subplots()
        panel(axes, rows)
        axes.set_title(title, fontsize=9)


def compare(
    path: str | os.PathLike[str], runs: Mapping[str, Sequence[Mapping[str, Any]]], *, title: str
) -> None:
    """Draws several experiments on one picture, each under its name, a colour and a line for each."""
    with style.picture(path, width=6.4, height=4.4) as figure:
        axes = figure.subplots()
        for index, (name, rows) in enumerate(runs.items()):
            _draw_setting(axes, rows, name, series.look(index))
        _label(axes)
        # Beneath the curves: seeds go everywhere, so no corner is free.
        figure.legend(loc="outside lower center", ncols=2, fontsize=8, handlelength=3.5)
        axes.set_title(title, fontsize=9)


def panel(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """The curves of `rows` on `axes`, a colour for every learning rate and exploration."""
    settings = sorted({(row["learning_rate"], row["exploration"]) for row in rows})
    for index, setting in enumerate(settings):
        here = [row for row in rows if (row["learning_rate"], row["exploration"]) == setting]
        label = f"learning rate {setting[0]:g}, exploration {setting[1]:g}"
        _draw_setting(axes, here, label, series.look(index))
    _label(axes)
    if len(settings) > 1:
        axes.legend(fontsize=8, handlelength=3.5)


def _draw_setting(axes: Any, rows: Sequence[Mapping[str, Any]], label: str, look: series.Look) -> None:
    steps, curves = _curves(rows, smoothed=10_000)
    axes.plot(steps, curves.T, color=look.color, linewidth=0.6, alpha=0.35)
    mean = curves.mean(axis=0)
    axes.plot(steps, mean, color=look.color, linestyle=look.linestyle, linewidth=2.2, label=label)


def _label(axes: Any) -> None:
    axes.set_xlabel("steps")
    axes.set_ylabel("reward per 1,000 steps")
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _curves(rows: Sequence[Mapping[str, Any]], smoothed: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps [T], and for each seed the reward per 1,000 steps [seeds, T], a mean over `smoothed` steps."""
    table.check_distinct(rows, ["seed", "steps"])
    steps = np.array(sorted({row["steps"] for row in rows}))
    seeds = sorted({row["seed"] for row in rows})
    if len(rows) < len(seeds) * len(steps):
        raise ValueError("the runs of a curve must have the same steps, but some seeds lack rows of others.")
    place = {step: column for column, step in enumerate(steps)}
    rewards = np.zeros((len(seeds), len(steps)))
    for row in rows:
        rewards[seeds.index(row["seed"]), place[row["steps"]]] = row["reward"]
    interval = steps[0]
    width = max(1, min(smoothed // interval, len(steps)))
    sums = np.cumsum(np.pad(rewards, ((0, 0), (width, 0))), axis=1)
    lengths = np.minimum(np.arange(len(steps)) + 1, width) * interval
    means = (sums[:, width:] - sums[:, :-width]) / lengths
    return steps, 1_000 * means
