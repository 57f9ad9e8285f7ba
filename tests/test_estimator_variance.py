"""Does exploration lower the variance of estimates? Statements of docs/notation.md, by exact enumeration."""

import numpy as np
import oracles
import pytest
from enumeration import exactly

from pohp_neurd import estimators


def variances(name, returns, probabilities, baseline=0.0, centre=False, explorations=None):
    """Exact variance of every component, one row for each exploration."""
    rows = []
    for exploration in np.linspace(0, 1, 21) if explorations is None else explorations:
        samples = exactly(getattr(estimators, name), returns, probabilities, exploration, baseline)
        if centre:
            samples = samples - samples.mean(axis=1, keepdims=True)
        rows.append(oracles.moments(samples, probabilities)[1])
    return np.array(rows)


def random_problems(count, num_actions, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        spread = rng.choice([0.2, 1.0, 5.0])
        yield (
            -rng.random(num_actions),
            rng.dirichlet(np.full(num_actions, spread)) * 0.999 + 0.001 / num_actions,
        )


@pytest.mark.parametrize("num_actions", [2, 5])
def test_variance_of_action_values_never_increases_with_exploration(num_actions):
    for returns, probabilities in random_problems(20, num_actions):
        for baseline in (0.0, -0.5):
            found = variances("action_values", returns, probabilities, baseline)
            assert np.all(np.diff(found, axis=0) <= 1e-12)
            closed = probabilities * (1 - probabilities) * (returns - baseline) ** 2 / probabilities**2
            np.testing.assert_allclose(found[0], closed, rtol=1e-9, atol=1e-12)


def test_variance_of_one_advantage_can_increase_with_exploration():
    # The example of docs/notation.md.
    found = variances("advantages", [0.0, -1.0, -1.0], [0.01, 0.09, 0.9], explorations=(0.0, 0.1, 1.0))
    np.testing.assert_allclose(found[:, 0], [0.0099, 0.022213, 0.060441], rtol=1e-4)


def test_variance_of_all_advantages_together_can_increase_with_exploration():
    # The second example of docs/notation.md: 2 likely actions among 100.
    returns, probabilities = np.zeros(100), np.full(100, 1e-12)
    returns[:2], probabilities[:2] = -1, (0.1, 0.9)
    found = variances("advantages", returns, probabilities, explorations=(0.0, 0.1, 1.0)).sum(axis=1)
    np.testing.assert_allclose(found, [9.1111, 4.0680, 5.9400], rtol=1e-4)


def test_variance_of_two_advantages_never_increases_without_a_baseline():
    for returns, probabilities in random_problems(30, 2):
        assert np.all(np.diff(variances("advantages", returns, probabilities), axis=0) <= 1e-12)


@pytest.mark.parametrize("num_actions", [3, 6])
def test_variance_of_what_moves_the_policy_never_increases(num_actions):
    # Differences of two advantages, and so the total variance of the centred ones, without a baseline.
    for returns, probabilities in random_problems(15, num_actions):
        samples = [
            exactly(estimators.advantages, returns, probabilities, exploration)
            for exploration in np.linspace(0, 1, 21)
        ]
        differences = np.array(
            [oracles.moments(x[:, :, None] - x[:, None, :], probabilities)[1] for x in samples]
        )
        assert np.all(np.diff(differences, axis=0) <= 1e-10 * differences.max())
        total = variances("advantages", returns, probabilities, centre=True).sum(axis=1)
        np.testing.assert_allclose(total, differences.sum(axis=(1, 2)) / 2 / num_actions, rtol=1e-9)


def test_with_a_baseline_even_a_difference_of_advantages_can_gain_variance():
    samples = [
        exactly(estimators.advantages, [-0.25, -1.5], [0.2, 0.8], exploration, -0.5)
        for exploration in (0, 0.2)
    ]
    found = [oracles.moments(x[:, 0] - x[:, 1], [0.2, 0.8])[1] for x in samples]
    np.testing.assert_allclose(found, [0.0, 0.0225], atol=1e-12)
