"""Choices by hand: what follows them, discounted, the returns in the end, and a batch of them."""

import numpy as np
import pytest

from pohp_neurd.openspiel.agent import buffer, learning


def choice(followed):
    """A choice after which rewards came, each with the discount of what comes later."""
    made = buffer.Choice(None, [0, 1], 0, 0.5, 0.0)
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
    buffer.close(choices)
    assert [each.return_ for each in choices] == pytest.approx([1.0 + 0.5 * 2.0 + 0.25 * -4.0, -4.0])


def batch(returns, known, *, max_return=None, uses_value=True):
    """Choices with these returns, of which the critic said 0.5, as the learner gets them."""
    choices = [buffer.Choice(0, [0, 1], 0, 0.5, 0.5, return_=one) for one in returns]
    arrays = buffer.Experience(2, np.zeros((), np.int32)).arrays(choices)
    return learning.decisions(arrays, known, max_return=max_return, uses_value=uses_value, capacity=8)


def known(returns, so_far=None, *, centre=None, scale=None):
    """What is known of returns after a batch; the first one, if nothing is known so far."""
    first = so_far is None
    return learning.known_returns(
        np.array(returns), so_far or learning.Returns(), first=first, centre=centre, scale=scale
    )


def test_returns_are_scaled_by_the_largest_magnitude_and_told_from_the_first_mean():
    first = known([-4.0, 2.0])
    assert first == (2.0, -1.0, 4.0)
    assert known([1.0, 1.0], first) == (2.0, -1.0, 4.0)
    assert known([8.0, 8.0], first) == (8.0, -1.0, 8.0)
    assert known([8.0, 8.0], first, centre=3.0, scale=10.0) == (8.0, 3.0, 10.0)
    assert known([0.0]).scale == 1.0
    decisions, loss = batch([-4.0, 2.0], first)
    np.testing.assert_allclose(decisions.target[:2], [-3 / 4, 3 / 4])
    np.testing.assert_allclose(decisions.return_[:2] - decisions.baseline[:2], [-3.5 / 4, 2.5 / 4])
    assert loss == pytest.approx(0.5 * (3.5**2 + 2.5**2) / 2)


@pytest.mark.parametrize("max_return", [None, 3.0])
def test_without_a_baseline_no_return_is_positive(max_return):
    largest = 2.0 if max_return is None else max_return
    decisions, _ = batch([-4.0, 2.0], known([-4.0, 2.0]), max_return=max_return, uses_value=False)
    np.testing.assert_allclose(decisions.return_[:2], [(-4.0 - largest) / 4, (2.0 - largest) / 4])
    assert decisions.return_.max() == 0
    assert np.all(decisions.baseline == 0)


def test_every_choice_weighs_the_same_and_padding_nothing():
    decisions, _ = batch([1.0, 2.0, 3.0], known([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(decisions.weight, [1 / 3] * 3 + [0] * 5)
