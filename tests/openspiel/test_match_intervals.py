"""Intervals of matches and bounds, by hand, from returns that are given instead of played."""

import math

import numpy as np
import pytest

from pohp_neurd.openspiel.live import match as matches


def half_width(estimate):
    assert estimate.high - estimate.mean == pytest.approx(estimate.mean - estimate.low)
    return estimate.high - estimate.mean


def given(monkeypatch, *returns):
    left = iter(np.array(one, float) for one in returns)
    monkeypatch.setattr(matches, "_returns", lambda *_: next(left))


def test_a_bound_is_as_uncertain_as_all_it_was_measured_from(monkeypatch):
    """Variances of means: own returns 1/3 in each seat and 0 in their sum; the responders' 1/3 and 1."""
    monkeypatch.setattr(matches, "_responder", lambda *_: None)
    given(
        monkeypatch,
        [[1, -1], [-1, 1], [1, -1], [-1, 1]],
        [[2, -2], [0, 0], [2, -2], [0, 0]],
        [[-1, 1], [-1, 1], [-1, 1], [3, -3]],
    )
    bound = matches.best_response_bound("kuhn_poker", None, num_updates=1, num_episodes=4)
    assert [gain.mean for gain in bound.gains] == [1.0, 0.0]
    assert half_width(bound.gains[0]) == pytest.approx(matches.NORMAL_95 * math.sqrt(1 / 3 + 1 / 3))
    assert half_width(bound.gains[1]) == pytest.approx(matches.NORMAL_95 * math.sqrt(1 / 3 + 1))
    assert bound.nash_conv.mean == 1.0
    assert half_width(bound.nash_conv) == pytest.approx(matches.NORMAL_95 * math.sqrt(0 + 1 / 3 + 1))


def test_a_sum_over_seats_counts_what_they_have_in_common(monkeypatch):
    """Both seats get the same, and responders always 3: the sum of own returns alone has a variance."""
    monkeypatch.setattr(matches, "_responder", lambda *_: None)
    given(monkeypatch, [[1, 1], [-1, -1]], [[3, 0]] * 2, [[0, 3]] * 2)
    bound = matches.best_response_bound("kuhn_poker", None, num_updates=1, num_episodes=2)
    assert bound.nash_conv.mean == 6.0
    # Sums 2 and -2: variance 8, of their mean 4. Seat by seat it would be 1 + 1.
    assert half_width(bound.nash_conv) == pytest.approx(matches.NORMAL_95 * math.sqrt(4))


def test_a_rotation_is_one_draw(monkeypatch):
    """The first player's edge of 1 cancels within a rotation: means 0 and 1, of variance 1/4."""
    given(monkeypatch, [[1, -1], [1, -1], [2, -2], [0, 0]])
    found = matches.play("kuhn_poker", [None, None], 4, 0)
    assert found.mean == 0.5
    assert half_width(found) == pytest.approx(matches.NORMAL_95 * math.sqrt(1 / 4))
