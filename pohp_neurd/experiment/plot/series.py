"""How the settings of a picture are told apart: by name, and by colour, line and marker together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pohp_neurd.experiment.plot import style

_NAMES = {"spg": "SPG", "neurd": "NeuRD", "neurd_cix": "NeuRD-CIX"}
_PLAIN = ("environment", "game", "input", "learner", "policy", "setting")
_LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2, 1, 1, 1, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


class Look(NamedTuple):
    """What matplotlib is to draw a setting with; any two of the first 35 differ in more than colour."""

    color: str
    linestyle: Any
    marker: str


def look(index: int) -> Look:
    """The look of the setting at `index`."""
    return Look(
        style.COLOURS[index % len(style.COLOURS)],
        _LINES[index % len(_LINES)],
        _MARKERS[index % len(_MARKERS)],
    )


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
