"""What a tree is grown from: descriptions that do not fit get one sentence."""

import pytest

from pohp_neurd.finite import tree, tree_builder


def grow(**nodes):
    """A tree of a root and what follows each of its actions."""

    def describe(path):
        return nodes["root"] if not path else nodes.get("leaf", tree_builder.Node(tree.TERMINAL, [0.0]))

    return tree_builder.grow((), describe, lambda p, a: (*p, a), num_agents=1, num_actions=2)


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        (
            {"root": tree_builder.Node(tree.CHANCE, [0.0], None, (0, 1), (0.5, 0.6))},
            "probabilities of chance must sum to 1, but sums to 1.1.",
        ),
        (
            {"root": tree_builder.Node(tree.CHANCE, [0.0], None, (0, 1))},
            "probabilities of chance must have the shape (2), but has (0,).",
        ),
        (
            {"root": tree_builder.Node(0, [0.0], "s", (1, 0))},
            "a history needs actions in ascending order, but has [1, 0].",
        ),
        (
            {"root": tree_builder.Node(0, [0.0], "s")},
            "a history needs actions in ascending order, but has [].",
        ),
        (
            {"root": tree_builder.Node(0, [0.0], "s", (0, 2))},
            "an action must be one of 0 to 1, but is [0 2].",
        ),
        (
            {"root": tree_builder.Node(1, [0.0], "s", (0, 1))},
            "a history's player must be CHANCE, TERMINAL or one of 0 to 0, but is 1.",
        ),
        (
            {"root": tree_builder.Node(0, [0.0, 0.0], "s", (0, 1))},
            "a history's rewards must have the shape (1), but has (2,).",
        ),
        (
            {
                "root": tree_builder.Node(0, [0.0], "s", (0,)),
                "leaf": tree_builder.Node(tree.TERMINAL, [0.0], None, (0,)),
            },
            "a terminal history has no actions, but this one has [0].",
        ),
    ],
)
def test_bad_descriptions_get_one_sentence(nodes, sentence):
    with pytest.raises(ValueError, match=r".*") as error:
        grow(**nodes)
    assert str(error.value) == sentence


def test_disagreeing_legal_actions_get_one_sentence():
    def describe(path):
        if len(path) == 2:
            return tree_builder.Node(tree.TERMINAL, [0.0])
        return tree_builder.Node(0, [0.0], "here", (0, 1) if not path else (0,))

    with pytest.raises(
        ValueError, match=r"^information state 'here' of agent 0 has legal actions \(0, 1\) at one"
    ):
        tree_builder.grow((), describe, lambda p, a: (*p, a), num_agents=1, num_actions=2)
