"""Graphs as files: one npz without pickle, in the smallest whole numbers that hold what there is."""

import dataclasses
import json
import zipfile
import zlib
from typing import Any, NamedTuple

import numpy as np

from pohp_neurd import files
from pohp_neurd.finite import graph

_FORMAT = 1
_SIZES = ("int8", "int16", "int32", "int64", "float32", "float64")
_LEFT_OUT = ("first_edge", "chance", "rewards", "name", "num_agents", "num_actions")  # or written otherwise


_DAMAGE = (
    *(ValueError, LookupError, TypeError, AttributeError, OSError, EOFError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, MemoryError, OverflowError),
)
"""What reading a file of anything can raise."""


class Written(NamedTuple):
    """What a file holds."""

    world: graph.Graph
    about: dict[str, str]
    """What else there is to say, by name."""
    digests: np.ndarray
    """[S] of 16 bytes: what tells the agent states apart."""


def write(path: files.Path, written: Written) -> None:
    """Writes the file, whole or not at all."""
    world = written.world
    paid = np.flatnonzero(np.any(world.rewards, axis=1))
    arrays = {
        field.name: getattr(world, field.name)
        for field in dataclasses.fields(world)
        if field.name not in _LEFT_OUT
    }
    arrays |= {
        "num_edges": np.diff(world.first_edge),
        "chance": world.chance[world.player[world.source] < 0],
        "paid": paid,
        "rewards": world.rewards[paid],
    }
    about = {"name": world.name, "num_agents": world.num_agents, **written.about, "format": _FORMAT}
    with files.atomic(path, binary=True) as file:
        np.savez(
            file,
            about=np.frombuffer(json.dumps(about).encode(), np.uint8),
            digests=np.frombuffer(written.digests.tobytes(), np.uint8),
            **{name: _smallest(array) for name, array in arrays.items()},  # type: ignore[arg-type]
        )


def read(path: files.Path) -> Written:
    """What a file holds; a ValueError if it is damaged, or no file of a graph."""
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            about = json.loads(file["about"].tobytes())
            if about.pop("format") != _FORMAT:
                raise ValueError
            arrays = {name: file[name] for name in file.files if name != "about"}
        digests = arrays.pop("digests").view("V16")
        world = _unpacked(about.pop("name"), about.pop("num_agents"), arrays)
        if len(digests) != world.num_agent_states or not _is_sound(world):
            raise ValueError
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}.") from None
    except _DAMAGE:
        raise ValueError(f"{path} is damaged, or not a file that save_graph wrote.") from None
    return Written(world, about, digests)


def _smallest(array: np.ndarray) -> np.ndarray:
    """The same numbers, in the smallest dtype that holds them."""
    if array.dtype == bool or not array.size:
        return array
    for dtype in _SIZES[:-1]:
        if (
            array.dtype.kind == "i"
            and not np.iinfo(dtype).min <= array.min() <= array.max() <= np.iinfo(dtype).max
        ):
            continue
        small = array.astype(dtype)
        if np.array_equal(small, array):
            return small
    return array


def _unpacked(name: str, num_agents: int, arrays: dict[str, np.ndarray]) -> graph.Graph:
    player, num_edges = arrays["player"].astype(np.int32), arrays.pop("num_edges")
    first_edge = np.append(0, np.cumsum(num_edges, dtype=np.int64))
    rewards = np.zeros((first_edge[-1], num_agents))
    rewards[arrays.pop("paid")] = arrays.pop("rewards")
    chance = np.ones(first_edge[-1])
    chance[np.repeat(player < 0, num_edges)] = arrays.pop("chance")
    kinds: dict[str, Any] = {"levels": np.int64, "legal": bool, "features": np.float32}
    rest = {field: array.astype(kinds.get(field, np.int32)) for field, array in arrays.items()}
    return graph.Graph(
        num_agents=num_agents,
        num_actions=rest["legal"].shape[1],
        first_edge=first_edge,
        chance=chance,
        rewards=rewards,
        name=name,
        **rest,
    )


def _is_sound(world: graph.Graph) -> bool:
    """Whether all numbers are where they can be: compiled code does not look before it reads."""
    nodes, edges, states = world.num_nodes, int(world.first_edge[-1]), world.num_agent_states
    ends = world.levels
    acting, child = world.player >= 0, world.child
    return (
        [len(world.agent_state), len(world.seen), len(world.first_edge) - 1, int(ends[-1])] == [nodes] * 4
        and [len(world.action), len(child)] == [edges] * 2
        and [len(world.state_player), len(world.features)] == [states] * 2
        and bool(
            np.all(np.diff(world.first_edge) > 0)
            and np.all(np.diff(ends) > 0)
            and ends[0] == 0
            and np.all(np.diff(world.state_player) >= 0)
            and _within(world.player, graph.CHANCE, world.num_agents)
            and _within(world.agent_state, -1, states)
            and np.all((world.agent_state >= 0) == acting)
            and np.all(world.state_player[world.agent_state[acting]] == world.player[acting])
            and np.all(_legal(world))
            and _within(child, -1, nodes)
            and np.all((world.level[child] == world.level[world.source] + 1) | (child < 0))
        )
    )


def _legal(world: graph.Graph) -> np.ndarray:
    """Whether each agent's action is legal; an IndexError if it is not even a number of one."""
    acted = world.agent_state[world.source] >= 0
    return (world.action[acted] >= 0) & world.legal[
        world.agent_state[world.source][acted], world.action[acted]
    ]


def _within(array: np.ndarray, low: int, high: int) -> bool:
    return bool(np.all((array >= low) & (array < high)))
