"""Average policies: what self-play brings to an equilibrium, where the current policy may go in circles.

In a table the average is exact, in sequence form: over time, each state's policy is weighted with the
probability that its own agent would come to it (Hoda et al. 2010; Zinkevich et al. 2007). For a network it
is a network too: an exponential average of its parameters, which costs one pass over them, has no buffer
to keep, and plays wherever the network does.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, types


@dataclasses.dataclass(frozen=True)
class Weights:
    """How much update t = 1, 2, … counts in an average: t^power / (1 − forgetting)^t.

    Uniform at power 0, linear at power 1; geometric with `forgetting`, by which all that was before fades
    at every update.
    """

    power: float = 0.0
    forgetting: float = 0.0

    def __post_init__(self) -> None:
        checks.non_negative("average power", self.power)
        checks.in_unit_interval("average forgetting", self.forgetting)

    def add(self, total: Float[Array, "..."], value: Float[Array, "..."], updates: Int[Array, ""]) -> Array:
        """The running sum after `value`, of the update that follows `updates` others."""
        weight = (updates.astype(total.dtype) + 1) ** self.power
        return (1 - self.forgetting) * total + weight * value.astype(total.dtype)


def average(total: Float[Array, "S A"], legal: Bool[Array, "S A"]) -> Float[Array, "S A"]:
    """The average policy; uniform at states that were never reached."""
    mass = jnp.sum(total, axis=1, keepdims=True)
    allowed = legal.astype(total.dtype)
    uniform = allowed / jnp.maximum(jnp.sum(allowed, axis=1, keepdims=True), 1.0)
    return jnp.where(mass > 0, total / jnp.where(mass > 0, mass, 1.0), uniform)


class Smoothed(NamedTuple):
    """Parameters, averaged over the last part of training."""

    parameters: types.Parameters
    updates: Int[Array, ""]


def smooth(state: Smoothed, parameters: types.Parameters, rate: float) -> Smoothed:
    """The average after one more update: exponential with `rate`, and a plain mean until 1 / rate updates."""
    count = state.updates + 1
    step = jnp.maximum(rate, 1.0 / count.astype(jnp.float32))
    return Smoothed(moved(state.parameters, parameters, step), count)


def moved(old: types.Parameters, new: types.Parameters, share: types.Scalar) -> types.Parameters:
    """`old`, after that share of its way to `new`; in the precision of `old`."""
    return jax.tree.map(lambda a, b: a + jnp.asarray(share, a.dtype) * (b - a), old, new)
