"""Policies across the boundary: ours to OpenSpiel's, OpenSpiel's to ours; and the NashConv of all of them."""

import collections
import weakref
from collections.abc import Collection, Mapping
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


class RowPolicy(openspiel_policy.Policy):
    """An OpenSpiel policy that has, or computes, a row of probabilities for a player's information state.

    Where players of the game move at the same time, it answers on states of that game too, and not only on
    those of `game`, where they move in turn. A state that it does not know raises a ValueError.
    """

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """The probability of every legal action."""
        player = mover(state, player_id)
        if state.is_simultaneous_node() and not state.legal_actions(player):
            return {0: 1.0}  # as OpenSpiel's own policies say where others move and this player does not
        state = compiling.in_turns(self.game, state, player)
        row = self._row(state, player)
        if row is None:
            name = compiling.information_string(state, player) if player >= 0 else str(state)
            raise ValueError(
                f"the policy of {self.game} does not know the state {name!r} of player {player} in "
                f"{state.get_game()}."
            )
        return {action: float(row[action]) for action in state.legal_actions(player)}

    def _row(self, state: Any, player: int) -> np.ndarray | None:
        """Probabilities by action at a state in turns; None if it is not known."""
        raise NotImplementedError


class TablePolicy(RowPolicy):
    """A table of probabilities, in the order of a tree's information states."""

    def __init__(self, tree: trees.Tree, table: Any) -> None:
        openspiel_policy.Policy.__init__(self, compiling.game_of(tree), list(range(tree.num_agents)))
        self._table, self._legal = _checked(tree, table), tree.legal
        names = zip(tree.state_player.tolist(), tree.information_state_strings, strict=True)
        self._rows = {name: row for row, name in enumerate(names)}

    def _row(self, state: Any, player: int) -> np.ndarray | None:
        actions = state.legal_actions(player)
        row = self._rows.get((player, compiling.information_string(state, player)))
        if row is None or np.flatnonzero(self._legal[row]).tolist() != actions:
            return None
        return self._table[row]


class MemoryPolicy(RowPolicy):
    """A table for a graph's agent states; a player's past is replayed to find them."""

    def __init__(self, world: graph.Graph, table: Any) -> None:
        self._origin = compiling.origin_of(world)
        openspiel_policy.Policy.__init__(self, self._origin.game, list(range(world.num_agents)))
        self._table = _checked(world, table)

    def _row(self, state: Any, player: int) -> np.ndarray | None:
        row = self._origin.row(state, player) if _is_of(state, self.game) else None
        return None if row is None else self._table[row]


class RespondingPolicy(RowPolicy):
    """One player's best response to a graph's policy, with perfect recall: searched where it is asked.

    The player's own past is replayed to the belief it leads to, and what follows is searched. Answers are
    kept by that past. Where the others' policy never leads, it takes the first legal action.
    """

    def __init__(self, world: graph.Graph, table: Any, player: int) -> None:
        from pohp_neurd.finite import responder  # numba takes a second to load, and trees do not need it

        openspiel_policy.Policy.__init__(self, compiling.origin_of(world).game, [player])
        self._world, self._responder = world, responder
        self._moves = responder.moves(world, _checked(world, table), player)
        self._begun = responder.first_turns(self._moves)[1]
        self._options: dict[tuple[int, ...], Any] = {}
        self._answers: dict[tuple[int, ...], int] = {}

    def _row(self, state: Any, player: int) -> np.ndarray | None:
        past = self._past(state) if player in self.player_ids and _is_of(state, self.game) else None
        if past is None:
            return None
        if past not in self._answers:
            values = self._responder.values_at(
                self._moves, self._options_at(past), exact.MAX_INFORMATION_STATES
            )
            self._answers[past] = int(np.argmax(values)) if values else 0
        return np.eye(self._world.num_actions)[state.legal_actions(player)[self._answers[past]]]

    def _past(self, state: Any) -> tuple[int, ...] | None:
        """What the player has seen and, as places among the legal ones, done, in turn; None off the graph.

        The whole history is followed, but only what the player sees of it is told.
        """
        world, node, past = self._world, 0, []
        for action in [*state.history(), None]:
            if node < 0:
                return None
            edges = slice(*world.first_edge[node : node + 2].tolist())
            own = world.player[node] in self.player_ids
            if own:
                past.append(int(world.seen[node]))
            if action is None:
                return tuple(past) if own else None
            place = int(np.flatnonzero(world.action[edges] == action)[0])
            if own:
                past.append(place)
            node = int(world.child[edges][place])
        return None

    def _options_at(self, past: tuple[int, ...]) -> Any:
        """What can follow that past, by action; nothing where the others' policy never leads."""
        if past not in self._options:
            parts = self._begun
            if len(past) > 1:
                before = self._options_at(past[:-2])
                parts = before[past[-2]][1] if before else []
            here = [part for part in parts if self._moves.seen[part.nodes[0]] == past[-1]]
            self._options[past] = self._responder.options_at(self._moves, here[0]) if here else []
        return self._options[past]


def best_response(world: trees.Tree | graph.Graph, policy: Any, player: int) -> RowPolicy:
    """The best response of `player` to the others' part of `policy`, as an OpenSpiel policy that plays.

    On a graph it remembers all that it has seen and done, and searches as it goes.
    """
    checks.index("player", player, world.num_agents)
    if isinstance(world, graph.Graph):
        return RespondingPolicy(world, policy, player)
    found = exact.best_response(world, table_of(world, policy), player).policy
    if found is None:
        raise ValueError(
            f"a best response in {world.name} needs more memory than the information states of player "
            f"{player} have: compile it with agent_state to search for one."
        )
    return TablePolicy(world, found)


class BestResponses(openspiel_policy.Policy):
    """Every player's best response to `policy`, each as if all others followed it."""

    def __init__(self, world: trees.Tree | graph.Graph, policy: Any) -> None:
        self._by_player = [best_response(world, policy, player) for player in range(world.num_agents)]
        openspiel_policy.Policy.__init__(self, self._by_player[0].game, list(range(world.num_agents)))

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """The probability of every legal action."""
        player = mover(state, player_id)
        return self._by_player[player].action_probabilities(state, player)


class NetworkPolicy(TablePolicy):
    """A network: looked up where the tree knows the state.

    Elsewhere, as in other variants of the game, it is computed, if the state has a tensor and actions of the
    size that the network is for.
    """

    def __init__(self, tree: trees.Tree, model: policies.Model, parameters: types.Parameters) -> None:
        TablePolicy.__init__(self, tree, table_of(tree, (model, parameters)))
        self._network = model, parameters
        self._num_features = tree.features.shape[1]

    def _row(self, state: Any, player: int) -> np.ndarray | None:
        known = TablePolicy._row(self, state, player)
        if known is not None:
            return known
        game, actions = state.get_game(), state.legal_actions(player)
        view = compiling.tensor_view(game)
        if (
            game.get_type().short_name != self.game.get_type().short_name
            or state.num_players() != len(self.player_ids)
            or view is None
            or not actions
            or max(actions) >= self._legal.shape[1]
        ):
            return None
        tensor = np.asarray(getattr(state, view)(player), np.float32)
        if len(tensor) != self._num_features:
            return None
        return _computed(self._network, tensor, actions, self._legal.shape[1])


class LivePolicy(RowPolicy):
    """A network on the features of a `live.play.LiveGame`, without a tree: computed state by state."""

    def __init__(self, world: Any, network: tuple[policies.Model, types.Parameters]) -> None:
        openspiel_policy.Policy.__init__(self, world.game, list(range(world.num_seats)))
        self._world, self._network = world, network

    def _row(self, state: Any, player: int) -> np.ndarray | None:
        if not _is_of(state, self.game):
            return None
        seen = self._world.features(state, player)
        return _computed(self._network, seen, state.legal_actions(player), self._world.num_actions)


def mover(state: Any, player_id: int | None) -> int:
    """The player who is asked for: `player_id`, or whose turn it is."""
    player = int(state.current_player() if player_id is None else player_id)
    if player == pyspiel.PlayerId.SIMULTANEOUS:
        raise ValueError("players move at the same time here: say for which of them, with player_id.")
    return player


def _is_of(state: Any, game: Any) -> bool:
    """Whether a state is one of `game`: OpenSpiel's observers end the process at a state of another."""
    return str(state.get_game()) == str(game)


def _checked(world: trees.Tree | graph.Graph, table: Any) -> Table:
    checks.shape("table", table, world.legal.shape)
    exact.check_policy(table, world)
    return compiling.float64(table)


def _computed(network: Any, seen: np.ndarray, actions: list[int], num_actions: int) -> np.ndarray:
    """A network's row at one information state."""
    model, parameters = network
    legal = np.zeros((1, num_actions), bool)
    legal[0, actions] = True
    return compiling.float64(policies.table(model.apply, parameters, seen[None], legal))[0]


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


def table_of(tree: trees.Tree, policy: Any) -> np.ndarray:
    """`policy` as an array [S, A] in the tree's order, whatever it comes as.

    An array stays what it is. Other forms: any OpenSpiel policy, Python or C++; a mapping from
    information-state strings to (action, probability) pairs; a network as (model, parameters), evaluated
    in one batched pass, or one such pair for each agent.
    """
    if isinstance(policy, openspiel_policy.TabularPolicy) and not _is_simultaneous(policy.game):
        known, array, whose = policy.state_lookup, policy.action_probability_array, f" of {policy.game}"
        rows = [known[name] for name in _all_in(known, tree, whose)]
        return np.where(tree.legal, array[rows], 0.0)
    if isinstance(policy, openspiel_policy.Policy):
        return _filled(tree, (_ask(policy, state) for state in witness_states(tree)))
    if isinstance(policy, pyspiel.Policy):
        return _filled(tree, map(policy.action_probabilities, witness_states(tree)))
    if isinstance(policy, Mapping):
        return _filled(tree, (dict(policy[name]) for name in _all_in(policy, tree)))
    if isinstance(policy, tuple | list) and policy and isinstance(policy[0], policies.Model):
        return _from_networks(tree, [policy], [slice(None)])
    if isinstance(policy, tuple | list) and policy and isinstance(policy[0], tuple):
        if len(policy) != tree.num_agents:
            raise ValueError(
                f"{tree.name} has {tree.num_agents} players, but {len(policy)} networks were given."
            )
        return _from_networks(tree, policy, [tree.states_of(agent) for agent in range(tree.num_agents)])
    try:
        return np.asarray(policy)
    except (TypeError, ValueError):
        raise ValueError(
            f"a policy must be an array [S, A], an OpenSpiel policy or (model, parameters), but is "
            f"{type(policy).__name__}."
        ) from None


def to_tabular_policy(tree: trees.Tree, policy: Any) -> openspiel_policy.TabularPolicy:
    """`policy` as OpenSpiel's TabularPolicy, without another walk over the game."""
    table = compiling.float64(table_of(tree, policy))
    witnesses = witness_states(tree)
    states = {state.history_str(): state for state in witnesses}
    tabular = TurnsPolicy(compiling.game_of(tree), states=states)
    for name, row in zip(tree.information_state_strings, table, strict=True):
        tabular.action_probability_array[tabular.state_lookup[name]] = row
    return tabular


def to_pyspiel_policy(tree: trees.Tree, policy: Any) -> pyspiel.TabularPolicy:
    """`policy` as C++'s TabularPolicy, for C++ algorithms."""
    table = compiling.float64(table_of(tree, policy))
    return pyspiel.TabularPolicy(
        {
            name: [(int(action), float(row[action])) for action in np.flatnonzero(legal)]
            for name, row, legal in zip(tree.information_state_strings, table, tree.legal, strict=True)
        }
    )


_witnesses: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def witness_states(tree: trees.Tree) -> list[Any]:
    """One OpenSpiel state for every information state, replayed from the tree."""
    if tree not in _witnesses:
        game = compiling.game_of(tree)
        decisions = np.flatnonzero(tree.information_state >= 0)
        _, first = np.unique(tree.information_state[decisions], return_index=True)
        states = [game.new_initial_state() for _ in first]
        for state, row in zip(states, decisions[first].tolist(), strict=True):
            actions = []
            while tree.parent[row] >= 0:
                actions.append(int(tree.incoming_action[row]))
                row = int(tree.parent[row])
            for action in reversed(actions):
                state.apply_action(action)
        _witnesses[tree] = states
    return _witnesses[tree]


def _all_in(known: Collection[str], tree: trees.Tree, whose: str = "") -> tuple[str, ...]:
    """The names of the tree's information states; raises if `known` lacks one."""
    for name in tree.information_state_strings:
        if name not in known:
            raise ValueError(f"the policy{whose} says nothing of information state {name!r}.")
    return tree.information_state_strings


def _is_simultaneous(game: Any) -> bool:
    return game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS


def _ask(policy: openspiel_policy.Policy, in_turns: Any) -> dict[int, float]:
    """The answer at a state in turns; a policy of simultaneous moves is asked where all of them are made."""
    game, player = policy.game, in_turns.current_player()
    if not _is_simultaneous(game):
        return policy.action_probabilities(in_turns, player)
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
    return policy.action_probabilities(state, player)


def _filled(tree: trees.Tree, rows: Any) -> Table:
    table = np.zeros(tree.legal.shape)
    for row, probabilities in enumerate(rows):
        for action, probability in probabilities.items():
            table[row, action] = probability
    return table


def _from_networks(tree: trees.Tree, networks: Any, rows: Any) -> Table:
    parts = [
        policies.table(model.apply, parameters, tree.features[chosen], tree.legal[chosen])
        for (model, parameters), chosen in zip(networks, rows, strict=True)
    ]
    return np.concatenate([np.asarray(part) for part in parts])


def nash_conv(tree_or_game: Any, policy: Any) -> float | Float[np.ndarray, "K"]:
    """NashConv of `policy`: what the players would gain by best responses, added up; exact in float64.

    `tree_or_game` is a compiled tree (the fast way: compile once, evaluate often), an OpenSpiel game or
    its name; `policy` whatever `table_of` reads: an array [S, A] in the tree's order, an OpenSpiel
    policy of any kind, or a network as (model, parameters). A stack of arrays [K, S, A] gives K figures. On a
    compiled graph the policy is an array [S, A] for its agent states.

    >>> import pyspiel
    >>> game = pyspiel.load_game("kuhn_poker")
    >>> round(nash_conv(game, pyspiel.UniformRandomPolicy(game)), 6)
    0.916667
    """
    if isinstance(tree_or_game, graph.Graph):
        return exact.nash_conv(tree_or_game, policy)
    tree = tree_or_game if isinstance(tree_or_game, trees.Tree) else _compiled(tree_or_game)
    return exact.nash_conv(tree, table_of(tree, policy))


_recent: collections.deque[tuple[Any, trees.Tree]] = collections.deque(maxlen=4)


def _compiled(game: Any) -> trees.Tree:
    """The tree of `game`; kept for a while, as training loops ask for the same game again and again."""
    for known, tree in _recent:
        # Games are not hashable, and two that print alike may differ: only the same object will do.
        if known is game or (isinstance(known, str) and isinstance(game, str) and known == game):
            return tree
    tree = compiling.compile_game(game)
    _recent.append((game, tree))
    return tree
