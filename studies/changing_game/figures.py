"""The study of the changing game: NashConv or regret over exploration, and over the last cycle."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pohp_neurd.results import figures

Row = Mapping[str, Any]

_SHOWN = ((0.0, "NeuRD (0)"), (0.1, "NeuRD-CIX(0.1)"), (1.0, "NeuRD-CIX(1)"))
"""Explorations whose curves are drawn, where the study has them."""


_ROWS = {"self_play": "self-play", "bandit": "bandit"}
_MEASURES = {"self_play": "NashConv", "bandit": "regret"}
_BASELINES = {"none": "no baseline", "mean": "running mean", "value": "exact value"}


def draw(path: str | os.PathLike[str], runs: Sequence[Row]) -> None:
    """Draws the mean over the run against exploration, a panel for each reading, magnet and baseline.

    A dot is a run and a line the mean over seeds, in the world that jumps and in the one that stands still;
    diamonds are decreasing explorations at their first value; dashed is SPG's mean.
    """
    with figures.figure(path, width=10.0, height=0.6 + 2.4 * len(_kinds(runs))) as figure:
        _grid(figure, runs, _over_exploration, "mean over the run")


def draw_curves(path: str | os.PathLike[str], curves: Sequence[Row], *, jump_every: int) -> None:
    """Draws the last cycle over time, mean over seeds, a panel for each reading, magnet and baseline."""
    with figures.figure(path, width=10.0, height=0.6 + 2.4 * len(_kinds(curves))) as figure:
        panel = functools.partial(_over_time, jump_every=jump_every)
        _grid(figure, curves, panel, "mean over seeds")


def _kinds(rows: Sequence[Row]) -> list[tuple[str, float]]:
    return list(dict.fromkeys((row["reading"], row["magnet_strength"]) for row in rows))


def _grid(figure: Any, rows: Sequence[Row], panel: Callable[[Any, list[Row]], None], what: str) -> None:
    """A row of panels for each reading and magnet, a column for each baseline, and one legend."""
    kinds, baselines = _kinds(rows), list(dict.fromkeys(row["baseline"] for row in rows))
    panels = figure.subplots(len(kinds), len(baselines), sharex=True, sharey="row", squeeze=False)
    for (reading, magnet), line in zip(kinds, panels, strict=True):
        for baseline, axes in zip(baselines, line, strict=True):
            name = (reading, magnet, baseline)
            panel(axes, [r for r in rows if (r["reading"], r["magnet_strength"], r["baseline"]) == name])
            axes.set_title(f"{_ROWS[reading]}, magnet {magnet:g}, {_BASELINES[baseline]}", fontsize=8)
        # After all panels of the line: a limit ends the automatic choice for those that share it.
        line[0].set_ylim(bottom=0)
        line[0].set_ylabel(f"{_MEASURES[reading]}, {what}", fontsize=8)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside upper center", ncols=6)


def _over_exploration(axes: Any, rows: Sequence[Row]) -> None:
    constant = [row for row in rows if row["learner"] != "spg" and row["schedule"] == "constant"]
    values = sorted({row["exploration"] for row in rows if row["learner"] != "spg"})
    place = {value: index for index, value in enumerate(values)}
    for world, colour, words in (
        ("jumping", figures.COLOURS[0], "the game jumps"),
        ("still", figures.COLOURS[4], "it stands still"),
    ):
        mine = [row for row in constant if row["world"] == world]
        axes.plot(
            [place[row["exploration"]] for row in mine],
            [row["tracking"] for row in mine],
            "o",
            color=colour,
            markersize=3,
            alpha=0.3,
        )
        steps = sorted({row["exploration"] for row in mine})
        axes.plot(
            [place[step] for step in steps], [_mean(mine, step) for step in steps], color=colour, label=words
        )
        falling = [row for row in rows if row["schedule"] == "decreasing" and row["world"] == world]
        starts = sorted({row["exploration"] for row in falling})
        axes.plot(
            [place[start] for start in starts],
            [_mean(falling, start) for start in starts],
            "D",
            color=colour,
            markersize=5,
            markeredgecolor="black",
            label=f"{words}, decreasing",
        )
        spg = [row["tracking"] for row in rows if row["learner"] == "spg" and row["world"] == world]
        axes.axhline(np.mean(spg), color=colour, linestyle="--", linewidth=1, label=f"{words}, SPG")
    axes.set_xticks(range(len(values)), [f"{value:g}" for value in values], fontsize=8)
    if axes.get_subplotspec().is_last_row():
        axes.set_xlabel("exploration", fontsize=9)


def _mean(rows: Sequence[Row], exploration: float) -> float:
    return float(np.mean([row["tracking"] for row in rows if row["exploration"] == exploration]))


def _over_time(axes: Any, rows: Sequence[Row], *, jump_every: int) -> None:
    for colour, (exploration, words) in zip(figures.COLOURS, _SHOWN, strict=False):
        mine = [row for row in rows if row["learner"] != "spg" and row["exploration"] == exploration]
        axes.plot(
            [row["update"] for row in mine],
            [row["gap"] for row in mine],
            color=colour,
            linewidth=1,
            label=words,
        )
    mine = [row for row in rows if row["learner"] == "spg"]
    axes.plot(
        [row["update"] for row in mine],
        [row["gap"] for row in mine],
        color="black",
        linestyle="--",
        linewidth=1,
        label="SPG",
    )
    last = max((row["update"] for row in rows), default=0)
    for jump in range(0, last, jump_every):
        axes.axvline(jump, color="grey", linewidth=0.8, linestyle=":")
    if axes.get_subplotspec().is_last_row():
        axes.set_xlabel("update in the last cycle", fontsize=9)
    axes.tick_params(axis="x", labelsize=8)
