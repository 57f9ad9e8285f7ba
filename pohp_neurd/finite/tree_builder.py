"""Laying out a Tree: histories come in the order of a walk, and leave as arrays.

The room between a description of a process, node by node, and `tree`.
"""

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
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
class Level:
    """Histories of one depth, in the order of a walk."""

    kinds: list[int] = dataclasses.field(default_factory=list)
    """What each is: the number of its information state, tree.CHANCE or tree.TERMINAL."""
    outcomes: list[tuple[int, float]] = dataclasses.field(default_factory=list)
    """Those of all chance events, one event after the other, with their probabilities."""
    num_outcomes: list[int] = dataclasses.field(default_factory=list)
    """Of each chance event."""
    rewards: list[float] = dataclasses.field(default_factory=list)
    """What every agent gets at one rewarded history after the other."""


@dataclasses.dataclass
class Rows:
    """All histories of a walk, depth first and children in order: from that, all parents can be told."""

    rewarded_anywhere: bool
    """Whether there is a reward, if only of 0, at every history, and not at the terminal ones alone."""
    levels: list[Level] = dataclasses.field(default_factory=lambda: [Level()])
    states: dict[tuple[int, Hashable], int] = dataclasses.field(default_factory=dict)
    """(agent, information state) -> its number, in the order of first visit."""
    actions: list[Sequence[int]] = dataclasses.field(default_factory=list)
    """The legal actions of each information state."""

    def level(self, depth: int) -> Level:
        """The histories of a depth, which may be the first."""
        if depth == len(self.levels):
            self.levels.append(Level())
        return self.levels[depth]

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
    rows = Rows(rewarded_anywhere=True)
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        told = describe(node)
        _check(told, num_agents, num_actions)
        level, kind = rows.level(depth), told.player
        if told.player >= 0:
            identity = (told.player, told.information_state)
            kind = rows.states.setdefault(identity, len(rows.states))
            if kind == len(rows.actions):
                rows.actions.append(tuple(told.actions))
            rows.check_actions(identity, kind, told.actions)
        elif kind == tree.CHANCE:
            level.outcomes.extend(zip(told.actions, told.probabilities, strict=True))
            level.num_outcomes.append(len(told.actions))
        level.kinds.append(kind)
        level.rewards.extend(told.rewards)
        stack.extend((child(node, action), depth + 1) for action in reversed(told.actions))
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
    num_states = len(rows.states)
    kind = _joined([level.kinds for level in rows.levels], np.int32)
    count = len(kind)
    levels = (0, *itertools.accumulate(len(level.kinds) for level in rows.levels))
    owners = np.array([agent for agent, _ in rows.states], np.int32)
    decisions, chances = kind >= 0, kind == tree.CHANCE
    player = kind.astype(np.int8)
    player[decisions] = owners[kind[decisions]]
    # What leads on from each history: a stretch of the actions of all information states, then of the
    # outcomes of all chance events. A depth-first walk meets children in the order of their parents.
    sizes = _joined([list(map(len, rows.actions))], np.int32)
    columns = _joined(rows.actions, np.int32)
    num_outcomes = _joined([level.num_outcomes for level in rows.levels], np.int32)
    outcomes = np.array([pair for level in rows.levels for pair in level.outcomes], np.float64).reshape(-1, 2)
    num_children, first_way = np.zeros((2, count), np.int32)
    num_children[decisions], num_children[chances] = sizes[kind[decisions]], num_outcomes
    first_way[decisions] = (np.cumsum(sizes) - sizes)[kind[decisions]]
    first_way[chances] = len(columns) + np.cumsum(num_outcomes) - num_outcomes
    first_child = np.where(num_children > 0, 1 + np.cumsum(num_children) - num_children, 0)
    parent, way = np.full((2, count), -1, np.int32)
    parent[1:] = np.repeat(np.arange(count, dtype=np.int32), num_children)
    way[1:] = np.arange(1, count) + (first_way - first_child)[parent[1:]]
    incoming_action = np.concatenate([columns, outcomes[:, 0].astype(np.int32)])[way]
    chance = np.concatenate([np.ones(len(columns)), outcomes[:, 1]])[way]
    incoming_action[0], chance[0] = -1, 1.0
    rewards = np.zeros((count, num_agents))
    rewarded = slice(None) if rows.rewarded_anywhere else player == tree.TERMINAL
    rewards[rewarded] = _joined([level.rewards for level in rows.levels], np.float64).reshape(-1, num_agents)
    turns = np.zeros(num_states, np.int32)
    taken = tree.along_paths(tree.acted(parent, player, num_agents).astype(np.int32), parent, levels)
    turns[kind[decisions]] = tree.at_turn(taken, player)[decisions]
    order = np.lexsort((turns, owners))
    number = np.full(num_states + 2, -1, np.int32)  # the last two entries are those of CHANCE and TERMINAL
    number[order] = np.arange(num_states, dtype=np.int32)
    legal = np.zeros((num_states, num_actions), bool)
    legal[np.repeat(number[:-2], sizes), columns] = True
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
        incoming_action=incoming_action,
        player=player,
        chance=chance,
        rewards=rewards,
        information_state=number[kind],
        state_player=owners[order],
        legal=legal,
        features=features,
        information_state_strings=tuple(names[i] for i in order),
        name=name,
    )


def _joined(lists: Iterable[Sequence[Any]], dtype: Any) -> np.ndarray:
    return np.fromiter(itertools.chain.from_iterable(lists), dtype)
