"""An episode by hand: what follows a choice, discounted, and the returns in the end."""

import pytest

from pohp_neurd.openspiel.agent import episode


def choice(followed):
    """A choice after which rewards came, each with the discount of what comes later."""
    made = episode.Choice(None, [0, 1], 0, 0.5, 0.0)
    for reward, discount in followed:
        made.follow(reward, discount)
    return made


def test_rewards_between_two_choices_are_discounted():
    """Others move in between: r₁ + γ₁ r₂ + γ₁ γ₂ r₃ up to the next choice, which counts γ₁ γ₂ γ₃."""
    made = choice([(1.0, 0.5), (2.0, 0.25), (8.0, 0.5)])
    assert made.reward == pytest.approx(1.0 + 0.5 * 2.0 + 0.125 * 8.0)
    assert made.continuation == pytest.approx(0.0625)


def test_returns_go_backwards_through_the_choices():
    choices = [choice([(1.0, 0.5), (2.0, 0.5)]), choice([(4.0, 1.0), (-8.0, 0.0)])]
    episode.close(choices)
    assert [each.return_ for each in choices] == pytest.approx([1.0 + 0.5 * 2.0 + 0.25 * -4.0, -4.0])
