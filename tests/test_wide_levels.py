"""Exact evaluation where the states of one level have many different numbers of legal actions."""

import jax
import jax.numpy as jnp
import numpy as np

from pohp_neurd import exact
from pohp_neurd.finite import evaluation, tree, tree_builder

WORTH = [-1.0 - np.random.default_rng(width).random(width) for width in range(1, 8)]
"""What each action of each of seven states is worth: never above −1."""


def seven_widths():
    """Chance picks a state with one to seven legal actions, and the agent acts there.

    More than three widths share rectangles, in which some places are no actions.
    """

    def describe(path):
        if len(path) == 0:
            return tree_builder.Node(tree.CHANCE, [0.0], None, range(7), (1 / 7,) * 7)
        if len(path) == 1:
            return tree_builder.Node(0, [0.0], f"width {path[0] + 1}", range(path[0] + 1))
        return tree_builder.Node(tree.TERMINAL, [WORTH[path[0]][path[1]]])

    return tree_builder.grow(
        (), describe, lambda path, action: (*path, action), num_agents=1, num_actions=7, name="seven widths"
    )


def test_places_that_are_no_actions_are_worth_nothing_to_anybody():
    game = seven_widths()
    uniform = exact.uniform(game)
    best = np.mean([worth.max() for worth in WORTH])
    mean = np.mean([worth.mean() for worth in WORTH])
    np.testing.assert_allclose(exact.best_response_values(game, uniform), [best], atol=1e-12)
    np.testing.assert_allclose(exact.expected_returns(game, uniform), [mean], atol=1e-12)
    response = exact.best_response(game, uniform, 0)
    np.testing.assert_allclose(response.value, best, atol=1e-12)
    np.testing.assert_allclose(exact.expected_returns(game, response.policy), [best], atol=1e-12)


def test_counterfactual_values_of_such_states():
    game = seven_widths()
    form = exact.sequence_form_of(game)
    with jax.enable_x64(True):
        acting = evaluation.profile(form, evaluation.slots(form, jnp.asarray(exact.uniform(game))))
        found = np.asarray(evaluation.counterfactual_table(form, acting))
    for name, row in zip(game.information_state_strings, found, strict=True):
        worth = WORTH[int(name.split()[-1]) - 1]
        np.testing.assert_allclose(row, np.pad(worth, (0, 7 - len(worth))) / 7, atol=1e-12)
