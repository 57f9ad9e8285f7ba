"""Best responses over all that an agent has done, where its information states do not tell it."""

import numpy as np

from pohp_neurd import exact
from pohp_neurd.finite import tree, tree_builder

WORTH = np.array([[-1.0, -2.0], [-4.0, -3.0]])
"""Of the first action and the second."""


def forgets_its_own_action():
    """Two actions in a row; at the second the information state is the same, whatever the first was."""

    def describe(path):
        if len(path) < 2:
            return tree_builder.Node(0, [0.0], ("first", "second")[len(path)], range(2))
        return tree_builder.Node(tree.TERMINAL, [WORTH[path]])

    return tree_builder.grow(
        (), describe, lambda path, action: (*path, action), num_agents=1, num_actions=2, name="forgetful"
    )


def test_a_best_response_remembers_its_own_action():
    game = forgets_its_own_action()
    assert game.num_information_states == 2
    policy = np.array([[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_allclose(exact.best_response_values(game, policy), [WORTH.max()], atol=1e-12)
    expected = policy[0] @ WORTH @ policy[1]
    np.testing.assert_allclose(exact.expected_returns(game, policy), [expected], atol=1e-12)
