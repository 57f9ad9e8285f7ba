"""Policies across the boundary: ours to OpenSpiel's, OpenSpiel's to ours."""

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel
from jaxtyping import Float
from open_spiel.python import policy as openspiel_policy

from pohp_neurd import checks, exact, types
from pohp_neurd import policy as policies
from pohp_neurd.finite import graph
from pohp_neurd.finite import tree as trees
from pohp_neurd.openspiel import compile as compiling

Table = Float[np.ndarray, "S A"]


class TablePolicy(openspiel_policy.Policy):
    """A table of probabilities as an OpenSpiel policy; a state that is not in it raises a ValueError.

    Where players of the game move at the same time, it answers on states of that game too, and not only on
    those of the compiled one, where they move in turn.
    """

    def __init__(self, tree: trees.Tree, table: Any) -> None:
        # Two-argument super() of a bare name: see OpenSpiel's copying of agents, which reads locals.
        openspiel_policy.Policy.__init__(self, compiling.game_of(tree), list(range(tree.num_agents)))
        checks.shape("table", table, tree.legal.shape)
        exact.check_policy(table, tree)
        self._table = _float64(table)
        self._legal = tree.legal
        self._rows = rows_by_string(tree)

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """The probability of every legal action."""
        player = int(state.current_player() if player_id is None else player_id)
        if player == pyspiel.PlayerId.SIMULTANEOUS:
            raise ValueError("players move at the same time here: say for which of them, with player_id.")
        if state.is_simultaneous_node() and not state.legal_actions(player):
            return {0: 1.0}  # as OpenSpiel's own policies say where others move and this player does not
        return self._answer(compiling.in_turns(self.game, state, player), player)

    def _answer(self, state: Any, player: int) -> dict[int, float]:
        actions = state.legal_actions(player)
        row = self._rows.get((player, compiling.information_string(state, player)))
        if row is None or np.flatnonzero(self._legal[row]).tolist() != actions:
            raise _unknown(self.game, state, player)
        return {action: float(self._table[row, action]) for action in actions}


class MemoryPolicy(openspiel_policy.Policy):
    """A table for a graph's agent states as an OpenSpiel policy; a player's past is replayed to find them."""

    def __init__(self, world: graph.Graph, table: Any) -> None:
        self._origin = compiling.origin_of(world)
        openspiel_policy.Policy.__init__(self, self._origin.game, list(range(world.num_agents)))
        checks.shape("table", table, world.legal.shape)
        exact.check_policy(table, world)
        self._table = _float64(table)

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """The probability of every legal action."""
        player = int(state.current_player() if player_id is None else player_id)
        state = compiling.in_turns(self.game, state, player)
        # OpenSpiel's observers end the process at a state of another game.
        row = self._origin.row(state, player) if str(state.get_game()) == str(self.game) else None
        if row is None:
            raise _unknown(self.game, state, player)
        return {action: float(self._table[row, action]) for action in state.legal_actions(player)}


class NetworkPolicy(TablePolicy):
    """A network as an OpenSpiel policy: looked up where the tree knows the state.

    Elsewhere, as in other variants of the game, it is computed, if the state has a tensor and actions of the
    size that the network is for.
    """

    def __init__(self, tree: trees.Tree, model: policies.Model, parameters: types.Parameters) -> None:
        TablePolicy.__init__(self, tree, table_of(tree, (model, parameters)))
        self._model, self._parameters = model, parameters
        self._num_features = tree.features.shape[1]

    def _answer(self, state: Any, player: int) -> dict[int, float]:
        try:
            return TablePolicy._answer(self, state, player)
        except ValueError:
            features, legal = self._inputs(state, player)
        row = _float64(policies.table(self._model.apply, self._parameters, features, legal))[0]
        return {action: float(row[action]) for action in np.flatnonzero(legal).tolist()}

    def _inputs(self, state: Any, player: int) -> tuple[np.ndarray, np.ndarray]:
        kind, actions = state.get_game().get_type(), state.legal_actions(player)
        if (
            kind.short_name != self.game.get_type().short_name
            or state.num_players() != len(self.player_ids)
            or not (kind.provides_information_state_tensor or kind.provides_observation_tensor)
            or not actions
            or max(actions) >= self._legal.shape[1]
        ):
            raise _unknown(self.game, state, player)
        features = np.asarray(compiling.information_tensor(state, player), np.float32)[None]
        if features.shape[1] != self._num_features:
            raise _unknown(self.game, state, player)
        legal = np.zeros((1, self._legal.shape[1]), bool)
        legal[0, actions] = True
        return features, legal


class TurnsPolicy(openspiel_policy.TabularPolicy):
    """OpenSpiel's TabularPolicy of a game in turns; it also answers where players move at the same time."""

    def _state_key(self, state: Any, player: int | None) -> str:
        mover = state.current_player() if player is None else player
        in_turns = compiling.in_turns(self.game, state, mover)
        return openspiel_policy.TabularPolicy._state_key(self, in_turns, mover)

    def policy_for_key(self, key: str) -> np.ndarray:
        """The row of an information state; a part of the array, so that it can be written to."""
        if key not in self.state_lookup:
            raise ValueError(f"the policy of {self.game} says nothing of information state {key!r}.")
        return openspiel_policy.TabularPolicy.policy_for_key(self, key)

    def __copy__(self, copy_action_probability_array: bool = True) -> "TurnsPolicy":
        copied = openspiel_policy.TabularPolicy.__copy__(self, copy_action_probability_array)
        copied.__class__ = TurnsPolicy  # OpenSpiel's own makes its own class
        return copied


def _unknown(game: Any, state: Any, player: int) -> ValueError:
    name = compiling.information_string(state, player) if player >= 0 else str(state)
    return ValueError(
        f"the policy of {game} does not know the state {name!r} of player {player} in {state.get_game()}."
    )


def table_of(tree: trees.Tree, policy: Any) -> np.ndarray:
    """`policy` as an array [S, A] in the tree's order, whatever it comes as.

    An array stays what it is. Other forms: any OpenSpiel policy, Python or C++; a mapping from
    information-state strings to (action, probability) pairs; a network as (model, parameters), evaluated
    in one batched pass, or one such pair for each agent.
    """
    if isinstance(policy, openspiel_policy.Policy) and _is_simultaneous(policy.game):
        return _from_simultaneous(tree, policy)
    if isinstance(policy, openspiel_policy.TabularPolicy):
        return _from_tabular(tree, policy)
    if isinstance(policy, openspiel_policy.Policy):
        return _from_states(tree, lambda state: policy.action_probabilities(state, state.current_player()))
    if isinstance(policy, pyspiel.Policy):
        return _from_states(tree, policy.action_probabilities)
    if isinstance(policy, Mapping):
        missing = next((name for name in tree.information_state_strings if name not in policy), None)
        if missing is not None:
            raise ValueError(f"the policy says nothing of information state {missing!r}.")
        return _filled(tree, (dict(policy[name]) for name in tree.information_state_strings))
    if isinstance(policy, tuple | list) and policy and isinstance(policy[0], policies.Model):
        return _from_network(tree, *policy)
    if isinstance(policy, tuple | list) and policy and isinstance(policy[0], tuple):
        return _from_networks(tree, policy)
    try:
        return np.asarray(policy)
    except (TypeError, ValueError):
        raise ValueError(
            f"a policy must be an array [S, A], an OpenSpiel policy or (model, parameters), but is "
            f"{type(policy).__name__}."
        ) from None


def to_tabular_policy(tree: trees.Tree, policy: Any) -> openspiel_policy.TabularPolicy:
    """`policy` as OpenSpiel's TabularPolicy, without another walk over the game."""
    table = _float64(table_of(tree, policy))
    witnesses = witness_states(tree)
    states = {state.history_str(): state for state in witnesses}
    tabular = TurnsPolicy(compiling.game_of(tree), states=states)
    for name, row in zip(tree.information_state_strings, table, strict=True):
        tabular.action_probability_array[tabular.state_lookup[name]] = row
    return tabular


def to_pyspiel_policy(tree: trees.Tree, policy: Any) -> pyspiel.TabularPolicy:
    """`policy` as C++'s TabularPolicy, for C++ algorithms."""
    table = _float64(table_of(tree, policy))
    return pyspiel.TabularPolicy(
        {
            name: [(int(action), float(row[action])) for action in np.flatnonzero(legal)]
            for name, row, legal in zip(tree.information_state_strings, table, tree.legal, strict=True)
        }
    )


def rows_by_string(tree: trees.Tree) -> dict[tuple[int, str], int]:
    """(player, information-state string) -> row."""
    names = zip(tree.state_player.tolist(), tree.information_state_strings, strict=True)
    return {name: row for row, name in enumerate(names)}


_witnesses: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def witness_states(tree: trees.Tree) -> list[Any]:
    """One OpenSpiel state for every information state, replayed from the tree."""
    if tree not in _witnesses:
        game = compiling.game_of(tree)
        decisions = np.flatnonzero(tree.information_state >= 0)
        _, first = np.unique(tree.information_state[decisions], return_index=True)
        _witnesses[tree] = [_replay(tree, game, row) for row in decisions[first].tolist()]
    return _witnesses[tree]


def _replay(tree: trees.Tree, game: Any, row: int) -> Any:
    actions = []
    while tree.parent[row] >= 0:
        actions.append(int(tree.incoming_action[row]))
        row = int(tree.parent[row])
    state = game.new_initial_state()
    for action in reversed(actions):
        state.apply_action(action)
    return state


def _from_tabular(tree: trees.Tree, policy: openspiel_policy.TabularPolicy) -> Table:
    lookup = policy.state_lookup
    missing = next((name for name in tree.information_state_strings if name not in lookup), None)
    if missing is not None:
        raise ValueError(f"the policy of {policy.game} says nothing of information state {missing!r}.")
    rows = [lookup[name] for name in tree.information_state_strings]
    return np.where(tree.legal, policy.action_probability_array[rows], 0.0)


def _from_states(tree: trees.Tree, answer: Any) -> Table:
    return _filled(tree, (answer(state) for state in witness_states(tree)))


def _is_simultaneous(game: Any) -> bool:
    return game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS


def _from_simultaneous(tree: trees.Tree, policy: openspiel_policy.Policy) -> Table:
    """A policy of a game with simultaneous moves, asked where the tree lets its players move in turn."""

    def answers() -> Any:
        for state in witness_states(tree):
            player = state.current_player()
            yield policy.action_probabilities(_joint_state(policy.game, state), player)

    return _filled(tree, answers())


def _joint_state(game: Any, in_turns: Any) -> Any:
    """The state of the simultaneous game behind one of its turn-based form: last complete joint move."""
    state, pending = game.new_initial_state(), []
    for action in in_turns.history():
        if not state.is_simultaneous_node():
            state.apply_action(action)
            continue
        pending.append(action)
        movers = [player for player in range(game.num_players()) if state.legal_actions(player)]
        if len(pending) == len(movers):
            joint = dict(zip(movers, pending, strict=True))
            state.apply_actions([joint.get(player, 0) for player in range(game.num_players())])
            pending = []
    return state


def _filled(tree: trees.Tree, rows: Any) -> Table:
    table = np.zeros(tree.legal.shape)
    for row, probabilities in enumerate(rows):
        for action, probability in probabilities.items():
            table[row, action] = probability
    return table


def _from_network(tree: trees.Tree, model: policies.Model, parameters: types.Parameters) -> Table:
    return np.asarray(policies.table(model.apply, parameters, tree.features, tree.legal))


def _from_networks(tree: trees.Tree, pairs: Any) -> Table:
    if len(pairs) != tree.num_agents:
        raise ValueError(f"{tree.name} has {tree.num_agents} players, but {len(pairs)} networks were given.")
    parts = []
    for agent, (model, parameters) in enumerate(pairs):
        rows = tree.states_of(agent)
        parts.append(policies.table(model.apply, parameters, tree.features[rows], tree.legal[rows]))
    return np.concatenate([np.asarray(part) for part in parts])


def _float64(table: Any) -> Table:
    """Rows that sum to 1 as exactly as float64 can: OpenSpiel's samplers insist on it."""
    array = np.asarray(table, np.float64)
    return array / array.sum(axis=-1, keepdims=True)
