"""Exact quantities at states that a policy does not reach, and of policies in single precision."""

import numpy as np
from pohp_neurd.games import matrix_game

from pohp_neurd import exact
from pohp_neurd.finite import tree, tree_builder

CHANCES = (0.9, 0.1)


def unequal_odds():
    """Chance draws with unequal odds what the agent never sees; it stops, or goes on to a last choice."""

    def describe(path):
        if len(path) == 0:
            return tree_builder.Node(tree.CHANCE, [0.0], None, range(2), CHANCES)
        if len(path) == 1:
            return tree_builder.Node(0, [0.0], "stop or go on", range(2))
        if path[1] == 1 and len(path) == 2:
            return tree_builder.Node(0, [0.0], "last choice", range(2))
        return tree_builder.Node(tree.TERMINAL, [-float(path[0] != path[-1])])

    return tree_builder.grow(
        (), describe, lambda path, action: (*path, action), num_agents=1, num_actions=2, name="unequal odds"
    )


def test_beliefs_at_a_state_that_is_never_reached_are_those_of_an_agent_that_tries():
    game = unequal_odds()
    row = game.information_state_strings.index("last choice")
    policy = np.array([[1.0, 0.0], [1.0, 0.0]])
    policy[row] = (0.5, 0.5)
    found = exact.quantities(game, policy)
    assert found.realization[row] == 0
    np.testing.assert_allclose(found.belief[game.information_state == row], CHANCES, atol=1e-12)
    np.testing.assert_allclose(found.action_value[row], [-CHANCES[1], -CHANCES[0]], atol=1e-12)


def test_rows_in_single_precision_are_made_to_sum_to_one():
    """As float32 rounds them, these rows sum to 1 + 3e-6: a NashConv of 100 would be off by 6e-4."""
    game = matrix_game.zero_sum(100 * matrix_game.ROCK_PAPER_SCISSORS)
    single = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], np.float32) * np.float32(1 + 3e-6)
    double = single.astype(np.float64)
    double /= double.sum(axis=1, keepdims=True)
    for one, other in ((single, double), (np.stack([single] * 2), np.stack([double] * 2))):
        np.testing.assert_allclose(exact.nash_conv(game, one), exact.nash_conv(game, other), rtol=1e-12)
