"""Episodes in lock step under a frozen policy, inside jit, on a compiled tree. Acting never learns.

Pipeline: probabilities -> action -> **trajectory**. All episodes of a batch make their t-th decision
together, from random numbers that are drawn in one pass. Consecutive moves of chance are one draw.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import draws, trajectory, types
from pohp_neurd import tree as trees


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=[
        *("state", "agent", "first", "returns", "action_of", "place_of"),
        *("reply_first", "reply_count", "reply", "alias_threshold", "alias"),
    ],
    meta_fields=["chance_after", "rewards_on_the_way"],
)
@dataclasses.dataclass(frozen=True, eq=False)
class Board:
    """What playing on a tree reads, as device arrays. Made by `board`.

    Terminal histories lead to themselves and have the agent state S, one past the last, where the only
    action is the first: no step needs to ask whether an episode is over.
    """

    state: Int[Array, "N"]
    agent: Int[Array, "N"]
    first: Int[Array, "N"]
    """The first child."""
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
    alias_threshold: draws.Fixed | None
    """Walker's tables; None where all chance is uniform."""
    alias: Int[Array, "R"] | None
    chance_after: tuple[bool, ...]
    """Whether chance can move after the t-th decision of an episode; one entry for each of L decisions."""
    rewards_on_the_way: bool
    """Whether there are rewards before the end."""


def board(tree: trees.Tree) -> Board:
    """The tree, ready for lock-step play."""
    terminal = tree.player == trees.TERMINAL
    num_states = tree.num_information_states
    decisions, returns = _sums_from_the_root(tree)
    chance_after = [
        bool(np.any((tree.player == trees.CHANCE) & (decisions == step + 1)))
        for step in range(tree.spec.horizon or 0)
    ]
    width = int(tree.legal.sum(axis=1).max())
    action_of = np.argsort(~tree.legal, axis=1, kind="stable")[:, :width]
    place_of = np.where(tree.legal, np.cumsum(tree.legal, axis=1) - 1, width)
    replies = _replies(tree)
    uniform = np.all(replies.threshold == 1.0)
    return Board(
        state=_whole(np.where(tree.information_state >= 0, tree.information_state, num_states)),
        agent=_whole(np.maximum(tree.player, 0)),
        first=_whole(np.where(terminal, np.arange(tree.num_histories), tree.first_child)),
        returns=jnp.asarray(returns, jnp.float32),
        action_of=_whole(np.concatenate([action_of, np.zeros((1, width), int)])),
        place_of=_whole(place_of),
        reply_first=_whole(replies.first),
        reply_count=_whole(replies.number),
        reply=_whole(replies.row),
        alias_threshold=None if uniform else draws.fixed(replies.threshold),
        alias=None if uniform else _whole(replies.alias),
        chance_after=tuple(chance_after),
        rewards_on_the_way=bool(np.any(returns[~terminal])),
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
    digits = iter(draws.digits(key, (draws_each, num_episodes)))
    row = _reply(board, jnp.zeros(num_episodes, jnp.int32), next(digits), key=chance_key)
    rows, places = [], []
    for step, chance in enumerate(board.chance_after):
        place = _search(thresholds, board.state[row], next(digits), key=jax.random.fold_in(finer_key, step))
        rows.append(row)
        places.append(place)
        row = board.first[row] + place
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


def tally(board: Board, episodes: Episodes) -> trajectory.Tally:
    """The sums over `episodes`."""
    found = visits(board, episodes)
    num_states, num_actions = board.place_of.shape
    place = (found.state * num_actions + found.action).reshape(-1)
    both = jnp.stack([found.return_.reshape(-1), jnp.ones(place.shape, found.return_.dtype)], axis=1)
    # One row more than there are states: it takes in what comes after an episode's end.
    sums = jnp.zeros(((num_states + 1) * num_actions, 2), found.return_.dtype).at[place].add(both)
    sums = sums[:-num_actions].reshape(num_states, num_actions, 2)
    return trajectory.Tally(sums[..., 0], sums[..., 1], jnp.asarray(episodes.end.size, sums.dtype))


def _whole(values: np.ndarray) -> Int[Array, "..."]:
    return jnp.asarray(values, jnp.int32)


def _thresholds(board: Board, probabilities: Float[Array, "S A"]) -> draws.Fixed:
    """Thresholds [S1, M] over legal places, padded for a binary search with some that nothing reaches.

    At the state after the end only the first place is left.
    """
    width = board.action_of.shape[1]
    in_places = jnp.take_along_axis(probabilities, board.action_of[:-1], axis=1)
    legal = jnp.arange(width)[None] < jnp.sum(board.place_of < width, axis=1)[:, None]
    found = draws.thresholds(jnp.where(legal, in_places, 0.0))
    more = ((0, 1), (0, 2 ** (width - 1).bit_length() - width))
    return draws.Fixed(*(jnp.pad(part, more, constant_values=draws.ONE) for part in found))


def _search(
    thresholds: draws.Fixed, state: Int[Array, "B"], high: Int[Array, "B"], *, key: types.Key
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
        number = draws.Fixed(high, draws.digits(key, high.shape))
        return search(lambda at: draws.reached(draws.Fixed(first[at], second[at]), number))

    place = search(quick)
    return jax.lax.cond(jnp.any(jnp.stack(equal)), exact, lambda: place)


def _reply(board: Board, row: Int[Array, "B"], digits: Int[Array, "B"], *, key: types.Key) -> Int[Array, "B"]:
    """Where chance leads from `row`; `row` itself where it is not chance's turn.

    Among k replies each column is drawn as often as the next, to k · 2⁻²⁴ of that.
    """
    count = board.reply_count[row]
    scaled = digits.astype(jnp.float32) * np.float32(1 / draws.ONE) * count.astype(jnp.float32)
    # A product can round up to the count itself.
    place = board.reply_first[row] + jnp.minimum(scaled.astype(jnp.int32), count - 1)
    if board.alias_threshold is None or board.alias is None:
        return board.reply[place]
    threshold = jax.tree.map(lambda part: part[place], board.alias_threshold)
    lost = draws.reached(threshold, draws.uniform(key, place.shape))
    return jnp.where(lost, board.alias[place], board.reply[place])


def _sums_from_the_root(tree: trees.Tree) -> tuple[Int[np.ndarray, "N"], Float[np.ndarray, "N P"]]:
    """How many decisions lie above each history, and the shifted rewards up to it."""
    decisions = np.zeros(tree.num_histories, np.int32)
    returns = np.zeros((tree.num_histories, tree.num_agents))
    for start, stop in itertools.pairwise(tree.levels[1:]):
        above = tree.parent[start:stop]
        decisions[start:stop] = decisions[above] + (tree.player[above] >= 0)
        returns[start:stop] = returns[above] + tree.shifted_rewards[start:stop]
    return decisions, returns


class _Replies(NamedTuple):
    first: np.ndarray
    number: np.ndarray
    row: np.ndarray
    threshold: np.ndarray
    alias: np.ndarray


def _replies(tree: trees.Tree) -> _Replies:
    """Every history's replies, with Walker's tables to draw from them."""
    count = np.ones(tree.num_histories, np.int64)
    begins = (tree.player == trees.CHANCE) & ((tree.parent < 0) | (tree.player[tree.parent] != trees.CHANCE))
    ways = {row: _ways_through_chance(tree, row) for row in np.flatnonzero(begins).tolist()}
    for row, (rows, _) in ways.items():
        count[row] = len(rows)
    first = np.cumsum(count) - count
    total = int(count.sum())
    reply, threshold = np.repeat(np.arange(tree.num_histories), count), np.ones(total)
    alias = reply.copy()
    for row, (rows, chances) in ways.items():
        block = slice(first[row], first[row] + count[row])
        reply[block] = rows
        threshold[block], other = trees.alias_table(chances)
        alias[block] = rows[other]
    return _Replies(first, count, reply, threshold, alias)


def _ways_through_chance(tree: trees.Tree, row: int) -> tuple[np.ndarray, np.ndarray]:
    """The histories that chance alone can lead to from `row`, and their probabilities."""
    rows, chances = np.array([row]), np.ones(1)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    while len(rows):
        there = tree.player[rows] != trees.CHANCE
        found.append((rows[there], chances[there]))
        rows, chances = rows[~there], chances[~there]
        counts = tree.num_children[rows]
        starts = np.repeat(tree.first_child[rows] - (np.cumsum(counts) - counts), counts)
        rows, chances = starts + np.arange(counts.sum()), np.repeat(chances, counts)
        chances = chances * tree.chance[rows]
    return np.concatenate([rows for rows, _ in found]), np.concatenate([chances for _, chances in found])
