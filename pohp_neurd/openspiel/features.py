"""What a network sees of a game: the game's own tensor, then the seat as a one-hot vector."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from jaxtyping import Float
from open_spiel.python import observation as observations

from pohp_neurd.finite import tree as trees


def tensor_view(game: Any) -> str | None:
    """The name of a game's tensor: the information state's, failing that the observation's, or None."""
    kind = game.get_type()
    views = ("information_state_tensor", "observation_tensor")
    return next((view for view in views if getattr(kind, f"provides_{view}")), None)


def of_tree(tree: trees.Tree) -> Float[np.ndarray, "S D"]:
    """What a network sees of every information state of a compiled game."""
    seats = np.eye(tree.num_agents)[tree.state_player]
    return np.concatenate([tree.features, seats], axis=1).astype(np.float32)


class Observer(NamedTuple):
    """`set_from(state, player)` writes what the player sees into `tensor`, the same array every time."""

    set_from: Callable[[Any, int], None]
    tensor: Float[np.ndarray, "D"]


def observer(game: Any, view: str, *, everyone: bool = False) -> Observer:
    """An observer of the tensor `view`, for the player to move, or for `everyone` at any time.

    OpenSpiel's own observers write it without a Python list, several times as fast; nothing promises that it
    is the same tensor, so that one episode of random play has to show it.
    """
    tensor = np.zeros(getattr(game, f"{view}_size")(), np.float32)

    def ask(state: Any, player: int) -> None:
        tensor[:] = getattr(state, view)(player)

    asking = Observer(ask, tensor)
    kind = pyspiel.IIGObservationType(perfect_recall=True) if view == "information_state_tensor" else None
    try:
        quick = observations.make_observation(game, kind)
    except (RuntimeError, ValueError):
        return asking
    written = getattr(quick, "tensor", None)
    if written is None or written.dtype != np.float32 or written.shape != tensor.shape:
        return asking
    # The one that C++ fills itself needs no detour through Python.
    direct = Observer(getattr(quick, "_observation", quick).set_from, written)
    return direct if _agree(game, direct, asking, everyone) else asking


def _agree(game: Any, one: Observer, other: Observer, everyone: bool) -> bool:
    """Whether both observers show the same all through one random episode."""
    rng, state = np.random.default_rng(0), game.new_initial_state()
    while not state.is_terminal():
        mover = state.current_player()
        for player in range(game.num_players()) if everyone else [mover] * (mover >= 0):
            one.set_from(state, player)
            other.set_from(state, player)
            if not np.array_equal(one.tensor, other.tensor):
                return False
        actions = state.legal_actions()
        state.apply_action(actions[rng.integers(len(actions))])
    return True
