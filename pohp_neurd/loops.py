"""What every training loop on a finite game is: its state, its functions, and the weights of its average."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, learners
from pohp_neurd.finite import critic

NEVER = -1


class State(NamedTuple):
    """What must persist between updates."""

    learner: Any
    total: list[Float[Array, "_"]]
    """The weighted sum of realization plans, for the average policy: float64 where that is enabled."""
    updates: Int[Array, ""]
    steps: Int[Array, ""]
    """Decisions sampled since the last call of `advance` began."""
    diverged: Int[Array, ""]
    """The number of the first update after which the learner's state was not finite; NEVER if none."""
    info: learners.Info | None
    """Of the last update; None where a loop has none."""
    values: critic.Critic | None = None
    """Of histories, where they are learnt."""


@dataclasses.dataclass(frozen=True)
class Weights:
    """How much update t = 1, 2, … counts in an average policy: t^power / (1 − forgetting)^t.

    The average is what self-play brings to an equilibrium, where the current policy may go in circles. It is
    exact, in sequence form: each state's policy is weighted with the probability that its own agent would
    come to it (Hoda et al. 2010; Zinkevich et al. 2007). Uniform at power 0, linear at power 1; geometric
    with `forgetting`, by which all that was before fades at every update.
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


def averaged(total: Float[Array, "S A"], legal: Bool[Array, "S A"]) -> Float[Array, "S A"]:
    """The average policy; uniform at states that were never reached."""
    mass = jnp.sum(total, axis=1, keepdims=True)
    allowed = legal.astype(total.dtype)
    uniform = allowed / jnp.maximum(jnp.sum(allowed, axis=1, keepdims=True), 1.0)
    return jnp.where(mass > 0, total / jnp.where(mass > 0, mass, 1.0), uniform)


class Loop(NamedTuple):
    """Self-play as pure functions."""

    init: Callable[..., State]
    """A fresh state, from an arena and a `key`."""
    advance: Callable[..., State]
    """advance(arena, state, num_updates, key=key): the state after that many more updates, jitted. The
    randomness of an update is a function of `key` and its number: where calls are cut makes no difference."""
    policies: Callable[[Any, State], Float[Any, "S A"]]
    """The current policy of all agents as a table."""
    average: Callable[[Any, State], Float[Any, "S A"]]
    """The reach-weighted average policy of all agents as a table."""
