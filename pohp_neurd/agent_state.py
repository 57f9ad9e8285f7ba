"""What an agent remembers: update functions u from histories to agent states.

Pipeline: observation -> **agent state** -> logits (Morrill et al. 2022, Section 2.1). The agent chooses its
update function, not the game. Each is a pair (init, update) that sees the process only through what the
agent itself sees: its observations and its own actions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import process, types


class UpdateFunction(NamedTuple):
    """An agent's memory as two pure functions."""

    init: Callable[[types.History], Any]
    """The agent state at the agent's first active history."""
    update: Callable[[Any, types.Action, types.History], Any]
    """The agent state after acting in one state and coming to a next active history."""


def last_observation(world: process.Process) -> UpdateFunction:
    """The latest observation, and nothing of what came before."""
    return UpdateFunction(world.observation, lambda state, action, history: world.observation(history))


class Window(NamedTuple):
    """The last k pairs of an action and the observation that followed it, the newest last."""

    actions: Int[Array, "k"]
    """-1 before the first action."""
    observations: Float[Array, "k D"]


def window(world: process.Process, length: int) -> UpdateFunction:
    """The last `length` pairs of (action, observation); zeros and action -1 before the beginning."""
    if length < 1:
        raise ValueError(f"a window must have a length of at least 1, but has {length}.")

    def init(history: types.History) -> Window:
        observation = world.observation(history)
        earlier = jnp.zeros((length - 1, *observation.shape), observation.dtype)
        actions = jnp.full(length, -1, jnp.int32)
        return Window(actions, jnp.concatenate([earlier, observation[None]]))

    def update(state: Window, action: types.Action, history: types.History) -> Window:
        newest = jnp.asarray(action, jnp.int32)[None]
        return Window(
            jnp.concatenate([state.actions[1:], newest]),
            jnp.concatenate([state.observations[1:], world.observation(history)[None]]),
        )

    return UpdateFunction(init, update)


class Timed(NamedTuple):
    """Another agent state, and how many actions the agent has taken."""

    time: Int[Array, ""]
    state: Any


def timed(inner: UpdateFunction) -> UpdateFunction:
    """`inner` with a count of own actions, so that no agent state comes twice in a lifetime."""
    return UpdateFunction(
        init=lambda history: Timed(jnp.zeros((), jnp.int32), inner.init(history)),
        update=lambda state, action, history: Timed(
            state.time + 1, inner.update(state.state, action, history)
        ),
    )
