"""An episode as one seat lives through it: its choices, what followed each, and the returns in the end."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(slots=True)
class Choice:
    """One choice of an action, and what has followed it so far."""

    agent_state: Any
    """Features for a network, a row for a table."""
    legal: Sequence[int]
    action: int
    probability: float
    """π(A) when A was drawn."""
    value: float
    """What the critic said at the time; 0 without one."""
    reward: float = 0.0
    """Discounted sum of rewards up to the seat's next choice."""
    continuation: float = 1.0
    """Product of the discounts up to there."""
    return_: float = 0.0
    """Known when the episode is over."""
    earned: float = math.nan
    """All earned in the episode when this was last looked at; NaN where the environment does not say."""

    def follow(self, reward: float, discount: float) -> None:
        """Takes in one more time step after the choice."""
        self.reward += self.continuation * reward
        self.continuation *= discount


def close(choices: Sequence[Choice]) -> None:
    """Fills in the returns of an episode that is over: G_t = r_{t+1} + γ_{t+1} G_{t+1}, and 0 beyond.

    >>> followed = [(1.0, 0.5), (4.0, 0.0)]
    >>> choices = [Choice(None, [0], 0, 1.0, 0.0, reward, discount) for reward, discount in followed]
    >>> close(choices)
    >>> [choice.return_ for choice in choices]
    [3.0, 4.0]
    """
    following = 0.0
    for choice in reversed(choices):
        following = float(choice.reward + choice.continuation * following)
        choice.return_ = following


_NUMBERS = ("action", "probability", "value", "reward", "continuation", "return_", "earned")


def to_arrays(choices: Sequence[Choice], num_actions: int, like: np.ndarray) -> dict[str, np.ndarray]:
    """`choices` as arrays with a leading axis; agent states are shaped as `like`."""
    legal = np.zeros((len(choices), num_actions), bool)
    for row, choice in enumerate(choices):
        legal[row, choice.legal] = True
    states = np.array([choice.agent_state for choice in choices], like.dtype)
    arrays = {name: np.array([getattr(choice, name) for choice in choices], float) for name in _NUMBERS}
    return {"agent_state": states.reshape(len(choices), *like.shape), "legal": legal, **arrays}


def from_arrays(arrays: Mapping[str, np.ndarray]) -> Iterable[Choice]:
    """The choices that `to_arrays` was given."""
    numbers = (arrays[name].tolist() for name in _NUMBERS)
    for state, legal, action, *rest in zip(arrays["agent_state"], arrays["legal"], *numbers, strict=True):
        yield Choice(state, np.flatnonzero(legal).tolist(), int(action), *rest)
