"""A partially observable history process (POHP): the world as pure functions of a history.

Pipeline: **history -> observation** -> agent state. Words of Morrill et al. (2022), Section 2.1: an agent
acts at an active history; the daimon replies, and the agent's next active history follows. On arrival
there is a reward; then the process goes on with the history's continuation probability. A terminal
history is one whose continuation probability is 0.

With several agents exactly one acts at each history. To each of them the others are part of the daimon.
"""

import dataclasses
from typing import Protocol, runtime_checkable

from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, types


@dataclasses.dataclass(frozen=True)
class Spec:
    """The sizes and bounds of a process."""

    num_agents: int
    num_actions: int
    observation_size: int
    reward_bound: float
    """R: rewards lie in [-R, 0]."""
    horizon: int | None
    """The most decisions, of all agents together, before a terminal history; None if continuing."""
    return_bound: float | None = None
    """G: returns lie in [-G, 0]; by default R times the horizon, None without a horizon."""

    def __post_init__(self) -> None:
        for name in ("num_agents", "num_actions", "observation_size"):
            checks.at_least(name, getattr(self, name))
        checks.non_negative("reward_bound", self.reward_bound)
        if self.horizon is not None and self.horizon < 0:
            raise ValueError(f"horizon must be at least 0, or None, but is {self.horizon}.")
        if self.return_bound is None and self.horizon is not None:
            object.__setattr__(self, "return_bound", self.reward_bound * self.horizon)


@runtime_checkable
class Process(Protocol):
    """What a world must answer; every function runs inside jit, vmap and scan."""

    @property
    def spec(self) -> Spec:
        """The sizes and bounds."""

    def initial(self, *, key: types.Key) -> types.History:
        """A first active history, after the daimon's opening moves."""

    def active_agent(self, history: types.History) -> Int[Array, ""]:
        """The agent whose turn it is, in [0, num_agents)."""

    def observation(self, history: types.History) -> Float[Array, "D"]:
        """What the active agent sees: ω(h)."""

    def legal_actions(self, history: types.History) -> Bool[Array, "A"]:
        """Which actions are allowed: 𝒜(h) as a mask."""

    def apply(self, history: types.History, action: types.Action, *, key: types.Key) -> types.History:
        """The next active history: h, then the agent's action, then the daimon's reply.

        A terminal history absorbs: whatever the action, it is its own successor.
        """

    def reward(self, history: types.History) -> Float[Array, "P"]:
        """Every agent's reward on arrival at this history, in [-R, 0]."""

    def continuation(self, history: types.History) -> Float[Array, ""]:
        """The probability γ(h) of going on from here: 0 terminal, 1 continuing, between a discount."""
