"""The joint policy of agents, as OpenSpiel's algorithms want it: float64, whole rows, many states at once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from pohp_neurd.openspiel import agent as agents_


class JointPolicy(openspiel_policy.Policy):
    """What `agents` play now, each at its own seat, in `game`.

    Args:
      game: an OpenSpiel game.
      agents: `NeuRDCIX` agents by player, as a list or a mapping; or one that plays all seats.
      use_observation: whether the agents see observations or information states, as in their environment;
        by default information states where the game has them.
    """

    def __init__(
        self,
        game: Any,
        agents: agents_.NeuRDCIX | Sequence[Any] | Mapping[int, Any],
        use_observation: bool | None = None,
    ) -> None:
        if isinstance(agents, agents_.NeuRDCIX):
            agents = [agents] * game.num_players()
        by_player = dict(agents if isinstance(agents, Mapping) else enumerate(agents))
        wrong = [player for player in by_player if not 0 <= player < game.num_players()]
        if wrong or not by_player:
            raise ValueError(
                f"agents must be given for players 0 to {game.num_players() - 1}, but are given for "
                f"{sorted(by_player)}."
            )
        openspiel_policy.Policy.__init__(self, game, sorted(by_player))
        self._agents = {
            player: agent.agent if isinstance(agent, agents_.Seat) else agent
            for player, agent in by_player.items()
        }
        if use_observation is None:
            use_observation = not game.get_type().provides_information_state_tensor
        self._use_observation = use_observation

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """The probability of every legal action."""
        player = int(state.current_player() if player_id is None else player_id)
        if player == pyspiel.PlayerId.SIMULTANEOUS:
            raise ValueError("players move at the same time here: say for which of them, with player_id.")
        actions = state.legal_actions(player)
        if player not in self._agents or not actions:
            raise ValueError(f"player {player} is none of {self.player_ids}, or has no legal action here.")
        legal = np.zeros((1, self.game.num_distinct_actions()), bool)
        legal[0, actions] = True
        row = self._agents[player].probabilities([self._features(state, player)], legal)[0].tolist()
        return {action: row[action] for action in actions}

    def to_tabular(self, states: Any = None) -> openspiel_policy.TabularPolicy:
        """The same as a `TabularPolicy`, from one batched pass for each player."""
        if self.game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
            raise ValueError(
                f"{self.game} has simultaneous moves, which OpenSpiel's TabularPolicy cannot hold: train on "
                f"turn_based_simultaneous_game instead."
            )
        tabular = openspiel_policy.TabularPolicy(self.game, self.player_ids, states=states)
        for player in self.player_ids:
            names = tabular.states_per_player[player]
            rows = [tabular.state_lookup[name] for name in names]
            if rows:
                features = [self._features(tabular.states[row], player) for row in rows]
                legal = tabular.legal_actions_mask[rows]
                tabular.action_probability_array[rows] = self._agents[player].probabilities(features, legal)
        return tabular

    def _features(self, state: Any, player: int) -> list[float]:
        if self._use_observation:
            return state.observation_tensor(player)
        return state.information_state_tensor(player)
