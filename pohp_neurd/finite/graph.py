"""A finite process as a graph of agent states: one node for all histories that nobody's future tells apart.

What the agents remember decides how small it is (Morrill et al. 2022, Section 2.1: the agent chooses its
update function). A tree is a graph in which every node has one way in.
"""

import array
import dataclasses
import functools
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import directions

CHANCE = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in order of the number of moves; edges lead one level down. Terminal histories have no node."""

    num_agents: int
    num_actions: int
    levels: Int[np.ndarray, "L"]
    """The first node of every level, and at the end how many nodes there are."""
    player: Int[np.ndarray, "N"]
    """The agent that acts, or CHANCE."""
    agent_state: Int[np.ndarray, "N"]
    """The acting agent's state, a row of its table; -1 at chance."""
    seen: Int[np.ndarray, "N"]
    """A number for what the acting agent sees; -1 at chance."""
    first_edge: Int[np.ndarray, "N1"]
    """The edges of node n are first_edge[n] to first_edge[n + 1], in order of their actions."""
    action: Int[np.ndarray, "E"]
    child: Int[np.ndarray, "E"]
    """-1 where the game is over."""
    chance: Float[np.ndarray, "E"]
    """1 after an agent's action."""
    rewards: Float[np.ndarray, "E P"]
    """Every agent's reward on the way, as the game counts it."""
    state_player: Int[np.ndarray, "S"]
    """The agent that each agent state belongs to: agent by agent, then in the order of first meeting."""
    legal: Bool[np.ndarray, "S A"]
    features: Float[np.ndarray, "S D"]
    """What the agent sees there."""
    name: str = "graph"

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.player)

    @property
    def num_agent_states(self) -> int:
        """S, of all agents."""
        return len(self.legal)

    @functools.cached_property
    def level(self) -> Int[np.ndarray, "N"]:
        """The number of moves before each node."""
        return np.repeat(np.arange(len(self.levels) - 1), np.diff(self.levels)).astype(np.int32)

    @functools.cached_property
    def source(self) -> Int[np.ndarray, "E"]:
        """The node that each edge leaves."""
        return np.repeat(np.arange(self.num_nodes), np.diff(self.first_edge)).astype(np.int32)

    def by_level(self) -> list[tuple[slice, slice]]:
        """The nodes of every level, from the root on, and the edges that leave them."""
        cuts = self.levels.tolist()
        return [
            (slice(start, stop), slice(int(self.first_edge[start]), int(self.first_edge[stop])))
            for start, stop in itertools.pairwise(cuts)
        ]

    @functools.cached_property
    def earned(self) -> Float[np.ndarray, "N1 P"]:
        """What every agent has earned before each node; 0 in the last row, the end of the game."""
        earned = np.zeros((self.num_nodes + 1, self.num_agents))
        for _, edges in self.by_level():
            earned[self.child[edges]] = earned[self.source[edges]] + self.rewards[edges]
        earned[-1] = 0.0
        return earned

    @functools.cached_property
    def final_returns(self) -> Float[np.ndarray, "Z P"]:
        """What every agent gets by the end, for each edge that leads there."""
        ends = self.child < 0
        return self.earned[self.source[ends]] + self.rewards[ends]

    @functools.cached_property
    def best_return_to_go(self) -> Float[np.ndarray, "N1 P"]:
        """The largest return that can still follow each node; 0 in the last row, the end of the game.

        Where rewards come at the end alone it is the game's largest return everywhere, as in a tree.
        """
        if np.any(self.rewards[self.child >= 0]):
            return self._backed_up(np.maximum, np.ones(len(self.child)))
        best = np.zeros((self.num_nodes + 1, self.num_agents))
        best[:-1] = self.rewards[self.child < 0].max(axis=0)
        return best

    @functools.cached_property
    def return_bound(self) -> float:
        """The width of the returns: shifted to be never positive, none is below minus this."""
        return float((self.best_return_to_go[0] - self.final_returns).max())

    def states_of(self, agent: int) -> slice:
        """The rows of the agent states of `agent`."""
        start, stop = np.searchsorted(self.state_player, [agent, agent + 1])
        return slice(int(start), int(stop))

    def probabilities(self, table: Float[np.ndarray, "S A"]) -> Float[np.ndarray, "E"]:
        """The probability of every edge at its source, under the policy `table`."""
        found = self.chance.copy()
        for _, edges in self.by_level():  # not all at once, as there are millions
            row = self.agent_state[self.source[edges]]
            acted = row >= 0
            found[edges][acted] = table[row[acted], self.action[edges][acted]]
        return found

    def expected_returns(self, table: Float[np.ndarray, "S A"]) -> Float[np.ndarray, "P"]:
        """Every agent's expected return: one sweep up the levels."""
        return self._backed_up(np.add, self.probabilities(table))[0]

    def _backed_up(self, combine: np.ufunc, weight: Float[np.ndarray, "E"]) -> Float[np.ndarray, "N1 P"]:
        """From the last level to the first, `combine` of all edges' weights times what follows them."""
        values = np.zeros((self.num_nodes + 1, self.num_agents))  # the last is the end of the game
        for nodes, edges in reversed(self.by_level()):
            worth = weight[edges, None] * (self.rewards[edges] + values[self.child[edges]])
            values[nodes] = combine.reduceat(worth, self.first_edge[nodes] - edges.start)
        return values


class Recall(NamedTuple):
    """What agents with these states remember (Morrill et al. 2022, Section 2.1)."""

    perfect: bool
    """Every agent state tells all earlier agent states and actions of its agent."""
    timed: bool
    """Every agent state tells how many actions its agent has taken."""
    absent_minded: bool
    """Some agent state can come twice in one lifetime."""


def recall(world: Graph) -> Recall:
    """What the agent states of `world` remember."""
    perfect = timed = True
    for agent in range(world.num_agents):
        acted = (world.player == agent)[world.source]
        sequence = world.agent_state[world.source].astype(np.int64) * world.num_actions + world.action

        def last(
            edges: slice, before: np.ndarray, acted: Any = acted, sequence: Any = sequence
        ) -> np.ndarray:
            return np.where(acted[edges], sequence[edges], before)

        def turns(edges: slice, before: np.ndarray, acted: Any = acted) -> np.ndarray:
            return before + acted[edges]

        perfect = perfect and _is_told(world, agent, *extremes(world, -1, last))
        timed = timed and _is_told(world, agent, *extremes(world, 0, turns))
    return Recall(perfect, timed, not timed and _comes_twice(world))


Extremes = tuple[Int[np.ndarray, "N1"], Int[np.ndarray, "N1"]]


def extremes(world: Graph, first: int, follow: Callable[[slice, np.ndarray], np.ndarray]) -> Extremes:
    """The least and the most of a number that histories carry, at each node, and last at the end of the game.

    It is `first` at the root; `follow(edges, numbers)` makes of the numbers before some edges those after.
    """
    least = np.full(world.num_nodes + 1, np.iinfo(np.int64).max)
    most = np.full(world.num_nodes + 1, np.iinfo(np.int64).min)
    least[0] = most[0] = first
    for _, edges in world.by_level():
        source, child = world.source[edges], world.child[edges]
        np.minimum.at(least, child, follow(edges, least[source]))
        np.maximum.at(most, child, follow(edges, most[source]))
    return least, most


def _is_told(world: Graph, agent: int, least: np.ndarray, most: np.ndarray) -> bool:
    """Whether a number is the same at all histories of each state of `agent`, given its extremes."""
    nodes = np.flatnonzero(world.player == agent)
    low = np.full(world.num_agent_states, np.iinfo(np.int64).max)
    high = np.full(world.num_agent_states, np.iinfo(np.int64).min)
    np.minimum.at(low, world.agent_state[nodes], least[nodes])
    np.maximum.at(high, world.agent_state[nodes], most[nodes])
    met = world.state_player == agent
    return bool(np.all(low[met] == high[met]))


def _comes_twice(world: Graph) -> bool:
    """Whether a path leads from a node of an agent state to another node of it."""
    import scipy.sparse.csgraph  # takes half a second to load, and trees do not need it

    goes_on = world.child >= 0
    source, child = world.source[goes_on], world.child[goes_on]
    for agent in range(world.num_agents):
        # With all nodes of an agent state made one, a state that comes twice lies on a cycle.
        own = world.player == agent
        merged = np.where(own, world.num_nodes + world.agent_state, np.arange(world.num_nodes))
        size = world.num_nodes + world.num_agent_states
        joined = scipy.sparse.coo_matrix((np.ones(len(child)), (merged[source], merged[child])), (size, size))
        count, part = scipy.sparse.csgraph.connected_components(joined, connection="strong")
        crowded = np.bincount(part, minlength=count) > 1
        crowded[part[merged[source[merged[source] == merged[child]]]]] = True
        for state in np.unique(world.agent_state[own & crowded[part[merged]]]):
            there = own & (world.agent_state == state)

            def met(edges: slice, before: np.ndarray, there: Any = there) -> np.ndarray:
                return before | there[world.source[edges]]

            if np.any(there & (extremes(world, 0, met)[1][:-1] > 0)):
                return True
    return False


class Rows:
    """What a walk over a game finds, until it is a graph. Flat arrays, as there are millions of edges."""

    def __init__(self, num_agents: int) -> None:
        self._num_agents = num_agents
        self._levels: list[int] = []
        self._player = array.array("i")
        self._state = array.array("i")
        self._seen = array.array("i")
        self._first_edge = array.array("q")
        self.action = array.array("i")
        """Of every edge, node after node."""
        self.child = array.array("i")
        """Where each leads: a place in the next level, -1 for the end of the game."""
        self._chances = array.array("d")
        self._rewards = array.array("d")
        self._rewarded = array.array("q")
        self._states: dict[tuple[int, Hashable], int] = {}
        self._sights: dict[tuple[int, Hashable], int] = {}
        self.actions: list[Sequence[int]] = []
        self._players: list[int] = []
        self._shown: list[Any] = []

    def begin_level(self) -> None:
        """The nodes that follow are one move further."""
        self._levels.append(len(self._player))

    def agent_state(self, player: int, state: Hashable, actions: Sequence[int], shown: Any) -> int:
        """The number of an agent state, whose legal actions must be the same wherever it is met.

        Of `shown` its features are made, by `finish`.
        """
        number = self._states.setdefault((player, state), len(self.actions))
        if number == len(self.actions):
            self.actions.append(actions)
            self._players.append(player)
            self._shown.append(shown)
        elif self.actions[number] != actions:
            raise ValueError(
                f"an agent state of player {player} has the legal actions {list(self.actions[number])} at "
                f"one history and {list(actions)} at another: agents must remember more."
            )
        return number

    def node(self, player: int, agent_state: int, seen: Hashable) -> None:
        """One more node of this level, where the player sees that; its edges follow."""
        self._first_edge.append(len(self.action))
        self._player.append(player if player >= 0 else CHANCE)
        self._state.append(agent_state)
        self._seen.append(-1 if player < 0 else self._sights.setdefault((player, seen), len(self._sights)))

    def chances(self, probabilities: Sequence[float]) -> None:
        """The probabilities of the newest node's edges, where chance moves."""
        self._chances.extend(probabilities)

    def reward(self, rewards: Sequence[float]) -> None:
        """What the newest edge pays."""
        self._rewarded.append(len(self.action) - 1)
        self._rewards.extend(rewards)

    def finish(
        self, num_actions: int, name: str, features: Callable[[Any, int], Float[np.ndarray, "D"]]
    ) -> tuple[Graph, dict[tuple[int, Hashable], int]]:
        """The graph, and the row of every player's agent state; `features(shown, num_actions)` of each."""
        # The arrays themselves, not copies of them.
        player, state, seen, action, child = (
            np.frombuffer(found, np.int32)
            for found in (self._player, self._state, self._seen, self.action, self.child)
        )
        levels = np.array([*self._levels, len(player)], np.int64)
        self._first_edge.append(len(action))
        first_edge = np.frombuffer(self._first_edge, np.int64)
        for depth in range(len(levels) - 2):
            edges = slice(first_edge[levels[depth]], first_edge[levels[depth + 1]])
            child[edges] = np.where(child[edges] >= 0, child[edges] + levels[depth + 1], -1)
        rewards = np.zeros((len(child), self._num_agents))
        rewards[np.frombuffer(self._rewarded, np.int64)] = np.frombuffer(self._rewards).reshape(
            -1, self._num_agents
        )
        chance = np.ones(len(child))
        chance[np.repeat(player < 0, np.diff(first_edge))] = np.frombuffer(self._chances)
        order = np.argsort(self._players, kind="stable")
        rank = np.empty(len(order) + 1, np.int32)
        rank[order], rank[-1] = np.arange(len(order)), -1
        legal = np.zeros((len(order), num_actions), bool)
        for row, old in enumerate(order.tolist()):
            legal[row, self.actions[old]] = True
        made = Graph(
            num_agents=self._num_agents,
            num_actions=num_actions,
            levels=levels,
            player=player,
            agent_state=rank[state],
            seen=seen,
            first_edge=first_edge,
            action=action,
            child=child,
            chance=chance,
            rewards=rewards,
            state_player=np.array(self._players, np.int32)[order],
            legal=legal,
            features=np.array([features(self._shown[old], num_actions) for old in order]),
            name=name,
        )
        return made, {known: int(rank[number]) for known, number in self._states.items()}


class Level(NamedTuple):
    """The edges that leave the nodes of one level."""

    source: Int[Array, "e"]
    """The node that an edge leaves, counted within its level."""
    child: Int[Array, "e"]
    """Where it leads, counted within the next level; one past its last where the game is over."""
    pair: Int[Array, "e"]
    """Its place in a flat table [S, A]; S A at chance."""
    chance: Float[Array, "e"]
    rewards: Float[Array, "e P"] | None
    """None where no edge of the level has one."""
    size: Int[Array, ""]


class Field(NamedTuple):
    """A graph, ready for sweeps: hand it to compiled functions as an argument."""

    levels: tuple[Level, ...]
    player: Int[Array, "S"]
    nothing: Float[Array, "P"]
    """What every agent gets after the end: zeros."""


def field(world: Graph, dtype: type = jnp.float32) -> Field:
    """The edges of `world` by levels."""
    levels = []
    cuts = [*world.levels.tolist(), world.num_nodes]
    for start, stop, end in zip(cuts[:-2], cuts[1:-1], cuts[2:], strict=True):
        edges = slice(world.first_edge[start], world.first_edge[stop])
        source = world.source[edges]
        acting = world.player[source] >= 0
        pair = world.agent_state[source].astype(np.int64) * world.num_actions + world.action[edges]
        child = world.child[edges]
        rewards = world.rewards[edges]
        levels.append(
            Level(
                source=jnp.asarray(source - start, jnp.int32),
                child=jnp.asarray(np.where(child >= 0, child - stop, end - stop), jnp.int32),
                pair=jnp.asarray(np.where(acting, pair, world.legal.size), jnp.int32),
                chance=jnp.asarray(world.chance[edges], dtype),
                rewards=jnp.asarray(rewards, dtype) if np.any(rewards) else None,
                size=jnp.zeros(stop - start, jnp.int8),
            )
        )
    nothing = jnp.zeros(world.num_agents, dtype)
    return Field(tuple(levels), jnp.asarray(world.state_player, jnp.int32), nothing)


def expected_tally(field: Field, table: Float[Array, "S A"], legal: Bool[Array, "S A"]) -> directions.Tally:
    """What one episode has to say on average, with the exact value of every agent state as the baseline.

    `visits` are P[s] π(a) and `returns` P[s] π(a) (q_s(a) − v_s), with P[s] the expected number of visits.
    """
    # Not quite zero, so that an action whose probability underflows still has its share of the sum.
    limits = jnp.finfo(table.dtype)
    table = jnp.where(legal, jnp.maximum(table, limits.tiny / limits.eps), 0.0)
    flat = jnp.append(table.reshape(-1), 1.0)
    sizes = [level.size.shape[0] for level in field.levels]
    edge = [flat[level.pair] * level.chance for level in field.levels]
    reach = [jnp.ones(1, table.dtype)]
    for level, probability, size in zip(field.levels, edge, sizes[1:], strict=False):
        moved = reach[-1][level.source] * probability
        reach.append(jax.ops.segment_sum(moved, level.child, size + 1)[:size])

    num_agents = field.nothing.shape[0]
    sums = jnp.zeros(table.size + 1, table.dtype)
    values = jnp.zeros((1, num_agents), table.dtype)
    agent_of = jnp.append(jnp.repeat(field.player, table.shape[1]), 0)
    for level, probability, here, size in reversed(list(zip(field.levels, edge, reach, sizes, strict=True))):
        worth = values[level.child]
        if level.rewards is not None:
            worth = worth + level.rewards
        own = jnp.take_along_axis(worth, agent_of[level.pair][:, None], axis=1)[:, 0]
        sums = sums.at[level.pair].add(here[level.source] * own)
        inner = jax.ops.segment_sum(probability[:, None] * worth, level.source, size, indices_are_sorted=True)
        values = jnp.concatenate([inner, jnp.zeros((1, num_agents), table.dtype)])

    visits = jnp.zeros(table.shape[0] + 1, table.dtype)
    for level, here in zip(field.levels, reach, strict=True):
        first = jnp.append(True, level.source[1:] != level.source[:-1])
        state = jnp.where(first, level.pair // table.shape[1], table.shape[0])
        visits = visits.at[state].add(here[level.source])
    weight = visits[:-1, None]
    action_values = sums[:-1].reshape(table.shape)
    value = jnp.sum(table * action_values, axis=1, keepdims=True)
    advantages = jnp.where(legal, action_values - value, 0.0)
    return directions.Tally(table * advantages, table * weight, jnp.ones((), table.dtype))
