"""Compiled trees on disk: arrays and text, nothing that executes."""

import json
import os
import zipfile
from typing import Any

import numpy as np

from pohp_neurd import files
from pohp_neurd.finite import tree as trees

_ARRAYS = (
    "parent",
    "first_child",
    "num_children",
    "incoming_action",
    "player",
    "chance",
    "rewards",
    "information_state",
    "state_player",
    "legal",
    "features",
)
_VERSION = 1


def save(path: str | os.PathLike[str], tree: trees.Tree) -> None:
    """Writes `tree` to `path`, whole or not at all."""
    told = {
        "version": _VERSION,
        "num_agents": tree.num_agents,
        "num_actions": tree.num_actions,
        "levels": tree.levels,
        "name": tree.name,
        "information_state_strings": tree.information_state_strings,
    }
    text = np.frombuffer(json.dumps(told).encode(), np.uint8)
    with files.atomic(path, binary=True) as file:
        np.savez_compressed(file, told=text, **{name: getattr(tree, name) for name in _ARRAYS})


def load(path: str | os.PathLike[str]) -> trees.Tree:
    """The tree in `path`; a ValueError that names the file where it is not one, or damaged."""
    try:
        # Opened here: numpy does not close a file that turns out to be no archive.
        with open(path, "rb") as content, np.load(content, allow_pickle=False) as file:
            told: dict[str, Any] = json.loads(file["told"].tobytes())
            arrays = {name: file[name] for name in _ARRAYS}
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{os.fspath(path)} is not a saved tree, or is damaged: {error}.") from None
    if told.pop("version") != _VERSION:
        raise ValueError(f"{os.fspath(path)} is a saved tree of another version: compile the game again.")
    told["levels"] = tuple(told["levels"])
    told["information_state_strings"] = tuple(told["information_state_strings"])
    return trees.Tree(**told, **arrays)
