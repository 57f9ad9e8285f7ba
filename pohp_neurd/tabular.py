"""Logits in a table: a row for every agent state, a column for every action."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from pohp_neurd import policy, types


class Table(NamedTuple):
    """Parameters of a tabular model."""

    logits: Float[Array, "S A"]
    values: Float[Array, "S"] | None


def table(
    num_states: int, num_actions: int, *, critic: bool = False, dtype: DTypeLike | None = None
) -> policy.Model:
    """A tabular model over agent states 0 to S − 1; its first policy is uniform."""
    for name, size in (("num_states", num_states), ("num_actions", num_actions)):
        if size < 1:
            raise ValueError(f"{name} must be at least 1, but is {size}.")

    def init(*, key: types.Key | None = None) -> Table:
        del key  # zeros need no randomness
        values = jnp.zeros(num_states, dtype) if critic else None
        return Table(jnp.zeros((num_states, num_actions), dtype), values)

    def apply(parameters: Table, agent_state: types.Action) -> policy.Output:
        values = parameters.values
        value = None if values is None else values[agent_state]
        return policy.Output(parameters.logits[agent_state], value)

    return policy.Model(init, apply)
