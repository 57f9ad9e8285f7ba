"""A tiny discounted Markov decision process with values in closed form.

In the good state, `stay` keeps the good state with probability 1 − slip; in every other case the
next state is the bad one. In the bad state, `move` leads back to the good one. Arriving in the bad state
costs 1. The continuation probability is the discount.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pohp_neurd import checks, process, types

GOOD, BAD = 0, 1
STAY, MOVE = 0, 1


class Place(NamedTuple):
    """A history, as far as the future depends on it."""

    state: Array
    arrived: Array
    """Whether a decision led here: the first history costs nothing."""


@dataclasses.dataclass(frozen=True)
class TwoStateMDP:
    """The process; `discount` is its continuation probability, the same at every history."""

    discount: float = 0.9
    slip: float = 0.1

    def __post_init__(self) -> None:
        checks.in_unit_interval("discount", self.discount)
        checks.in_unit_interval("slip", self.slip)

    @property
    def spec(self) -> process.Spec:
        """One agent, two actions, two states."""
        return process.Spec(1, 2, 2, reward_bound=1.0, horizon=None)

    def initial(self, *, key: types.Key) -> Place:
        """Always the good state."""
        return Place(jnp.asarray(GOOD, jnp.int32), jnp.asarray(False))

    def active_agent(self, history: Place) -> Array:
        """The one agent."""
        return jnp.zeros((), jnp.int32)

    def observation(self, history: Place) -> Array:
        """The state, one-hot."""
        return jax.nn.one_hot(history.state, 2)

    def information_state_of(self, history: Place) -> Array:
        """The state itself."""
        return history.state

    def legal_actions(self, history: Place) -> Array:
        """Both, everywhere."""
        return jnp.ones(2, bool)

    def apply(self, history: Place, action: types.Action, *, key: types.Key) -> Place:
        """The next state, drawn from `transitions`."""
        chance = jnp.asarray(self.transitions(), jnp.float32)[history.state, action, GOOD]
        good = jax.random.bernoulli(key, chance)
        return Place(jnp.where(good, GOOD, BAD).astype(jnp.int32), jnp.asarray(True))

    def reward(self, history: Place) -> Array:
        """−1 on arrival in the bad state."""
        cost = history.arrived & (history.state == BAD)
        return -cost.astype(jnp.float32)[None]

    def continuation(self, history: Place) -> Array:
        """The discount."""
        return jnp.asarray(self.discount, jnp.float32)

    def transitions(self) -> np.ndarray:
        """P[state, action, next state]."""
        chances = np.zeros((2, 2, 2))
        chances[GOOD, STAY] = [1 - self.slip, self.slip]
        chances[GOOD, MOVE] = [0, 1]
        chances[BAD, STAY] = [0, 1]
        chances[BAD, MOVE] = [1, 0]
        return chances

    def action_values(self, policy: np.ndarray) -> np.ndarray:
        """q(s, a) under `policy` [2, 2], in closed form: q = P (r + γ v), v = Σ_a π q, solved for v."""
        chances = self.transitions()
        rewards = np.array([0.0, -1.0])
        step = np.einsum("sa,san->sn", policy, chances)
        values = np.linalg.solve(np.eye(2) - self.discount * step, step @ rewards)
        return chances @ (rewards + self.discount * values)
