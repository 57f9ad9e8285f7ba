"""The bounds that learners promise ahead of a run, by their formulas."""

import numpy as np
import pytest

from pohp_neurd.bandit import learners

EXPLORATIONS = np.array([0.5, 0.25, 0.4, 0.2])
ARMS, MAX_RETURN, LOG_TERM = 3, 5.0, 4.0


def bound_of(learner):
    return learner.guarantee.bound(EXPLORATIONS, ARMS, MAX_RETURN, LOG_TERM)


def test_hedge_by_hand():
    """The bound g = log K / α + (G² K / 2) Σ α + (G² / 4) max(α / η) L at every horizon."""
    alpha = 0.1
    expected = [
        np.log(3) / alpha + 25 * 3 / 2 * alpha * rounds + 25 / 4 * alpha / smallest * 4
        for rounds, smallest in ((1, 0.5), (2, 0.25), (3, 0.25), (4, 0.2))
    ]
    np.testing.assert_allclose(bound_of(learners.hedge(alpha)), expected, rtol=1e-12)


@pytest.mark.parametrize("learner", [learners.regret_matching(), learners.regret_matching_plus()])
def test_regret_matching_by_hand(learner):
    """The bound g = G √((K − 1) T + K Σ 1 / η + L / (2 η_min²)) at every horizon."""
    expected = [
        5 * np.sqrt(2 * rounds + 3 * inverses + 4 / (2 * smallest**2))
        for rounds, inverses, smallest in ((1, 2, 0.5), (2, 6, 0.25), (3, 8.5, 0.25), (4, 13.5, 0.2))
    ]
    np.testing.assert_allclose(bound_of(learner), expected, rtol=1e-12)
