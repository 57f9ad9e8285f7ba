"""A policy as a player of games: OpenSpiel's Bot.

OpenSpiel's own PolicyBot returns the invalid action wherever the only legal action is number 0.
"""

import os
from typing import Any

import numpy as np
import pyspiel

from pohp_neurd.openspiel import saved, uniforms


class PolicyBot(pyspiel.Bot):
    """Draws its actions from a policy."""

    def __init__(self, policy: Any, player_id: int, seed: int) -> None:
        pyspiel.Bot.__init__(self)
        # The policy's reference is kept: C++ policies die with their last Python name.
        self._policy, self._player, self._seed = policy, player_id, seed
        self._random = uniforms.generator(seed, uniforms.Role.BOT, player_id)

    def player_id(self) -> int:
        """The player for whom it acts."""
        return self._player

    def provides_policy(self) -> bool:
        """It does."""
        return True

    def restart_at(self, state: Any) -> None:
        """Nothing is remembered between states."""

    def inform_action(self, state: Any, player_id: Any, action: Any) -> None:
        """Nothing is remembered between states."""

    def get_policy(self, state: Any) -> list[tuple[int, float]]:
        """(action, probability) for every legal action."""
        return self.step_with_policy(state)[0]

    def step_with_policy(self, state: Any) -> tuple[list[tuple[int, float]], int]:
        """The policy at `state`, and an action drawn from it."""
        legal = state.legal_actions(self._player)
        if not legal:
            raise ValueError(f"player {self._player} has no legal action in this state.")
        known = self._probabilities(state)
        # Whatever a policy says of other actions, only legal ones are drawn.
        weights = np.array([float(known.get(action, 0.0)) for action in legal])
        if not (np.all(weights >= 0) and 0 < weights.sum() < np.inf):  # False for NaN too
            raise ValueError(f"the policy must give legal actions {legal} probabilities, but says {known}.")
        weights /= weights.sum()
        beyond = np.cumsum(weights) > self._random.random()
        last = int(np.flatnonzero(weights)[-1])  # rounding can leave the sum a little below the draw
        action = legal[int(np.argmax(beyond)) if beyond.any() else last]
        return list(zip(legal, weights.tolist(), strict=True)), action

    def step(self, state: Any) -> int:
        """An action drawn from the policy; always a legal one."""
        return self.step_with_policy(state)[1]

    def _probabilities(self, state: Any) -> dict[int, Any]:
        if isinstance(self._policy, pyspiel.Policy):  # C++ asks the state for the player
            if state.is_simultaneous_node():
                raise ValueError(
                    "players move at the same time here, where C++ policies do not answer: use one of Python."
                )
            return dict(self._policy.action_probabilities(state))
        return self._policy.action_probabilities(state, self._player)


def bot(checkpoint_or_policy: Any, player_id: int, *, seed: int = 0) -> pyspiel.Bot:
    """A policy, of Python or C++, or the folder of a training run, as a bot for player `player_id`.

    The same seed plays the same game.
    """
    policy = checkpoint_or_policy
    if isinstance(policy, str | os.PathLike):
        policy = saved.openspiel_policy(saved.load(policy))
    if not hasattr(policy, "action_probabilities"):
        raise ValueError(f"a bot needs an OpenSpiel policy, but was given {type(policy).__name__}.")
    if player_id < 0:
        raise ValueError(f"player_id must be at least 0, but is {player_id}.")
    return PolicyBot(policy, player_id, seed)
