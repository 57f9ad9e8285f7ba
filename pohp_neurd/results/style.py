"""One look for all figures: readable in print and for colour-blind readers, written whole or not at all.

Settings are told apart by name, and by colour, line and marker together.
"""

import contextlib
import io
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import cycler
import matplotlib
from matplotlib import figure as figures
from matplotlib import ticker
from matplotlib.backends import backend_agg

from pohp_neurd import files

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
    axes.yaxis.set_minor_formatter(ticker.FuncFormatter(_sparse))


def _sparse(value: float, _: Any) -> str:
    """Labels at 2 and 5 times a power of ten: enough to read a logarithmic axis by."""
    text = f"{value:.0e}"
    return f"{value:g}" if text[0] in "25" else ""
