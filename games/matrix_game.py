"""One-shot worlds as trees: matrix games, where each agent acts once without seeing the others; a bandit."""

from collections.abc import Sequence

import numpy as np

from pohp_neurd import tree, tree_builder

ROCK_PAPER_SCISSORS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], np.float64)

BIASED_ROCK_PAPER_SCISSORS = np.array([[0, -1, 2], [1, 0, -1], [-2, 1, 0]], np.float64)
"""Rock beats scissors for 2; the equilibrium is rock 1/4, paper 1/2, scissors 1/4."""


def zero_sum(payoffs: np.ndarray, name: str = "matrix game") -> tree.Tree:
    """The tree of a two-agent zero-sum game; `payoffs` are the row agent's."""
    payoffs = np.asarray(payoffs, np.float64)
    return matrix_game([payoffs, -payoffs], name)


def matrix_game(payoffs: Sequence[np.ndarray], name: str = "matrix game") -> tree.Tree:
    """The tree of a one-shot game: `payoffs[p][a0, a1, …]` is what agent p gets."""
    table = np.stack([np.asarray(payoff, np.float64) for payoff in payoffs], axis=-1)
    num_agents = table.shape[-1]
    if table.ndim != num_agents + 1:
        raise ValueError(
            f"{num_agents} agents need payoff arrays of {num_agents} axes, but these have {table.ndim - 1}."
        )

    def describe(joint: tuple[int, ...]) -> tree_builder.Node:
        if len(joint) == num_agents:
            return tree_builder.Node(tree.TERMINAL, table[joint])
        actions = range(table.shape[len(joint)])
        zeros = np.zeros(num_agents)
        return tree_builder.Node(len(joint), zeros, f"agent {len(joint)}", actions)

    return tree_builder.grow(
        (),
        describe,
        lambda joint, action: (*joint, action),
        num_agents=num_agents,
        num_actions=max(table.shape[:-1]),
        name=name,
    )


def bandit(miss_probabilities: Sequence[float]) -> tree.Tree:
    """A bandit as a one-step POHP: pull an arm, then the daimon decides whether it costs 1."""
    chances = tuple(float(p) for p in miss_probabilities)
    if not all(0 <= p <= 1 for p in chances):
        raise ValueError(f"miss probabilities must lie in [0, 1], but are {chances}.")

    def describe(path: tuple[int, ...]) -> tree_builder.Node:
        if len(path) == 0:
            return tree_builder.Node(0, [0.0], "arms", range(len(chances)))
        if len(path) == 1:
            miss = chances[path[0]]
            return tree_builder.Node(tree.CHANCE, [0.0], None, (0, 1), (1 - miss, miss))
        return tree_builder.Node(tree.TERMINAL, [-float(path[1])])

    return tree_builder.grow(
        (),
        describe,
        lambda path, action: (*path, action),
        num_agents=1,
        num_actions=len(chances),
        name="bandit",
    )
