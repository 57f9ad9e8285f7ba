"""The study of memory: exploitability, and seconds, over what agents remember."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pohp_neurd.results import figures

_PANELS = {
    "floor": "exploitability, least of all runs",
    "update_seconds": "CPU seconds of an expected update",
}


def draw(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> None:
    """Draws a line for each game of `titles`; a hollow mark where agents have perfect recall."""
    memories = sorted({row["agent_state"] for row in rows}, key=length)
    with figures.figure(path, width=10.0, height=4.2) as figure:
        panels = figure.subplots(1, len(_PANELS))
        for axes, (column, words) in zip(panels, _PANELS.items(), strict=True):
            for index, (name, title) in enumerate(titles.items()):
                mine = [row for row in rows if row["game"] == name and row[column] != ""]
                places = [memories.index(row["agent_state"]) for row in mine]
                look = figures.look(index)._asdict()
                axes.plot(places, [row[column] for row in mine], label=title, **look)
                perfect = [row for row in mine if row["recall"] == "perfect"]
                axes.plot(
                    [memories.index(row["agent_state"]) for row in perfect],
                    [row[column] for row in perfect],
                    **look | {"linestyle": "none"},
                    markerfacecolor="white",
                )
            axes.set_yscale("log")
            axes.set_xticks(range(len(memories)), [_label(name) for name in memories], fontsize=8)
            axes.set_ylabel(words, fontsize=9)
        figures.legend_below(figure, *panels[0].get_legend_handles_labels(), ncols=7)


def length(memory: str) -> float:
    """What is remembered, as a number to sort by."""
    if memory == "observation":
        return 0.0
    return float(memory.removeprefix("window:")) if memory.startswith("window:") else float("inf")


def _label(memory: str) -> str:
    """In short lines, as there are many side by side."""
    broken = {"_": "\n", ":": "\n", "observation": "obser-\nvation", "information": "infor-\nmation"}
    for word, lines in broken.items():
        memory = memory.replace(word, lines)
    return memory
