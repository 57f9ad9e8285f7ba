"""Regret over time: quantiles over runs, estimator by estimator, under Theorem 1's bound."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import lines

from pohp_neurd.experiment.plot import style

_NAMES = {"importance": "importance weights", "ix": "IX", "cix": "CIX"}
_QUANTILES: Any = {
    "regret_median": ("median", "-"),
    "regret_95": ("95%", "--"),
    "regret_worst": ("worst", ":"),
}
# IX and CIX often lie on each other: the wide line stays visible under the narrow one.
_WIDTHS = {"importance": 1.6, "ix": 3.2, "cix": 1.2}


def draw(
    rows: Sequence[Mapping[str, Any]], path: str | os.PathLike[str], *, title: str, delta: float
) -> None:
    """Draws the rows of a bandit run's metrics.csv: quantiles of every estimator, and the bound."""
    curves: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        curves.setdefault(row["estimator"], []).append(row)
    with style.picture(path) as figure:
        axes = figure.subplots()
        handles = []
        for place, (estimator, line) in enumerate(curves.items()):
            look: Any = {"color": style.COLOURS[place], "linewidth": _WIDTHS[estimator]}
            for name, (_, dashes) in _QUANTILES.items():
                axes.plot(_column(line, "updates"), _column(line, name), linestyle=dashes, **look)
            handles.append(lines.Line2D([], [], label=_NAMES[estimator], **look))
        for label, dashes in _QUANTILES.values():
            handles.append(lines.Line2D([], [], label=f"{label} of the runs", linestyle=dashes, color="grey"))
        bounded = [line for line in curves.values() if line[0]["bound"] != ""]
        if bounded:
            rounds, bound = _column(bounded[0], "updates"), _column(bounded[0], "bound")
            handles += axes.plot(rounds, bound, color="black", label=f"Theorem 1's bound, δ = {delta:g}")
        axes.set_xlabel("rounds")
        axes.set_ylabel("regret against the best arm")
        axes.set_title(title)
        axes.set_xlim(left=0)
        axes.legend(handles=handles, fontsize=8)


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(row[name]) for row in rows]
