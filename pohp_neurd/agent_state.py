"""What an agent remembers: update functions u from histories to agent states, and what they are worth.

Pipeline: observation -> **agent state** -> logits (Morrill et al. 2022, Section 2.1). The agent chooses its
update function, not the game. Each is a pair (init, update) that sees the process only through what the
agent itself sees: its observations and its own actions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import process, types
from pohp_neurd.finite import tree


class UpdateFunction(NamedTuple):
    """An agent's memory as two pure functions."""

    init: Callable[[types.History], Any]
    """The agent state at the agent's first active history."""
    update: Callable[[Any, types.Action, types.History], Any]
    """The agent state after acting in one state and coming to a next active history."""


def information_state(world: Any) -> UpdateFunction:
    """The information state as the process numbers it, as a Tree does: the row of a table."""
    if not hasattr(world, "information_state_of"):
        raise ValueError(
            f"{type(world).__name__} does not number its information states: use last_observation or window."
        )
    return _latest(world.information_state_of)


def last_observation(world: process.Process) -> UpdateFunction:
    """The latest observation, and nothing of what came before."""
    return _latest(world.observation)


def _latest(read: Callable[[types.History], Any]) -> UpdateFunction:
    return UpdateFunction(init=read, update=lambda state, action, history: read(history))


class Window(NamedTuple):
    """The last k pairs of an action and the observation that followed it, the newest last."""

    actions: Int[Array, "k"]
    """-1 before the first action."""
    observations: Float[Array, "k D"]


def window(world: process.Process, length: int) -> UpdateFunction:
    """The last `length` pairs of (action, observation); zeros and action -1 before the beginning."""
    if length < 1:
        raise ValueError(f"a window must have a length of at least 1, but has {length}.")

    def init(history: types.History) -> Window:
        observation = world.observation(history)
        earlier = jnp.zeros((length - 1, *observation.shape), observation.dtype)
        actions = jnp.full(length, -1, jnp.int32)
        return Window(actions, jnp.concatenate([earlier, observation[None]]))

    def update(state: Window, action: types.Action, history: types.History) -> Window:
        newest = jnp.asarray(action, jnp.int32)[None]
        return Window(
            jnp.concatenate([state.actions[1:], newest]),
            jnp.concatenate([state.observations[1:], world.observation(history)[None]]),
        )

    return UpdateFunction(init, update)


class Timed(NamedTuple):
    """Another agent state, and how many actions the agent has taken."""

    time: Int[Array, ""]
    state: Any


def timed(inner: UpdateFunction) -> UpdateFunction:
    """`inner` with a count of own actions, so that no agent state comes twice in a lifetime."""
    return UpdateFunction(
        init=lambda history: Timed(jnp.zeros((), jnp.int32), inner.init(history)),
        update=lambda state, action, history: Timed(
            state.time + 1, inner.update(state.state, action, history)
        ),
    )


class Index(NamedTuple):
    """The agent states that an update function makes of a tree's histories, numbered."""

    state: Int[np.ndarray, "N"]
    """In the order of a tree's information states; -1 where no agent acts."""
    num_states: int
    legal: np.ndarray
    """[states, A], as at the first history of each; `legal_actions_agree` says whether at all."""
    player: Int[np.ndarray, "states"]


def index(world: tree.Tree, memory: UpdateFunction) -> Index:
    """Numbers for the agent states of all decisions of `world`: rows of a table for that memory."""
    numbers = np.full(world.num_histories, -1, np.int32)
    turns = tree.at_turn(world.turns, world.player)
    count = 0
    representatives: list[int] = []
    for agent in range(world.num_agents):
        rows = np.flatnonzero(world.player == agent)
        if not len(rows):
            continue
        _, first, inverse = np.unique(
            _contents(world, memory, agent, rows), return_index=True, return_inverse=True
        )
        order = np.lexsort((first, turns[rows[first]]))
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        numbers[rows] = count + rank[inverse.reshape(-1)]
        representatives.extend(rows[first[order]])
        count += len(first)
    legal = world.legal[world.information_state[representatives]]
    return Index(numbers, count, legal, world.player[representatives].astype(np.int32))


def _contents(
    world: tree.Tree, memory: UpdateFunction, agent: int, rows: Int[np.ndarray, "decisions"]
) -> np.ndarray:
    """The agent state at each of `rows`, as opaque bytes that can be compared."""
    previous = world.previous_decision[rows, agent]
    actions = world.previous_action[rows, agent]
    place = np.full(world.num_histories, -1, np.int32)
    place[rows] = np.arange(len(rows))
    states: list[np.ndarray] | None = None
    done = np.zeros(len(rows), bool)
    init, update = jax.jit(jax.vmap(memory.init)), jax.jit(jax.vmap(memory.update))
    while not np.all(done):
        # All decisions whose predecessor is known: one batched call for each of the agent's turns.
        ready = ~done & ((previous < 0) | done[place[previous]])
        chosen = np.flatnonzero(ready)
        histories = tree.TreeHistory(
            jnp.asarray(rows[chosen], jnp.int32), jnp.zeros((len(chosen), world.num_agents))
        )
        if states is None:
            made = init(histories)
            layout = jax.tree.structure(made)
            states = [np.zeros((len(rows), *leaf.shape[1:]), leaf.dtype) for leaf in jax.tree.leaves(made)]
        else:
            before = place[previous[chosen]]
            old = jax.tree.unflatten(layout, [leaf[before] for leaf in states])
            made = update(old, jnp.asarray(actions[chosen]), histories)
        for leaf, new in zip(states, jax.tree.leaves(made), strict=True):
            leaf[chosen] = new
        done |= ready
    assert states is not None
    columns = [np.ascontiguousarray(leaf.reshape(len(rows), -1) + 0).view(np.uint8) for leaf in states]
    joined = np.ascontiguousarray(np.concatenate(columns, axis=1))
    return joined.view(np.dtype((np.void, joined.shape[1]))).reshape(-1)


class Verdict(NamedTuple):
    """Whether a property holds, and where not: two histories (rows of the tree) that break it."""

    holds: bool
    reason: str
    histories: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        return self.holds


def is_timed(world: tree.Tree, memory: UpdateFunction) -> Verdict:
    """Whether every agent state tells how many actions the agent has taken."""
    numbers = index(world, memory).state
    taken = tree.at_turn(world.turns, world.player)
    return _uniform(numbers, taken, "were reached after different numbers of own actions")


def is_absent_minded(world: tree.Tree, memory: UpdateFunction) -> Verdict:
    """Whether some agent state can come twice in one lifetime; the two histories, if so."""
    numbers = index(world, memory).state
    ancestor = tree.at_turn(world.previous_decision, world.player)
    rows = np.flatnonzero(world.player >= 0)
    above = ancestor[rows]
    while np.any(above >= 0):
        alive = above >= 0
        rows, above = rows[alive], above[alive]
        same = numbers[rows] == numbers[above]
        if np.any(same):
            first, second = int(above[same][0]), int(rows[same][0])
            return Verdict(
                True,
                f"histories {first} and {second} lie on one path and share agent state {numbers[second]}",
                (first, second),
            )
        above = ancestor[above]
    return Verdict(False, "no agent state comes twice on a path")


def has_perfect_recall(world: tree.Tree, memory: UpdateFunction) -> Verdict:
    """Whether every agent state tells all earlier agent states and actions of the agent."""
    numbers = index(world, memory).state
    before, action = (
        tree.at_turn(values, world.player) for values in (world.previous_decision, world.previous_action)
    )
    # By induction over own turns it is enough that the latest state and action agree.
    latest = np.where(before >= 0, numbers[before].astype(np.int64), -1)
    sequence = latest * (world.num_actions + 1) + action
    return _uniform(numbers, sequence, "were reached through different own states or actions")


def legal_actions_agree(world: tree.Tree, memory: UpdateFunction) -> Verdict:
    """Whether all histories of every agent state have the same legal actions."""
    numbers = index(world, memory).state
    masks = np.unique(world.legal, axis=0, return_inverse=True)[1].reshape(-1)
    kinds = masks[np.maximum(world.information_state, 0)]
    return _uniform(numbers, kinds, "have different legal actions")


def _uniform(numbers: np.ndarray, property_: np.ndarray, complaint: str) -> Verdict:
    """Whether `property_` is the same at all histories of each agent state."""
    rows = np.flatnonzero(numbers >= 0)
    _, first, inverse = np.unique(numbers[rows], return_index=True, return_inverse=True)
    differs = property_[rows] != property_[rows][first][inverse.reshape(-1)]
    if not np.any(differs):
        return Verdict(True, "all histories of each agent state agree")
    offender = int(np.flatnonzero(differs)[0])
    other = int(rows[first[inverse.reshape(-1)[offender]]])
    one = int(rows[offender])
    return Verdict(
        False,
        f"histories {other} and {one} share agent state {numbers[one]} but {complaint}",
        (other, one),
    )
