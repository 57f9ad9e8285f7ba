"""One-shot worlds as trees: matrix games, where each agent acts once without seeing the others; a bandit."""

from collections.abc import Sequence

import numpy as np

from pohp_neurd import checks
from pohp_neurd.finite import tree, tree_builder

ROCK_PAPER_SCISSORS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], np.float64)

BIASED_ROCK_PAPER_SCISSORS = np.array([[0, -1, 2], [1, 0, -1], [-2, 1, 0]], np.float64)
"""Rock beats scissors for 2; the equilibrium is rock 1/4, paper 1/2, scissors 1/4."""


def biased_rock_paper_scissors(bias: float, winner: int = 0) -> np.ndarray:
    """The row agent's payoffs in rock-paper-scissors where the win of action `winner` counts `bias` times.

    >>> bool(np.all(biased_rock_paper_scissors(2.0, winner=0) == BIASED_ROCK_PAPER_SCISSORS))
    True
    """
    checks.positive("bias", bias)
    checks.index("winner", winner, 3)
    payoffs = ROCK_PAPER_SCISSORS.copy()
    loser = (winner - 1) % 3
    payoffs[winner, loser], payoffs[loser, winner] = bias, -bias
    return payoffs


def rock_paper_scissors_equilibrium(payoffs: np.ndarray) -> np.ndarray:
    """The one equilibrium of a rock-paper-scissors whose wins have any worth; both agents play it.

    Every action is played in proportion to what the win between the two others is worth: only then is every
    action worth 0 against it.

    >>> rock_paper_scissors_equilibrium(BIASED_ROCK_PAPER_SCISSORS).tolist()
    [0.25, 0.5, 0.25]
    """
    wins = np.array([payoffs[2, 1], payoffs[0, 2], payoffs[1, 0]])
    if not (np.all(wins > 0) and np.array_equal(payoffs, -payoffs.T)):
        raise ValueError("payoffs must be antisymmetric, and paper, scissors and rock must win their pairs.")
    return wins / wins.sum()


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
