"""A game that is played live: its sizes, and what a network sees of its states."""

from typing import Any, NamedTuple

import numpy as np
import pyspiel
from jaxtyping import Float
from open_spiel.python import observation as openspiel_observation

from pohp_neurd.openspiel import compile as compiling


class LiveGame(NamedTuple):
    """A game and what it takes to play it live."""

    game: Any
    """With simultaneous moves taken in turns."""
    num_seats: int
    num_actions: int
    tensor_size: int
    max_utility: float
    observer: Any
    """`set_from(state, seat)` writes into its `tensor`, the same float32 array every time."""

    @property
    def num_features(self) -> int:
        """Length of a network's input: the game's tensor, then the seat as a one-hot vector."""
        return self.tensor_size + self.num_seats

    def features(self, state: Any, seat: int) -> Float[np.ndarray, "D"]:
        """A network's input at one state; `states.play` fills whole batches with the same."""
        self.observer.set_from(state, seat)
        return np.concatenate([self.observer.tensor, np.eye(self.num_seats, dtype=np.float32)[seat]])


def live_game(game: str | Any) -> LiveGame:
    """`game`, or the game of that name, ready to be played live.

    >>> live_game("phantom_ttt").num_features
    110
    """
    game = compiling.load_game(game)
    kind = game.get_type()
    if not (kind.provides_information_state_tensor or kind.provides_observation_tensor):
        raise ValueError(f"{game} gives neither information-state nor observation tensors for a network.")
    observer = _observer(game)
    size = len(observer.tensor)
    return LiveGame(
        game, game.num_players(), game.num_distinct_actions(), size, float(game.max_utility()), observer
    )


class Views:
    """What the network sees in every slot: two arrays, allocated once and written in place."""

    def __init__(self, world: LiveGame, slots: int) -> None:
        self.features = np.zeros((slots, world.num_features), np.float32)
        self.legal = np.zeros((slots, world.num_actions), bool)
        # Assigning to a slice of a memory view costs a third of what numpy asks for a short row.
        self._flat = memoryview(self.features.reshape(-1).data)
        self._masks = memoryview(self.legal.reshape(-1).view(np.uint8).data)
        self._observer, self._tensor = world.observer, memoryview(world.observer.tensor)
        self._seats = np.eye(world.num_seats, dtype=np.float32)

    def fill(self, states: list[Any], seats: list[int]) -> None:
        """Writes the first `len(states)` rows; the others keep what was there and mean nothing."""
        width, num_actions, size = self.features.shape[1], self.legal.shape[1], len(self._tensor)
        flat, masks, set_from, tensor = self._flat, self._masks, self._observer.set_from, self._tensor
        start = first = 0
        for state, seat in zip(states, seats, strict=True):
            set_from(state, seat)
            flat[start : start + size] = tensor
            start += width
            masks[first : first + num_actions] = bytes(state.legal_actions_mask())
            first += num_actions
        self.features[: len(states), size:] = self._seats[seats]


class _Asking:
    """An observer that asks the state for its tensor as a list: several times as slow, but always there."""

    def __init__(self, size: int) -> None:
        self.tensor = np.zeros(size, np.float32)

    def set_from(self, state: Any, seat: int) -> None:
        self.tensor[:] = compiling.information_tensor(state, seat)


def _observer(game: Any) -> Any:
    """OpenSpiel's observer where it says what the states' own tensors say, and else one that asks them."""
    perfect_recall = game.get_type().provides_information_state_tensor
    size = game.information_state_tensor_size() if perfect_recall else game.observation_tensor_size()
    asking = _Asking(size)
    kind = pyspiel.IIGObservationType(perfect_recall=perfect_recall)
    try:
        quick = openspiel_observation.make_observation(game, kind if perfect_recall else None)
    except (RuntimeError, ValueError):
        return asking
    tensor = getattr(quick, "tensor", None)
    if tensor is None or tensor.dtype != np.float32 or tensor.shape != (size,):
        return asking
    # The one that C++ fills itself needs no detour through Python.
    writer = getattr(quick, "_observation", quick)
    return _Quick(writer, tensor) if _agree(game, writer.set_from, tensor, asking) else asking


class _Quick(NamedTuple):
    """An observer that writes into one array."""

    writer: Any
    tensor: np.ndarray

    @property
    def set_from(self) -> Any:
        return self.writer.set_from


def _agree(game: Any, set_from: Any, tensor: np.ndarray, asking: _Asking) -> bool:
    """Whether both observers show the same at every decision of one random episode."""
    rng = np.random.default_rng(0)
    state = game.new_initial_state()
    while not state.is_terminal():
        seat = state.current_player()
        if seat >= 0:
            set_from(state, seat)
            asking.set_from(state, seat)
            if not np.array_equal(tensor, asking.tensor):
                return False
            actions = state.legal_actions()
        else:
            actions = [outcome for outcome, _ in state.chance_outcomes()]
        state.apply_action(actions[rng.integers(len(actions))])
    return True
