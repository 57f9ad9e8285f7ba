"""A finite process as arrays: every history a row, depth by depth, children side by side.

What `exact` sweeps over and `rollout` plays on. Here the daimon's moves (chance) are histories of their
own, so that their probabilities can be summed over. `grow` lays out a process that is described node by node.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks

CHANCE = -1
TERMINAL = -2


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
    """A finite process. Host arrays; what runs inside jit works on their `device` copies."""

    num_agents: int
    num_actions: int
    levels: tuple[int, ...]
    """Histories of depth d are rows levels[d] to levels[d + 1]."""
    parent: Int[np.ndarray, "N"]
    """-1 at the root."""
    first_child: Int[np.ndarray, "N"]
    num_children: Int[np.ndarray, "N"]
    incoming_action: Int[np.ndarray, "N"]
    """The action, or the chance outcome, that leads here from the parent; -1 at the root."""
    player: Int[np.ndarray, "N"]
    """The agent that acts here, CHANCE or TERMINAL."""
    chance: Float[np.ndarray, "N"]
    """The probability of the chance outcome that leads here; 1 after an agent's action."""
    rewards: Float[np.ndarray, "N P"]
    """Every agent's reward on arrival, as the game counts it: not shifted."""
    information_state: Int[np.ndarray, "N"]
    """The acting agent's information state; -1 where no agent acts."""
    state_player: Int[np.ndarray, "S"]
    """The agent that each information state belongs to: agent by agent, and own turn by own turn."""
    legal: Bool[np.ndarray, "S A"]
    features: Float[np.ndarray, "S D"]
    """Information-state tensors: what a network sees."""
    information_state_strings: tuple[str, ...]
    name: str = "process"

    @property
    def num_histories(self) -> int:
        """N: histories of every kind, chance and terminal ones included."""
        return len(self.parent)

    @property
    def num_information_states(self) -> int:
        """S: information states of all agents."""
        return len(self.legal)

    def states_of(self, agent: int) -> slice:
        """The rows of the information states of `agent`."""
        start, stop = np.searchsorted(self.state_player, [agent, agent + 1])
        return slice(int(start), int(stop))

    def along_paths(self, values: np.ndarray, combine: np.ufunc = np.add) -> np.ndarray:
        """`values` [N, ...] combined over all histories on the way to each, itself included."""
        return along_paths(values, self.parent, self.levels, combine)

    @functools.cached_property
    def turns(self) -> Int[np.ndarray, "N P"]:
        """How many actions each agent has taken before each history."""
        return self.along_paths(acted(self.parent, self.player, self.num_agents).astype(np.int32))

    @functools.cached_property
    def _after_decision(self) -> Int[np.ndarray, "N P"]:
        """The history right after each agent's last decision before each history; -1 if it has made none."""
        moved = acted(self.parent, self.player, self.num_agents)
        rows = np.arange(self.num_histories, dtype=np.int32)[:, None]
        return self.along_paths(np.where(moved, rows, np.int32(-1)), np.maximum)  # later ones stand below

    @functools.cached_property
    def previous_decision(self) -> Int[np.ndarray, "N P"]:
        """Each agent's last decision strictly above each history; -1 where it has made none."""
        after = self._after_decision
        return np.where(after >= 0, self.parent[after], np.int32(-1))

    @functools.cached_property
    def previous_action(self) -> Int[np.ndarray, "N P"]:
        """The action that each agent took at its `previous_decision`; -1 where it has made none."""
        after = self._after_decision
        return np.where(after >= 0, self.incoming_action[after], np.int32(-1))

    @functools.cached_property
    def chance_reach(self) -> Float[np.ndarray, "N"]:
        """The probability of all chance outcomes on the way to each history."""
        return self.along_paths(self.chance, np.multiply)

    @functools.cached_property
    def final_returns(self) -> Float[np.ndarray, "Z P"]:
        """What every agent gets by the end, for each terminal history."""
        return self.along_paths(self.rewards)[self.player == TERMINAL]

    @functools.cached_property
    def best_return_to_go(self) -> Float[np.ndarray, "N P"]:
        """The largest return that can still follow each history, agent by agent.

        Where rewards come at terminal histories alone it is the game's largest return everywhere.
        """
        terminal = self.player == TERMINAL
        bounds = np.zeros((self.num_histories, self.num_agents))
        if not np.any(self.rewards[~terminal]):
            bounds[~terminal] = self.rewards[terminal].max(axis=0)
            return bounds
        for depth in range(len(self.levels) - 3, -1, -1):
            start, stop, end = self.levels[depth : depth + 3]
            inner = start + np.flatnonzero(~terminal[start:stop])
            through = self.rewards[stop:end] + bounds[stop:end]
            offsets = self.first_child[inner] - stop
            bounds[inner] = np.maximum.reduceat(through, offsets, axis=0)
        return bounds

    @functools.cached_property
    def shifted_rewards(self) -> Float[np.ndarray, "N P"]:
        """Rewards shifted to be never positive, without changing any decision.

        Each is r + best(h') − best(h), with the best return-to-go of both ends. Along every trajectory
        the sum is the return less its largest possible value: a constant, so advantages are unchanged.
        For terminal rewards it is the utility less its maximum.
        """
        best = self.best_return_to_go
        shifted = self.rewards + best
        shifted[1:] -= best[self.parent[1:]]
        shifted[0] = 0.0
        return np.minimum(shifted, 0.0)  # rounding

    @functools.cached_property
    def shifted_returns(self) -> Float[np.ndarray, "N P"]:
        """The sum of shifted rewards up to each history."""
        return self.along_paths(self.shifted_rewards)

    @functools.cached_property
    def return_bound(self) -> float:
        """The width of the returns: shifted to be never positive, none is below minus this."""
        return float(-self.shifted_returns.min())

    @functools.cached_property
    def return_shift(self) -> Float[np.ndarray, "P"]:
        """What must be added to a shifted return to get the game's own."""
        return self.best_return_to_go[0] + self.rewards[0]


def acted(
    parent: Int[np.ndarray, "N"], player: Int[np.ndarray, "N"], num_agents: int
) -> Bool[np.ndarray, "N P"]:
    """Whether it was each agent's action that led to each history."""
    return (player[parent][:, None] == np.arange(num_agents)) & (parent >= 0)[:, None]


def along_paths(
    values: np.ndarray, parent: Int[np.ndarray, "N"], levels: Sequence[int], combine: np.ufunc = np.add
) -> np.ndarray:
    """`values` [N, ...] combined over all histories on the way to each, itself included."""
    found = values.copy()
    for start, stop in itertools.pairwise(levels[1:]):
        found[start:stop] = combine(found[parent[start:stop]], found[start:stop])
    return found


def at_turn(values: np.ndarray, player: Int[np.ndarray, "N"]) -> np.ndarray:
    """Of `values` [N, P], those of the agent that acts at each history; agent 0's where none acts."""
    return np.take_along_axis(values, np.maximum(player, 0)[:, None], axis=1)[:, 0]


def alias_table(
    probabilities: Float[np.ndarray, "k"],
) -> tuple[Float[np.ndarray, "k"], Int[np.ndarray, "k"]]:
    """Walker's alias method: one uniform number and two look-ups draw from any distribution.

    A column is drawn uniformly; it is kept with the probability `threshold`, and else is its `alias`. All
    thresholds are 1 where the distribution is uniform.
    """
    count = len(probabilities)
    threshold, alias = np.ones(count), np.arange(count)
    scaled = probabilities * count
    if np.allclose(scaled, 1.0, rtol=0, atol=1e-12):
        return threshold, alias
    small = [i for i in range(count) if scaled[i] < 1]
    large = [i for i in range(count) if scaled[i] >= 1]
    while small and large:
        little, much = small.pop(), large[-1]
        threshold[little], alias[little] = scaled[little], much
        scaled[much] -= 1 - scaled[little]
        if scaled[much] < 1:
            small.append(large.pop())
    return threshold, alias


class Node(NamedTuple):
    """A history as `grow` is told of it."""

    player: int
    """The agent that acts, CHANCE or TERMINAL."""
    rewards: Sequence[float] | np.ndarray
    """On arrival here."""
    information_state: Hashable = None
    actions: Sequence[int] = ()
    """Legal actions of the agent, or chance outcomes, in ascending order."""
    probabilities: Sequence[float] = ()
    """Of the chance outcomes."""


@dataclasses.dataclass
class Rows:
    """Histories in the order of a walk, depth first and children in order: one entry a history."""

    parent: list[int] = dataclasses.field(default_factory=list)
    """-1 for the root, which comes first."""
    depth: list[int] = dataclasses.field(default_factory=list)
    action: list[int] = dataclasses.field(default_factory=list)
    chance: list[float] = dataclasses.field(default_factory=list)
    player: list[int] = dataclasses.field(default_factory=list)
    state: list[int] = dataclasses.field(default_factory=list)
    """The information state's number in the order of first visit; -1 where no agent acts."""
    rewarded: list[int] = dataclasses.field(default_factory=list)
    """The histories with a reward, and in `rewards`, one after the other, what every agent gets there."""
    rewards: list[float] = dataclasses.field(default_factory=list)
    states: dict[tuple[int, Hashable], int] = dataclasses.field(default_factory=dict)
    """(agent, information state) -> its number."""
    actions: list[Sequence[int]] = dataclasses.field(default_factory=list)
    """The legal actions of each information state."""

    def check_actions(self, identity: tuple[int, Hashable], number: int, actions: Sequence[int]) -> None:
        """Raises if a history has other legal actions than the first one of its information state."""
        if tuple(self.actions[number]) != tuple(actions):
            raise ValueError(
                f"information state {identity[1]!r} of agent {identity[0]} has legal actions "
                f"{tuple(self.actions[number])} at one history and {tuple(actions)} at another; an agent "
                "could not tell which."
            )


def grow(
    root: Any,
    describe: Callable[[Any], Node],
    child: Callable[[Any, int], Any],
    *,
    num_agents: int,
    num_actions: int,
    name: str = "process",
) -> Tree:
    """The tree of a small process that is described node by node, in Python.

    `describe(node)` tells what a node is, `child(node, action)` leads on. A compiled OpenSpiel game
    comes from `openspiel.compile_game`, which does the same faster.
    """
    rows = Rows()
    stack = [(root, -1, -1, 1.0, 0)]
    while stack:
        node, parent, action, chance, depth = stack.pop()
        told, row, state = describe(node), len(rows.parent), -1
        _check(told, num_agents, num_actions)
        if told.player >= 0:
            identity = (told.player, told.information_state)
            state = rows.states.setdefault(identity, len(rows.states))
            if state == len(rows.actions):
                rows.actions.append(tuple(told.actions))
            rows.check_actions(identity, state, told.actions)
        if any(told.rewards):
            rows.rewarded.append(row)
            rows.rewards.extend(told.rewards)
        rows.parent.append(parent)
        rows.depth.append(depth)
        rows.action.append(action)
        rows.chance.append(chance)
        rows.player.append(told.player)
        rows.state.append(state)
        by_chance = told.player == CHANCE
        probabilities = told.probabilities if by_chance else [1.0] * len(told.actions)
        outcomes = list(zip(told.actions, probabilities, strict=True))
        for act, probability in reversed(outcomes):
            stack.append((child(node, act), row, act, probability, depth + 1))
    return lay_out(rows, num_agents=num_agents, num_actions=num_actions, name=name)


def _check(node: Node, num_agents: int, num_actions: int) -> None:
    """Raises unless `node` is a history that a tree can hold."""
    if not (node.player in (CHANCE, TERMINAL) or 0 <= node.player < num_agents):
        raise ValueError(
            f"a history's player must be CHANCE, TERMINAL or one of 0 to {num_agents - 1}, "
            f"but is {node.player}."
        )
    checks.shape("a history's rewards", node.rewards, (num_agents,))
    actions = list(node.actions)
    if node.player == TERMINAL:
        if actions:
            raise ValueError(f"a terminal history has no actions, but this one has {actions}.")
        return
    if not actions or any(one >= other for one, other in itertools.pairwise(actions)):
        raise ValueError(f"a history needs actions in ascending order, but has {actions}.")
    if node.player == CHANCE:
        checks.shape("probabilities of chance", node.probabilities, (len(actions),))
        checks.distribution("probabilities of chance", node.probabilities)
    else:
        checks.index("an action", actions, num_actions)


def lay_out(
    rows: Rows,
    *,
    num_agents: int,
    num_actions: int,
    name: str,
    features: Float[np.ndarray, "S D"] | None = None,
) -> Tree:
    """The tree of `rows`; `features` are in the order of first visit, by default one-hot.

    Information states are put in the order of agents, of own turns within an agent, and of first visit
    within a turn: so a sweep over an agent's turns finds each of them in one piece.
    """
    count, num_states = len(rows.parent), len(rows.states)
    depth = np.array(rows.depth, np.int32)
    # Sorting a depth-first walk by depth, stably, brings the children of a history side by side, in the
    # order of their parents.
    walked = np.argsort(depth, kind="stable").astype(np.int32)
    place = np.empty(count, np.int32)
    place[walked] = np.arange(count, dtype=np.int32)
    levels = (0, *np.cumsum(np.bincount(depth)).tolist())
    parent = place[np.array(rows.parent, np.int32)[walked]]
    parent[0] = -1
    player = np.array(rows.player, np.int8)[walked]
    num_children = np.bincount(parent[1:], minlength=count).astype(np.int32)
    first_child = np.where(num_children > 0, 1 + np.cumsum(num_children) - num_children, 0)
    rewards = np.zeros((count, num_agents))
    if rows.rewarded:
        rewards[place[rows.rewarded]] = np.array(rows.rewards, np.float64).reshape(-1, num_agents)
    visited = np.array(rows.state, np.int32)[walked]
    owners = np.array([agent for agent, _ in rows.states], np.int32)
    turns = np.zeros(num_states, np.int32)
    decisions = visited >= 0
    taken = along_paths(acted(parent, player, num_agents).astype(np.int32), parent, levels)
    turns[visited[decisions]] = at_turn(taken, player)[decisions]
    order = np.lexsort((turns, owners))
    number = np.full(num_states + 1, -1, np.int32)  # the last entry is that of -1, no state
    number[order] = np.arange(num_states, dtype=np.int32)
    legal = np.zeros((num_states, num_actions), bool)
    sizes = [len(actions) for actions in rows.actions]
    columns = np.fromiter(itertools.chain.from_iterable(rows.actions), np.int32, sum(sizes))
    legal[np.repeat(number[:-1], sizes), columns] = True
    names = [str(identity) for _, identity in rows.states]
    if features is None:
        features = np.eye(max(num_states, 1), dtype=np.float32)[:num_states]
    else:
        features = features[order]
    return Tree(
        num_agents=num_agents,
        num_actions=num_actions,
        levels=levels,
        parent=parent,
        first_child=first_child.astype(np.int32),
        num_children=num_children,
        incoming_action=np.array(rows.action, np.int32)[walked],
        player=player,
        chance=np.array(rows.chance, np.float64)[walked],
        rewards=rewards,
        information_state=number[visited],
        state_player=owners[order],
        legal=legal,
        features=features,
        information_state_strings=tuple(names[i] for i in order),
        name=name,
    )
