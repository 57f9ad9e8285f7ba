"""What an agent lives through: episodes under way in any number of environments, and those to learn from.

Time steps come as an `rl_environment` loop shows them: at the agent's turns only or at all, once or
repeatedly.
"""

import dataclasses
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel

_LONG, _ENDLESS = 128, 8192
"""From so many choices without an end on it is asked whether there was one; from so many it is not asked."""
_COUNTERS = ("steps", "episodes", "batch_episodes")
_NUMBERS = ("action", "probability", "value", "reward", "continuation", "return_", "earned")


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


class Experience:
    """Choices under way and choices whose returns are known; agent states are shaped as `like`."""

    def __init__(self, num_actions: int, like: np.ndarray) -> None:
        self._num_actions, self._like = num_actions, like
        self.batch: list[Choice] = []
        """Choices of finished episodes, not learnt from yet."""
        self.steps = self.episodes = self.batch_episodes = 0
        self._open: dict[int, dict[int, list[Choice]]] = {}
        self._posted: set[int] = set()
        # Not part of a snapshot: what tells apart calls with one and the same time step, and warnings.
        self._seen: dict[int, tuple[Any, dict[int, Any]]] = {}
        self._began: set[int] = set()
        self._warned: set[str] = set()
        self._watches = self._unreadable = False

    def see(self, environment: int, time_step: Any, player: int | None) -> dict[int, Any]:
        """Takes in a time step, once however often it is shown; the answers given to it so far come back."""
        seen = self._seen.get(environment)
        if seen is not None and seen[0] is time_step:
            return seen[1]
        answers: dict[int, Any] = {}
        self._seen[environment] = (time_step, answers)
        self.steps += 1
        is_last = time_step.last()
        if not is_last and time_step.current_player() != player:
            self._watches = True
        running = self._open.get(environment)
        posted = environment in self._posted
        self._posted.discard(environment)
        if running and time_step.first():
            self._warn(
                "an episode began before the end of the one before was shown, so that what was done in that "
                "one is forgotten: step the agent with the last time step of every episode."
            )
            running.clear()
        elif running and time_step.rewards is not None:
            self._follow(running, time_step, posted, is_last)
        if time_step.first():
            self._began.add(environment)
        if is_last:
            self._finish(environment)
        return answers

    def chose(self, environment: int, time_step: Any, seat: int, choice: Choice, answer: Any) -> None:
        """Remembers a choice at `time_step`, which has been seen, and what was answered."""
        choice.earned = self._earned(time_step, seat)
        choices = self._open.setdefault(environment, {}).setdefault(seat, [])
        choices.append(choice)
        self._seen[environment][1][seat] = answer
        count = len(choices)
        if count >= _LONG and count & (count - 1) == 0 and environment not in self._began:
            self._doubt(choices)

    def post(self, rewards: Sequence[Any], over: Sequence[bool]) -> None:
        """Takes in rewards and ends that the next time steps of a vector of environments do not show."""
        for environment, (reward, is_over) in enumerate(zip(rewards, over, strict=True)):
            for seat, choices in self._open.get(environment, {}).items():
                value = reward if np.ndim(reward) == 0 else reward[seat]
                choices[-1].follow(float(value), 0.0 if is_over else 1.0)
            self._posted.add(environment)
            if is_over:
                self._finish(environment)

    def take_batch(self) -> list[Choice]:
        """The batch, which is empty from now on."""
        batch, self.batch, self.batch_episodes = self.batch, [], 0
        return batch

    def arrays(self, choices: Sequence[Choice]) -> dict[str, np.ndarray]:
        """`choices` as arrays with a leading axis."""
        legal = np.zeros((len(choices), self._num_actions), bool)
        for row, choice in enumerate(choices):
            legal[row, choice.legal] = True
        states = np.array([choice.agent_state for choice in choices], self._like.dtype)
        states = states.reshape(len(choices), *self._like.shape)
        numbers = {name: np.array([getattr(choice, name) for choice in choices], float) for name in _NUMBERS}
        return {"agent_state": states, "legal": legal, **numbers}

    def _follow(self, running: dict[int, list[Choice]], time_step: Any, posted: bool, is_last: bool) -> None:
        rewards, discounts = time_step.rewards, time_step.discounts
        lost = not (self._watches or is_last) and len(rewards) > 1 and any(rewards)
        for seat, choices in running.items():
            last = choices[-1]
            reward = 0.0 if posted else float(rewards[seat])
            earned = self._earned(time_step, seat)
            if not math.isnan(earned - last.earned):
                reward, last.earned, lost = earned - last.earned, earned, False
            last.follow(reward, float(discounts[seat]))
        if lost:
            self._warn(
                "this game gives rewards before its end, and the agent is stepped at its own turns only, "
                "where it cannot see all of them: step every agent at every time step, or build the "
                "environment with include_full_state=True, or let one agent play all seats."
            )

    def _earned(self, time_step: Any, seat: int) -> float:
        """All that the seat has earned in the episode; NaN unless the environment shows its full state."""
        serialized = time_step.observations.get("serialized_state")
        if not serialized or self._unreadable:
            return math.nan
        try:
            return float(pyspiel.deserialize_game_and_state(serialized)[1].returns()[seat])
        except pyspiel.SpielError:  # some games, such as those made of other games, can only be written
            self._unreadable = True
            return math.nan

    def _doubt(self, choices: Sequence[Choice]) -> None:
        """Warns where what looks like one episode is probably many.

        Who moves second and is stepped at its turns only sees no beginning, and an end only if it is shown
        one. In one episode the same information states do not come again and again.
        """
        distinct = len({np.asarray(choice.agent_state).tobytes() for choice in choices})
        if 4 * distinct <= len(choices) or len(choices) >= _ENDLESS:
            self._warn(
                f"the agent has made {len(choices):,} choices, at {distinct:,} information states, since it "
                f"was last shown an end, and learns from none of them: step the agent with the last time "
                f"step of every episode."
            )

    def _finish(self, environment: int) -> None:
        self._began.discard(environment)
        for choices in self._open.pop(environment, {}).values():
            close(choices)
            self.batch.extend(choices)
        self.episodes += 1
        self.batch_episodes += 1

    def _warn(self, sentence: str) -> None:
        kind = sentence.rpartition(":")[2]  # each piece of advice once
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(sentence, stacklevel=2)

    def snapshot(self) -> dict[str, np.ndarray | dict[str, np.ndarray]]:
        """All of it as arrays."""
        running = [
            (environment, seat, choice)
            for environment, seats in self._open.items()
            for seat, choices in seats.items()
            for choice in choices
        ]
        return {
            "batch": self.arrays(self.batch),
            "open": self.arrays([choice for *_, choice in running]),
            "open_at": np.array([where for *where, _ in running], np.int64).reshape(-1, 2),
            "posted": np.array(sorted(self._posted), np.int64),
            "counters": np.array([getattr(self, name) for name in _COUNTERS], np.int64),
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Takes on a snapshot."""
        self.batch = list(_choices(snapshot["batch"]))
        self._open, self._seen, self._began = {}, {}, set()
        where = snapshot["open_at"].tolist()
        for (environment, seat), choice in zip(where, _choices(snapshot["open"]), strict=True):
            self._open.setdefault(environment, {}).setdefault(seat, []).append(choice)
        self._posted = set(snapshot["posted"].tolist())
        for name, value in zip(_COUNTERS, snapshot["counters"].tolist(), strict=True):
            setattr(self, name, value)


def _choices(arrays: Mapping[str, np.ndarray]) -> Iterable[Choice]:
    """The choices that `Experience.arrays` was given."""
    numbers = (arrays[name].tolist() for name in _NUMBERS)
    for state, legal, action, *rest in zip(arrays["agent_state"], arrays["legal"], *numbers, strict=True):
        yield Choice(state, np.flatnonzero(legal).tolist(), int(action), *rest)
