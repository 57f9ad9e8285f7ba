"""One page of HTML that holds its data, its style and its program, and asks no server for anything.

The parts stand in `page/`: the document, its style, and the program in the order of its names.
"""

import base64
import json
import pathlib
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

_PARTS = pathlib.Path(__file__).parent / "page"
_SCRIPTS = ("data", "chart", "drawing", "game", "states", "walk", "maps", "start")


def packed(array: Any) -> dict[str, Any]:
    """An array as JSON has it: its dtype, its shape, and its compressed bytes as text.

    >>> packed(np.zeros((2, 3), np.int32))["shape"]
    [2, 3]
    """
    plain = np.ascontiguousarray(array)
    little = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    return {"dtype": plain.dtype.name, "shape": list(plain.shape), **_compressed(little.tobytes())}


def packed_text(texts: list[str]) -> dict[str, Any]:
    """Many texts, compressed as one."""
    return _compressed(json.dumps(texts).encode())


def _compressed(content: bytes) -> dict[str, Any]:
    return {"zlib": base64.b64encode(zlib.compress(content, 9)).decode("ascii")}


def page(data: Mapping[str, Any]) -> str:
    """The document that shows `data`."""
    filled = {
        "style": (_PARTS / "style.css").read_text("utf-8"),
        "script": "\n".join((_PARTS / f"{name}.js").read_text("utf-8") for name in _SCRIPTS),
        # Within a script element nothing but its own end tag has a meaning.
        "data": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
    }
    text = (_PARTS / "page.html").read_text("utf-8")
    for name, part in filled.items():
        text = text.replace(f"<!-- {name} -->", part, 1)
    return text
