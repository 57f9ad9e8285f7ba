"""Laying out a Tree: histories come level by level, and leave as arrays.

The room between a description of a process, node by node, and `tree`.
"""

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
    builder = Builder(num_agents, num_actions)
    level = [(root, -1, -1, 1.0)]
    while level:
        following = []
        for node, parent, action, chance in level:
            told = describe(node)
            row = builder.add(parent, action, chance, told)
            probabilities = told.probabilities or [1.0] * len(told.actions)
            for act, probability in zip(told.actions, probabilities, strict=True):
                following.append((child(node, act), row, act, probability))
        builder.end_level()
        level = following
    return builder.finish(name=name)


class Builder:
    """Collects histories level by level and lays them out as a Tree."""

    def __init__(self, num_agents: int, num_actions: int) -> None:
        self.num_agents, self.num_actions = num_agents, num_actions
        self.levels = [0]
        self.parent: list[int] = []
        self.action: list[int] = []
        self.chance: list[float] = []
        self.player: list[int] = []
        self.rewards: dict[int, Sequence[float]] = {}
        self.state_of_row: list[int] = []
        self.states: dict[tuple[int, Hashable], int] = {}
        self.state_actions: list[Sequence[int]] = []

    def add(self, parent: int, action: int, chance: float, node: Node) -> int:
        """The row of a new history. All of a level's histories come in the order of their parents."""
        row = len(self.parent)
        self.parent.append(parent)
        self.action.append(action)
        self.chance.append(chance)
        self.player.append(node.player)
        if any(node.rewards):
            self.rewards[row] = node.rewards
        state = -1
        if node.player >= 0:
            identity = (node.player, node.information_state)
            state = self.states.setdefault(identity, len(self.states))
            if state == len(self.state_actions):
                self.state_actions.append(tuple(node.actions))
            elif self.state_actions[state] != tuple(node.actions):
                raise ValueError(
                    f"information state {node.information_state!r} of agent {node.player} has legal "
                    f"actions {self.state_actions[state]} at one history and {tuple(node.actions)} at "
                    "another; an agent could not tell which."
                )
        self.state_of_row.append(state)
        return row

    def end_level(self) -> None:
        """All histories of one more step from the root have been added."""
        self.levels.append(len(self.parent))

    def finish(self, *, name: str, features: Float[np.ndarray, "S D"] | None = None) -> tree.Tree:
        """The tree; `features` are rows in the order in which information states were first added."""
        count, num_states = len(self.parent), len(self.states)
        parent = np.array(self.parent, np.int32)
        num_children = np.bincount(parent[1:], minlength=count).astype(np.int32)
        # Children come level by level in the order of their parents, so they lie side by side.
        first_child = np.where(num_children > 0, 1 + np.cumsum(num_children) - num_children, 0)
        rewards = np.zeros((count, self.num_agents))
        if self.rewards:
            rewards[list(self.rewards)] = np.array(list(self.rewards.values()), np.float64)
        # Agent by agent, and within an agent in the order of first visit.
        owners = np.array([player for player, _ in self.states], np.int32)
        order = np.argsort(owners, kind="stable")
        place = np.empty(num_states + 1, np.int32)
        place[order] = np.arange(num_states, dtype=np.int32)
        place[-1] = -1
        legal = np.zeros((num_states, self.num_actions), bool)
        for state, actions in enumerate(self.state_actions):
            legal[place[state], list(actions)] = True
        names = [str(identity) for _, identity in self.states]
        if features is None:
            features = np.eye(max(num_states, 1), dtype=np.float32)[:num_states]
        else:
            features = features[order]
        return tree.Tree(
            num_agents=self.num_agents,
            num_actions=self.num_actions,
            levels=tuple(self.levels),
            parent=parent,
            first_child=first_child.astype(np.int32),
            num_children=num_children,
            incoming_action=np.array(self.action, np.int32),
            player=np.array(self.player, np.int8),
            chance=np.array(self.chance, np.float64),
            rewards=rewards,
            information_state=place[np.array(self.state_of_row, np.int32)],
            state_player=owners[order],
            legal=legal,
            features=features,
            information_state_strings=tuple(names[i] for i in order),
            name=name,
        )
