"""An ablation in catch: for every setting, what its seeds came to and what is left of their networks."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pohp_neurd.results import figures

_PANELS = (
    ("late_misses", "balls missed in the\nlast tenth of the steps", (-0.03, 1.03)),
    ("entropy", "policy: entropy,\nmean over boards", (-0.04, 1.15)),
    ("silent_units_1", "torso: silent ReLUs\nof the first layer", (-0.03, 1.03)),
    ("value_correlation", "critic: correlation\nwith its exact target", (-1.05, 1.05)),
)


def draw(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Draws every setting as it was last seen: a line for each, a dot for each seed, a bar for the median.

    The names of settings that are behind the others say at how many steps that was.
    """
    settings = sorted({row["setting"] for row in rows}, key=lambda name: (not name.startswith("spg"), name))
    last = {name: max(row["steps"] for row in rows if row["setting"] == name) for name in settings}
    names = [
        name if last[name] == max(last.values()) else f"{name} ({last[name]:,} steps)" for name in settings
    ]
    with figures.figure(path, width=11.0, height=1.4 + 0.3 * len(settings)) as figure:
        panels = figure.subplots(1, len(_PANELS), sharey=True)
        for axes, (column, label, limits) in zip(panels, _PANELS, strict=True):
            for place, name in enumerate(settings):
                values = [r[column] for r in rows if (r["setting"], r["steps"]) == (name, last[name])]
                colour = figures.COLOURS[0] if name.startswith("spg") else figures.COLOURS[1]
                axes.plot(values, [place] * len(values), "o", color=colour, alpha=0.5, markersize=5)
                axes.plot([np.median(values)], [place], "|", color=colour, markersize=15)
            axes.set_xlim(*limits)
            axes.set_xlabel(label, fontsize=9)
        panels[0].set_yticks(range(len(settings)), names, fontsize=9)
        panels[0].invert_yaxis()
        title = f"catch at the paper's learning rate, after {max(last.values()):,} steps"
        figure.suptitle(title, fontsize=10)
