"""Learning curves: reward over steps, every seed a thin line and their mean a thick one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pohp_neurd.experiment import records, table
from pohp_neurd.experiment.plot import series as looks
from pohp_neurd.experiment.plot import style


def draw(path: records.Path, rows: Sequence[table.Row], *, title: str) -> None:
    """Draws the rows of a single-agent experiment, a colour for every learning rate and exploration."""
    with style.picture(path, width=6.4, height=4.0) as figure:
        axes = figure.subplots()
        if _draw_settings(axes, rows, ("learning_rate", "exploration")) > 1:
            axes.legend(fontsize=8, handlelength=3.5)
        axes.set_title(title, fontsize=9)


def compare(path: records.Path, rows: Sequence[table.Row], *, series: Sequence[str], title: str) -> None:
    """Draws several experiments on one picture, a colour and a line for each setting of `series`."""
    with style.picture(path, width=6.4, height=4.4) as figure:
        axes = figure.subplots()
        _draw_settings(axes, rows, series)
        # Beneath the curves: seeds go everywhere, so no corner is free.
        figure.legend(loc="outside lower center", ncols=2, fontsize=8, handlelength=3.5)
        axes.set_title(title, fontsize=9)


def _draw_settings(axes: Any, rows: Sequence[table.Row], series: Sequence[str]) -> int:
    """The curves of `rows` on `axes`; how many settings there are."""
    table.require(rows, ["steps", "seed", "reward"])
    table.check_numbers(rows, ["steps", "reward"], [*series, "seed", "steps"])
    if min(row["steps"] for row in rows) <= 0:
        raise ValueError("steps must be above 0 in every row: they are those that a reward is of.")
    table.check_runs(rows, series, ["steps"])
    settings = table.groups(rows, series)
    names = looks.names(series, list(settings))
    for index, (name, here) in enumerate(zip(names, settings.values(), strict=True)):
        _draw_setting(axes, here, name, looks.look(index))
    axes.set_xlabel("steps")
    axes.set_ylabel("reward per 1,000 steps")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    return len(settings)


def _draw_setting(axes: Any, rows: Sequence[table.Row], label: str, look: looks.Look) -> None:
    steps, curves = _curves(rows, smoothed=10_000)
    axes.plot(steps, curves.T, color=look.color, linewidth=0.6, alpha=0.35)
    mean = curves.mean(axis=0)
    axes.plot(steps, mean, color=look.color, linestyle=look.linestyle, linewidth=2.2, label=label)


def _curves(rows: Sequence[table.Row], smoothed: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps [T], and for each seed the reward per 1,000 steps [seeds, T], a mean over `smoothed` steps."""
    steps = np.array(sorted({row["steps"] for row in rows}))
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
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
