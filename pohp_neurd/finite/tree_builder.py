"""Laying out a Tree: histories come level by level, and leave as arrays.

The room between a description of a process, node by node, and `tree`.
"""

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from pohp_neurd import checks
from pohp_neurd.finite import tree


class Node(NamedTuple):
    """A history as `grow` is told of it."""

    player: int
    """The agent that acts, tree.CHANCE or tree.TERMINAL."""
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
) -> tree.Tree:
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
        by_chance = told.player == tree.CHANCE
        probabilities = told.probabilities if by_chance else [1.0] * len(told.actions)
        outcomes = list(zip(told.actions, probabilities, strict=True))
        for act, probability in reversed(outcomes):
            stack.append((child(node, act), row, act, probability, depth + 1))
    return lay_out(rows, num_agents=num_agents, num_actions=num_actions, name=name)


def _check(node: Node, num_agents: int, num_actions: int) -> None:
    """Raises unless `node` is a history that a tree can hold."""
    if not (node.player in (tree.CHANCE, tree.TERMINAL) or 0 <= node.player < num_agents):
        raise ValueError(
            f"a history's player must be CHANCE, TERMINAL or one of 0 to {num_agents - 1}, "
            f"but is {node.player}."
        )
    checks.shape("a history's rewards", node.rewards, (num_agents,))
    actions = list(node.actions)
    if node.player == tree.TERMINAL:
        if actions:
            raise ValueError(f"a terminal history has no actions, but this one has {actions}.")
        return
    if not actions or any(one >= other for one, other in itertools.pairwise(actions)):
        raise ValueError(f"a history needs actions in ascending order, but has {actions}.")
    if node.player == tree.CHANCE:
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
) -> tree.Tree:
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
    taken = tree.along_paths(tree.acted(parent, player, num_agents).astype(np.int32), parent, levels)
    turns[visited[decisions]] = tree.at_turn(taken, player)[decisions]
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
    return tree.Tree(
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
