"""Laying out a Tree: histories come level by level, and leave as arrays.

The room between a description of a process, node by node, and `tree`.
"""

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from pohp_neurd import tree


class Node(NamedTuple):
    """A history as `grow` is told of it."""

    player: int
    """The agent that acts, tree.CHANCE or tree.TERMINAL."""
    rewards: Sequence[float]
    """On arrival here."""
    information_state: Hashable = None
    actions: Sequence[int] = ()
    """Legal actions of the agent, or chance outcomes, in ascending order."""
    probabilities: Sequence[float] = ()
    """Of the chance outcomes."""


@dataclasses.dataclass
class Rows:
    """Histories in the order of their depth, and within it of their parents: one entry a history."""

    levels: list[int] = dataclasses.field(default_factory=lambda: [0])
    """Where each depth begins; closed by the number of histories."""
    parent: list[int] = dataclasses.field(default_factory=list)
    action: list[int] = dataclasses.field(default_factory=list)
    chance: list[float] = dataclasses.field(default_factory=list)
    player: list[int] = dataclasses.field(default_factory=list)
    state: list[int] = dataclasses.field(default_factory=list)
    """The information state's number in the order of first visit; -1 where no agent acts."""
    rewarded: list[int] = dataclasses.field(default_factory=list)
    """The histories with a reward, and in `rewards` what every agent gets there."""
    rewards: list[Sequence[float]] = dataclasses.field(default_factory=list)
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
    level = [(root, -1, -1, 1.0)]
    while level:
        following = []
        for node, parent, action, chance in level:
            told, row, state = describe(node), len(rows.parent), -1
            if told.player >= 0:
                identity = (told.player, told.information_state)
                state = rows.states.setdefault(identity, len(rows.states))
                if state == len(rows.actions):
                    rows.actions.append(tuple(told.actions))
                rows.check_actions(identity, state, told.actions)
            if any(told.rewards):
                rows.rewarded.append(row)
                rows.rewards.append(told.rewards)
            rows.parent.append(parent)
            rows.action.append(action)
            rows.chance.append(chance)
            rows.player.append(told.player)
            rows.state.append(state)
            probabilities = told.probabilities or [1.0] * len(told.actions)
            for act, probability in zip(told.actions, probabilities, strict=True):
                following.append((child(node, act), row, act, probability))
        rows.levels.append(len(rows.parent))
        level = following
    return lay_out(rows, num_agents=num_agents, num_actions=num_actions, name=name)


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
    parent, player = np.array(rows.parent, np.int32), np.array(rows.player, np.int8)
    num_children = np.bincount(parent[1:], minlength=count).astype(np.int32)
    # Children come level by level in the order of their parents, so they lie side by side.
    first_child = np.where(num_children > 0, 1 + np.cumsum(num_children) - num_children, 0)
    rewards = np.zeros((count, num_agents))
    if rows.rewarded:
        rewards[rows.rewarded] = np.array(rows.rewards, np.float64)
    state = np.array(rows.state, np.int32)
    owners = np.array([agent for agent, _ in rows.states], np.int32)
    turns = tree.own_turns(parent, player, rows.levels, num_agents)
    decisions = np.flatnonzero(state >= 0)
    _, first_visit = np.unique(state[decisions], return_index=True)
    order = np.lexsort((turns[decisions[first_visit]], owners))
    place = np.full(num_states + 1, -1, np.int32)
    place[order] = np.arange(num_states, dtype=np.int32)
    legal = np.zeros((num_states, num_actions), bool)
    sizes = [len(actions) for actions in rows.actions]
    columns = np.concatenate(
        [np.asarray(actions, np.int64) for actions in rows.actions] or [np.zeros(0, int)]
    )
    legal[np.repeat(place[:-1], sizes), columns] = True
    names = [str(identity) for _, identity in rows.states]
    if features is None:
        features = np.eye(max(num_states, 1), dtype=np.float32)[:num_states]
    else:
        features = features[order]
    return tree.Tree(
        num_agents=num_agents,
        num_actions=num_actions,
        levels=tuple(rows.levels),
        parent=parent,
        first_child=first_child.astype(np.int32),
        num_children=num_children,
        incoming_action=np.array(rows.action, np.int32),
        player=player,
        chance=np.array(rows.chance, np.float64),
        rewards=rewards,
        information_state=place[state],
        state_player=owners[order],
        legal=legal,
        features=features,
        information_state_strings=tuple(names[i] for i in order),
        name=name,
    )
