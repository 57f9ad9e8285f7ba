"""Who sits at a live game: networks, uniformly random movers, and OpenSpiel's own policies.

Pipeline: agent state -> logits -> probabilities -> **action**, for a whole batch of states in one call.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from jaxtyping import Float, Int
from open_spiel.python import policy as openspiel_policy

from pohp_neurd import draws, policy, types
from pohp_neurd.openspiel.live import game as live_game


class Network(NamedTuple):
    """A player that draws its actions from a network on `LiveGame.features`."""

    model: policy.Model
    parameters: types.Parameters


Player = Any
"""A Network, None for uniformly random moves, or any OpenSpiel policy, which is asked state by state."""


class Choice(NamedTuple):
    """What was decided in every slot."""

    action: Int[np.ndarray, "B"]
    probability: Float[np.ndarray, "B"]
    value: Float[np.ndarray, "B"]
    """The critic's; 0 for a player without one."""


@functools.partial(jax.jit, static_argnames="applies")
def choose(
    applies: tuple[Any, ...],
    parameters: Any,
    features: Any,
    legal: Any,
    owner: Any,
    key: types.Key,
    step: Any,
) -> tuple[Any, Any, Any]:
    """Actions, their probabilities and values for all slots, by the network that `owner` names in each.

    Where `applies` says None the logits are zeros: uniformly random moves.
    """
    count = legal.shape[0]
    logits, values = [], []
    for apply, weights in zip(applies, parameters, strict=True):
        if apply is None:
            output = policy.Output(jnp.zeros(legal.shape), None)
        else:
            output = jax.vmap(apply, in_axes=(None, 0))(weights, features)
        logits.append(output.logits)
        values.append(jnp.zeros(count) if output.value is None else output.value)
    rows = jnp.arange(count)
    chances = jax.vmap(policy.probabilities)(jnp.stack(logits)[owner, rows], legal)
    actions = draws.choose(chances, draws.uniform(jax.random.fold_in(key, step), (count,)))
    return actions, chances[rows, actions], jnp.stack(values)[owner, rows]


def actor(
    players: Sequence[Player], rng: np.random.Generator, key: types.Key
) -> Callable[[list, list, Any, Any, Any, int], Choice]:
    """(states, seats, features, legal, owner, step) -> Choice: one batched call for all networks.

    `owner` says for every slot which of `players` decides; `states` may be fewer than there are slots.
    """
    applies = tuple(player.model.apply if isinstance(player, Network) else None for player in players)
    parameters = tuple(player.parameters if isinstance(player, Network) else None for player in players)
    asked = [i for i, player in enumerate(players) if player is not None and not isinstance(player, Network)]

    def act(states: list, seats: list, features: Any, legal: Any, owner: Any, step: int) -> Choice:
        chosen = jax.device_get(choose(applies, parameters, features, legal, owner, key, np.uint32(step)))
        if not asked:
            return Choice(*chosen)
        choice = Choice(*(np.array(array) for array in chosen))
        for row in np.flatnonzero(np.isin(owner[: len(states)], asked)).tolist():
            chances = _answer(players[owner[row]], states[row], seats[row])
            action = list(chances)[draw(list(chances.values()), rng.random())]
            choice.action[row], choice.probability[row] = action, chances[action]
        return choice

    return act


def draw(probabilities: Sequence[float], uniform: float) -> int:
    """The index that a uniform number in [0, 1) picks; never, even by rounding, one of probability 0."""
    # In the sum's units: a rounding of the sum would else be all the last one's, and that may be a rare one.
    uniform *= sum(probabilities)
    last = 0
    for index, probability in enumerate(probabilities):
        if probability > 0:
            last = index
            uniform -= probability
            if uniform < 0:
                return index
    return last


def _answer(player: Any, state: Any, seat: int) -> dict[int, float]:
    if isinstance(player, pyspiel.Policy):
        return dict(player.action_probabilities(state))
    return player.action_probabilities(state, seat)


class LivePolicy(openspiel_policy.Policy):
    """A network as an OpenSpiel policy, without a tree: computed state by state."""

    def __init__(self, world: live_game.LiveGame, network: Network) -> None:
        openspiel_policy.Policy.__init__(self, world.game, list(range(world.num_seats)))
        self._world, self._network = world, network

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """The probability of every legal action, in float64, summing to 1 as OpenSpiel's samplers want it."""
        if state.is_simultaneous_node():
            raise ValueError(
                "a LivePolicy plays simultaneous moves in turns: ask it on states of its `game`."
            )
        seat = state.current_player() if player_id is None else player_id
        actions = state.legal_actions(seat)
        legal = np.zeros((1, self._world.num_actions), bool)
        legal[0, actions] = True
        features = self._world.features(state, seat)[None]
        model, parameters = self._network
        row = np.asarray(policy.table(model.apply, parameters, features, legal), np.float64)[0]
        return {action: float(row[action] / row.sum()) for action in actions}
