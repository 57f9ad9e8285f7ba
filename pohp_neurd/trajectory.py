"""What one agent saw, did, with what probability, and what it got.

Pipeline: action -> **trajectory** -> return. A trajectory is a Step with a leading axis of T decisions.
Rewards and continuations stand at the decision that they follow, as `returns` expects them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int


class Step(NamedTuple):
    """One decision of one agent, or T of them with a leading axis on every field."""

    agent_state: Any
    """Whatever the agent's model takes: a row of a table, or features."""
    legal: Bool[Array, "*T A"]
    action: Int[Array, "*T"]
    probability: Float[Array, "*T"]
    """π(A) at the time of acting."""
    reward: Float[Array, "*T"]
    """On arrival at the agent's next active history."""
    continuation: Float[Array, "*T"]
    """Of that history: 0 where it is terminal."""
    valid: Bool[Array, "*T"]
    """False for padding."""


Trajectory = Step


def stack(steps: Sequence[Step]) -> Trajectory:
    """The steps of one trajectory, in order, as one Step with a leading axis."""
    if not steps:
        raise ValueError("a trajectory needs at least one step.")
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *steps)


def pad(trajectory: Trajectory, length: int) -> Trajectory:
    """`trajectory` followed by invalid steps of zeros, so that all have the same `length`.

    Fixed lengths are what lets one compiled function serve episodes of any length.
    """
    missing = length - trajectory.action.shape[0]
    if missing < 0:
        raise ValueError(f"a trajectory of {trajectory.action.shape[0]} steps does not fit into {length}.")
    return jax.tree.map(lambda leaf: jnp.pad(leaf, [(0, missing)] + [(0, 0)] * (leaf.ndim - 1)), trajectory)


class Tally(NamedTuple):
    """What a batch of episodes under one policy has to say of each agent state and action.

    Every direction is linear in the return, and an action's probability at a state is the same throughout
    the batch, so a learner that updates once from the batch loses nothing by these sums.
    """

    returns: Float[Array, "S A"]
    """The sum of the returns that followed the action."""
    visits: Float[Array, "S A"]
    """How often it was taken."""
    episodes: Float[Array, ""]
    """How many episodes the sums are over."""
