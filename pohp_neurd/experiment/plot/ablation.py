"""An ablation in catch: for every setting, what its seeds came to and what is left of their networks."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pohp_neurd.experiment.plot import style

_PANELS = (
    ("late_misses", "balls missed\n(last tenth of the steps)", (-0.03, 0.9)),
    ("entropy", "policy: entropy\n(mean over boards, log 3 = 1.10)", (-0.04, 1.15)),
    ("silent_units_2", "torso: silent ReLUs\n(second layer)", (-0.03, 1.03)),
    ("value_correlation", "critic: correlation with\nwhat it should say", (-1.05, 1.05)),
)


def draw(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Draws the last mark of every setting: a line for each, a dot for each seed, a bar for their mean."""
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    with style.picture(path, width=11.0, height=1.6 + 0.3 * len(settings)) as figure:
        for axes, (column, label, limits) in zip(
            figure.subplots(1, len(_PANELS), sharey=True), _PANELS, strict=True
        ):
            for place, setting in enumerate(settings):
                here = [row for row in rows if row["setting"] == setting]
                last = max(row["steps"] for row in here)
                values = [row[column] for row in here if row["steps"] == last]
                colour = style.COLOURS[0] if setting.startswith("spg") else style.COLOURS[1]
                axes.plot(values, [place] * len(values), "o", color=colour, alpha=0.5, markersize=5)
                axes.plot([sum(values) / len(values)], [place], "|", color=colour, markersize=15)
            axes.set_xlim(*limits)
            axes.set_xlabel(label, fontsize=9)
            axes.set_yticks(range(len(settings)), settings, fontsize=9)
        axes.invert_yaxis()  # shared by all panels
