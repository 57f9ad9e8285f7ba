"""The agent as a policy that PSRO trains: OpenSpiel's `RLOracle` builds, copies and freezes these.

OpenSpiel has a factory for such classes, in a module that imports its own agents and all that they need.
"""

from typing import Any

from open_spiel.python import policy as openspiel_policy

from pohp_neurd.openspiel import joint_policy
from pohp_neurd.openspiel.agent import agent as agents


class OraclePolicy(openspiel_policy.Policy):
    """A policy that learns while it is stepped, until it is frozen.

    Hand the class to `RLOracle(env, OraclePolicy, best_response_kwargs)`, with the agent's keywords.
    """

    def __init__(self, env: Any, player_id: int, **keywords: Any) -> None:
        specification = env.observation_spec()["info_state"], env.action_spec()["num_actions"]
        sizes = dict(zip(("info_state_size", "num_actions"), specification, strict=True))
        self._start(env, player_id, agents.NeuRDCIX(player_id, **{**sizes, **keywords}))

    def _start(self, env: Any, player_id: int, agent: agents.NeuRDCIX) -> None:
        openspiel_policy.Policy.__init__(self, env.game, [player_id])
        self._env, self._player, self._agent, self._frozen = env, player_id, agent, False
        self._joint = joint_policy.JointPolicy(env.game, {player_id: agent}, env.use_observation)

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """The probability of every legal action of this policy's player."""
        return self._joint.action_probabilities(state, self._player if player_id is None else player_id)

    def step(self, time_step: Any, is_evaluation: bool = False) -> Any:
        """The agent's step; one of evaluation once frozen."""
        return self._agent.step(time_step, is_evaluation or self._frozen)

    def freeze(self) -> None:
        """Stops learning."""
        self._frozen = True

    def unfreeze(self) -> None:
        """Goes on learning."""
        self._frozen = False

    def is_frozen(self) -> bool:
        """Whether learning has stopped."""
        return self._frozen

    def get_weights(self) -> Any:
        """The agent's parameters."""
        return self._agent.get_weights()

    def copy_with_noise(self, sigma: float = 0.0) -> "OraclePolicy":
        """A policy that learns on from this one, with noise on its parameters."""
        copied = OraclePolicy.__new__(OraclePolicy)
        copied._start(self._env, self._player, self._agent.copy_with_noise(sigma))
        return copied
