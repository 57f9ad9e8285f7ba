"""Episodes in lock step under a frozen policy, inside jit, on a tree or a graph. Acting never learns.

Pipeline: probabilities -> action -> **trajectory**. All episodes of a batch make their t-th decision
together, from random numbers that are drawn in one pass. Consecutive moves of chance are one draw.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import directions, policy, types
from pohp_neurd.finite import graph
from pohp_neurd.finite import tree as trees


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=[
        *("state", "agent", "first", "follow", "returns", "action_of", "place_of"),
        *("reply_first", "reply_count", "reply", "alias_threshold", "alias"),
    ],
    meta_fields=["chance_after", "rewards_on_the_way"],
)
@dataclasses.dataclass(frozen=True, eq=False)
class Board:
    """What playing reads, as device arrays. Made by `board`.

    Terminal histories lead to themselves and have the agent state S, one past the last, where the only
    action is the first: no step needs to ask whether an episode is over.
    """

    state: Int[Array, "N"]
    agent: Int[Array, "N"]
    first: Int[Array, "N"]
    """The first child, or the first edge."""
    follow: Int[Array, "E"] | None
    """Where each edge leads; None for a tree, whose children stand side by side."""
    returns: Float[Array, "N P"]
    """Shifted rewards from the root up to each history."""
    action_of: Int[Array, "S1 W"]
    """The action of each of an agent state's legal places; W is the most that are legal anywhere."""
    place_of: Int[Array, "S A"]
    """The inverse: the place of each legal action; W at illegal ones."""
    reply_first: Int[Array, "N"]
    reply_count: Int[Array, "N"]
    """After arrival at a history, its replies `reply[first : first + count]` are drawn from: itself alone
    where an agent is to act or the game is over, all ways through chance where it is chance's turn."""
    reply: Int[Array, "R"]
    alias_threshold: policy.Fixed | None
    """Walker's tables; None where all chance is uniform."""
    alias: Int[Array, "R"] | None
    chance_after: tuple[bool, ...]
    """Whether chance can move after the t-th decision of an episode; one entry for each of L decisions."""
    rewards_on_the_way: bool
    """Whether there are rewards before the end."""


def board(world: trees.Tree | graph.Graph) -> Board:
    """A tree or a graph, ready for lock-step play."""
    web = _of_graph(world) if isinstance(world, graph.Graph) else _of_tree(world)
    legal = world.legal
    chance = web.player == trees.CHANCE
    chance_after = [
        bool(np.any(chance & (web.fewest <= step + 1) & (step + 1 <= web.most)))
        for step in range(int(web.most.max()))
    ]
    width = int(legal.sum(axis=1).max())
    action_of = np.argsort(~legal, axis=1, kind="stable")[:, :width]
    place_of = np.where(legal, np.cumsum(legal, axis=1) - 1, width)
    return Board(
        state=_whole(np.where(web.state >= 0, web.state, len(legal))),
        agent=_whole(np.maximum(web.player, 0)),
        first=_whole(web.first),
        follow=None if web.child is None else _whole(web.child),
        returns=jnp.asarray(web.returns, jnp.float32),
        action_of=_whole(np.concatenate([action_of, np.zeros((1, width), int)])),
        place_of=_whole(place_of),
        chance_after=tuple(chance_after),
        rewards_on_the_way=bool(np.any(web.returns[web.player != trees.TERMINAL])),
        **_replies(web),
    )


class Episodes(NamedTuple):
    """B episodes, as the histories that they went through; those that end early stay where they end."""

    row: Int[Array, "L B"]
    """Where the t-th decision is made."""
    place: Int[Array, "L B"]
    """The place of the action among the legal ones."""
    end: Int[Array, "B"]


def play(board: Board, probabilities: Float[Array, "S A"], num_episodes: int, *, key: types.Key) -> Episodes:
    """`num_episodes` independent episodes in which all agents act by the table `probabilities`."""
    thresholds = _thresholds(board, probabilities)
    key, finer_key, chance_key = jax.random.split(key, 3)
    draws_each = 1 + len(board.chance_after) + sum(board.chance_after)
    digits = iter(policy.digits(key, (draws_each, num_episodes)))
    row = _reply(board, jnp.zeros(num_episodes, jnp.int32), next(digits), key=chance_key)
    rows, places = [], []
    for step, chance in enumerate(board.chance_after):
        place = _search(thresholds, board.state[row], next(digits), key=jax.random.fold_in(finer_key, step))
        rows.append(row)
        places.append(place)
        row = board.first[row] + place
        if board.follow is not None:
            row = board.follow[row]
        if chance:
            row = _reply(board, row, next(digits), key=jax.random.fold_in(chance_key, step))
    return Episodes(jnp.stack(rows), jnp.stack(places), row)


class Visits(NamedTuple):
    """What a learner needs of each decision of a batch."""

    state: Int[Array, "L B"]
    """S where the episode was over."""
    agent: Int[Array, "L B"]
    action: Int[Array, "L B"]
    return_: Float[Array, "L B"]
    """The acting agent's return from there on, shifted to be never positive."""
    valid: Bool[Array, "L B"]
    """False where the episode was over."""


def visits(board: Board, episodes: Episodes) -> Visits:
    """The decisions of `episodes`."""
    state, agent = board.state[episodes.row], board.agent[episodes.row]
    return_ = board.returns[episodes.end[None], agent]
    if board.rewards_on_the_way:
        return_ = return_ - board.returns[episodes.row, agent]
    num_states = board.place_of.shape[0]
    action = board.action_of[state, episodes.place]
    return Visits(state, agent, action, return_, state < num_states)


def tally(board: Board, episodes: Episodes) -> directions.Tally:
    """The sums over `episodes`."""
    found = visits(board, episodes)
    num_states, num_actions = board.place_of.shape
    place = (found.state * num_actions + found.action).reshape(-1)
    both = jnp.stack([found.return_.reshape(-1), jnp.ones(place.shape, found.return_.dtype)], axis=1)
    # One row more than there are states: it takes in what comes after an episode's end.
    sums = jnp.zeros(((num_states + 1) * num_actions, 2), found.return_.dtype).at[place].add(both)
    sums = sums[:-num_actions].reshape(num_states, num_actions, 2)
    return directions.Tally(sums[..., 0], sums[..., 1], jnp.asarray(episodes.end.size, sums.dtype))


def _whole(values: np.ndarray) -> Int[Array, "..."]:
    return jnp.asarray(values, jnp.int32)


def _thresholds(board: Board, probabilities: Float[Array, "S A"]) -> policy.Fixed:
    """Thresholds [S1, M] over legal places, padded for a binary search with some that nothing reaches.

    At the state after the end only the first place is left.
    """
    width = board.action_of.shape[1]
    in_places = jnp.take_along_axis(probabilities, board.action_of[:-1], axis=1)
    legal = jnp.arange(width)[None] < jnp.sum(board.place_of < width, axis=1)[:, None]
    found = policy.thresholds(jnp.where(legal, in_places, 0.0))
    more = ((0, 1), (0, 2 ** (width - 1).bit_length() - width))
    return policy.Fixed(*(jnp.pad(part, more, constant_values=policy.ONE) for part in found))


def _search(
    thresholds: policy.Fixed, state: Int[Array, "B"], high: Int[Array, "B"], *, key: types.Key
) -> Int[Array, "B"]:
    """The place of the first threshold above a uniform number, whose first half is `high`.

    The second half matters only where the first is equal to that of a threshold: one draw in some millions.
    It is drawn from `key` when that happens to any episode, and else not at all.
    """
    width = thresholds.high.shape[1]
    first, second = (part.reshape(-1) for part in thresholds)
    start = state * width

    def search(reached: Callable[[Array], Array]) -> Int[Array, "B"]:
        place = jnp.zeros(state.shape, jnp.int32)
        for bit in reversed(range((width - 1).bit_length())):
            probe = place + 2**bit
            place = jnp.where(reached(start + probe - 1), probe, place)
        return place

    equal = [jnp.zeros(state.shape, bool)]

    def quick(at: Array) -> Array:
        equal.append(first[at] == high)
        return first[at] <= high

    def exact() -> Int[Array, "B"]:
        number = policy.Fixed(high, policy.digits(key, high.shape))
        return search(lambda at: policy.reached(policy.Fixed(first[at], second[at]), number))

    place = search(quick)
    return jax.lax.cond(jnp.any(jnp.stack(equal)), exact, lambda: place)


def _reply(board: Board, row: Int[Array, "B"], digits: Int[Array, "B"], *, key: types.Key) -> Int[Array, "B"]:
    """Where chance leads from `row`; `row` itself where it is not chance's turn.

    Among k replies each column is drawn as often as the next, to k · 2⁻²⁴ of that.
    """
    count = board.reply_count[row]
    scaled = digits.astype(jnp.float32) * np.float32(1 / policy.ONE) * count.astype(jnp.float32)
    # A product can round up to the count itself.
    place = board.reply_first[row] + jnp.minimum(scaled.astype(jnp.int32), count - 1)
    if board.alias_threshold is None or board.alias is None:
        return board.reply[place]
    threshold = jax.tree.map(lambda part: part[place], board.alias_threshold)
    lost = policy.reached(threshold, policy.uniform(key, place.shape))
    return jnp.where(lost, board.alias[place], board.reply[place])


class _Web(NamedTuple):
    """A tree or a graph as rows, terminal ones included, and edges."""

    player: np.ndarray
    state: np.ndarray
    first: np.ndarray
    """The first edge; of a terminal row, one that leads to itself."""
    ways: np.ndarray
    """How many edges."""
    child: np.ndarray | None
    """Where each edge leads; None where edges are numbered as the rows they lead to."""
    chance: np.ndarray
    returns: np.ndarray
    """Shifted rewards from the root up to each row."""
    fewest: np.ndarray
    """The fewest decisions that can lie above each row."""
    most: np.ndarray

    def edges(self, rows: np.ndarray) -> np.ndarray:
        """The edges that leave `rows`, row by row."""
        counts = self.ways[rows]
        return np.repeat(self.first[rows] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())

    def follow(self, edges: np.ndarray) -> np.ndarray:
        """Where edges lead."""
        return edges if self.child is None else self.child[edges]


def _of_tree(tree: trees.Tree) -> _Web:
    everywhere, decisions = np.arange(tree.num_histories), tree.turns.sum(axis=1)
    return _Web(
        player=tree.player,
        state=tree.information_state,
        first=np.where(tree.player == trees.TERMINAL, everywhere, tree.first_child),
        ways=tree.num_children,
        child=None,
        chance=tree.chance,
        returns=tree.shifted_returns,
        fewest=decisions,
        most=decisions,
    )


def _of_graph(world: graph.Graph) -> _Web:
    """With a terminal row for every outcome of the game."""
    nodes, edges = world.num_nodes, len(world.child)
    outcomes, which = np.unique(world.final_returns, axis=0, return_inverse=True)
    count = len(outcomes)
    child = np.append(world.child, nodes + np.arange(count))
    child[:edges][world.child < 0] = nodes + which.reshape(-1)
    moved = (world.player[world.source] >= 0).astype(np.int64)
    decisions = graph.extremes(world, 0, lambda edges, before: before + moved[edges])
    fewest, most = (np.append(number[:-1], np.full(count, number[-1])) for number in decisions)
    best = world.best_return_to_go
    return _Web(
        player=np.append(world.player, np.full(count, trees.TERMINAL)),
        state=np.append(world.agent_state, np.full(count, -1)),
        first=np.append(world.first_edge[:-1], edges + np.arange(count)),
        ways=np.append(np.diff(world.first_edge), np.ones(count, int)),
        child=child,
        chance=np.append(world.chance, np.ones(count)),
        returns=np.concatenate([world.earned[:-1] + best[:-1] - best[0], outcomes - best[0]]),
        fewest=fewest,
        most=most,
    )


def _replies(web: _Web) -> dict[str, Any]:
    """Every row's replies, with Walker's tables to draw from them: the fields of a Board."""
    rows = len(web.player)
    count = np.ones(rows, np.int64)
    # Chance begins at the root, or after a decision; what follows it is among the ways through.
    begun = np.append(web.follow(web.edges(np.flatnonzero(web.player >= 0))), 0)
    begins = np.unique(begun[web.player[begun] == trees.CHANCE])
    ways = {row: _ways_through_chance(web, row) for row in begins.tolist()}
    for row, (found, _) in ways.items():
        count[row] = len(found)
    first = np.cumsum(count) - count
    total = int(count.sum())
    reply, threshold = np.repeat(np.arange(rows), count), np.ones(total)
    alias = reply.copy()
    for row, (found, chances) in ways.items():
        block = slice(first[row], first[row] + count[row])
        reply[block] = found
        threshold[block], other = trees.alias_table(chances)
        alias[block] = found[other]
    uniform = np.all(threshold == 1.0)
    return {
        "reply_first": _whole(first),
        "reply_count": _whole(count),
        "reply": _whole(reply),
        "alias_threshold": None if uniform else policy.fixed(threshold),
        "alias": None if uniform else _whole(alias),
    }


def _ways_through_chance(web: _Web, row: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows that chance alone can lead to from `row`, and their probabilities."""
    rows, chances = np.array([row]), np.ones(1)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    while len(rows):
        there = web.player[rows] != trees.CHANCE
        found.append((rows[there], chances[there]))
        rows, chances = rows[~there], chances[~there]
        edges = web.edges(rows)
        rows, chances = web.follow(edges), np.repeat(chances, web.ways[rows]) * web.chance[edges]
    return np.concatenate([rows for rows, _ in found]), np.concatenate([chances for _, chances in found])
