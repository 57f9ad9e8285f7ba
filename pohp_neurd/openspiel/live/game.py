"""A game that is played live: its sizes, what a network sees of its states, and networks for it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from pohp_neurd import neural, policy, types
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import features


class LiveGame(NamedTuple):
    """A game and what it takes to play it live."""

    game: Any
    """With simultaneous moves taken in turns."""
    num_seats: int
    num_actions: int
    tensor_size: int
    max_utility: float
    observer: features.Observer

    @property
    def num_features(self) -> int:
        """Length of a network's input: the game's tensor, then the seat as a one-hot vector."""
        return self.tensor_size + self.num_seats

    def features(self, state: Any, seat: int) -> Float[np.ndarray, "D"]:
        """A network's input at one state; `Views` fills whole batches with the same."""
        self.observer.set_from(state, seat)
        return np.concatenate([self.observer.tensor, np.eye(self.num_seats, dtype=np.float32)[seat]])


def live_game(game: str | Any) -> LiveGame:
    """`game`, or the game of that name, ready to be played live; a LiveGame stays what it is.

    >>> live_game("phantom_ttt").num_features
    110
    """
    if isinstance(game, LiveGame):
        return game
    game = compiling.load_game(game)
    view = features.tensor_view(game)
    if view is None:
        raise ValueError(f"{game} gives neither information-state nor observation tensors for a network.")
    observer = features.observer(game, view)
    sizes = game.num_players(), game.num_distinct_actions(), len(observer.tensor)
    return LiveGame(game, *sizes, float(game.max_utility()), observer)


def network(
    world: LiveGame, hidden_layers: Sequence[int], *, critic: bool = True, separate: bool = False
) -> policy.Model:
    """A network on `LiveGame.features`; with `separate`, parameters of its own for every seat."""
    model = neural.network(world.num_features, world.num_actions, torso=hidden_layers, critic=critic)
    if not separate:
        return model
    num_seats = world.num_seats

    def init(*, key: types.Key) -> types.Parameters:
        return jax.vmap(lambda one: model.init(key=one))(jax.random.split(key, num_seats))

    def apply(parameters: types.Parameters, agent_state: Any) -> policy.Output:
        seat = jnp.argmax(agent_state[-num_seats:])
        outputs = jax.vmap(model.apply, in_axes=(0, None))(parameters, agent_state)
        return jax.tree.map(lambda leaf: leaf[seat], outputs)

    return policy.Model(init, apply)


class Views:
    """What the network sees in every slot: two arrays, allocated once and written in place."""

    def __init__(self, world: LiveGame, slots: int) -> None:
        self.features = np.zeros((slots, world.num_features), np.float32)
        self.legal = np.zeros((slots, world.num_actions), bool)
        # Assigning to a slice of a memory view costs a third of what numpy asks for a short row.
        self._flat = memoryview(self.features.reshape(-1).data)
        self._masks = memoryview(self.legal.reshape(-1).view(np.uint8).data)
        self._set_from, self._tensor = world.observer.set_from, memoryview(world.observer.tensor.data)
        self._seats = np.eye(world.num_seats, dtype=np.float32)

    def fill(self, states: list[Any], seats: list[int]) -> None:
        """Writes the first `len(states)` rows; the others keep what was there and mean nothing."""
        width, num_actions, size = self.features.shape[1], self.legal.shape[1], len(self._tensor)
        flat, masks, set_from, tensor = self._flat, self._masks, self._set_from, self._tensor
        start = first = 0
        for state, seat in zip(states, seats, strict=True):
            set_from(state, seat)
            flat[start : start + size] = tensor
            start += width
            masks[first : first + num_actions] = bytes(state.legal_actions_mask())
            first += num_actions
        self.features[: len(states), size:] = self._seats[seats]
