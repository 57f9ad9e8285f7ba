"""One look for all pictures: readable in print and for colour-blind readers, written whole or not at all."""

import contextlib
import io
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import cycler
import matplotlib
from matplotlib import figure as figures
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


@contextlib.contextmanager
def picture(path: str | os.PathLike[str], *, width: float = 6.4, height: float = 4.0) -> Iterator[Any]:
    """A figure to draw on, saved to `path` when the block ends; its folder is made only then.

    It has no window and no global state, so it works in threads, workers and without a screen.
    """
    path = pathlib.Path(path)
    with matplotlib.rc_context(_SETTINGS):
        figure = figures.Figure(figsize=(width, height), layout="constrained")
        backend_agg.FigureCanvasAgg(figure)
        yield figure
        content = io.BytesIO()  # all that can fail for what is drawn does so before anything is on disk
        figure.savefig(content, format=path.suffix.lstrip(".") or "png")
    with contextlib.suppress(FileExistsError, NotADirectoryError):  # a file is in its place: told below
        path.parent.mkdir(parents=True, exist_ok=True)
    with files.atomic(path, binary=True) as file:
        file.write(content.getbuffer())
