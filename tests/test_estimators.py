"""Importance, IX and CIX weights; estimates of action values and advantages.

Every estimator has a hand value, a slow oracle, a reduction and an expectation by enumeration.
"""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import oracles
import pytest
from enumeration import every_action, exactly

from pohp_neurd import estimators, policy

EXPLORATIONS = (0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.95, 1.0)
PROBABILITIES = np.array([0.05, 0.6, 0.25, 0.1])
RETURNS = np.array([-0.3, -2.0, 0.0, -1.1])


@pytest.fixture
def unchecked():
    """Without the shape checks of the tests, as users run the package."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def beta(exploration, probabilities=PROBABILITIES):
    return np.minimum(1.0, probabilities + exploration)


# Hand values.


def test_weights_by_hand():
    assert float(estimators.importance_weight(0.125)) == 8
    assert float(estimators.ix_weight(0.25, 0.25)) == 2
    assert float(estimators.ix_weight(1.0, 1.0)) == 0.5
    assert float(estimators.cix_weight(0.25, 0.25)) == 2
    assert float(estimators.cix_weight(0.5, 0.75)) == 1


def test_action_values_by_hand():
    p = jnp.array([0.25, 0.75])
    np.testing.assert_array_equal(estimators.action_values(-3.0, 0, p, 0.0), [-12, 0])
    np.testing.assert_array_equal(estimators.action_values(-3.0, 0, p, 0.5), [-4, 0])
    np.testing.assert_array_equal(estimators.action_values(-3.0, 1, p, 0.5), [0, -3])
    np.testing.assert_array_equal(estimators.action_values(-3.0, 0, p, 0.25, baseline=-1.0), [-5, -1])


def test_advantages_by_hand():
    p = jnp.array([0.25, 0.75])
    # −3 / 0.25 · (1 − 0.25) and −3 / 0.25 · (0 − 0.25): the probability of the SAMPLED action in both.
    np.testing.assert_array_equal(estimators.advantages(-3.0, 0, p, 0.0), [-9, 3])
    np.testing.assert_array_equal(estimators.advantages(-3.0, 1, p, 0.25), [2.25, -0.75])
    np.testing.assert_array_equal(estimators.advantages(-3.0, 0, p, 0.25, baseline=-1.0), [-3, 1])
    legal = jnp.array([True, True, False])
    got = estimators.advantages(-3.0, 0, jnp.array([0.25, 0.75, 0.0]), 0.0, legal=legal)
    np.testing.assert_array_equal(got, [-9, 3, 0])
    np.testing.assert_array_equal(estimators.sampled_advantages(-3.0, 0, 0.25, legal, 0.0), [-9, 3, 0])


# Oracles.


@pytest.mark.parametrize("exploration", EXPLORATIONS)
@pytest.mark.parametrize("baseline", [0.0, -0.8])
@pytest.mark.parametrize("name", ["action_values", "advantages"])
def test_estimates_match_the_oracle(name, exploration, baseline):
    got = exactly(getattr(estimators, name), RETURNS, PROBABILITIES, exploration, baseline)
    oracle = getattr(oracles, name)
    for action, row in enumerate(got):
        expected = oracle(RETURNS[action], action, PROBABILITIES, exploration, baseline)
        np.testing.assert_allclose(row, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("exploration", EXPLORATIONS)
def test_weights_match_the_definition(exploration):
    with jax.enable_x64(True):
        for p in PROBABILITIES:
            np.testing.assert_allclose(estimators.importance_weight(p), 1 / p, rtol=1e-15)
            np.testing.assert_allclose(
                estimators.ix_weight(p, exploration), 1 / (p + exploration), rtol=1e-15
            )
            capped = 1 / min(1, p + exploration)
            np.testing.assert_allclose(estimators.cix_weight(p, exploration), capped, rtol=1e-15)


def test_single_precision_is_close_to_double():
    for name in ("action_values", "advantages"):
        function = getattr(estimators, name)
        single = every_action(function, *(jnp.asarray(x, jnp.float32) for x in (RETURNS, PROBABILITIES, 0.1)))
        assert single.dtype == jnp.float32
        np.testing.assert_allclose(single, exactly(function, RETURNS, PROBABILITIES, 0.1), rtol=1e-5)


# Reductions.


def test_without_exploration_cix_is_ix_is_importance_sampling():
    for p in (1e-6, 0.3, 1.0):
        one = float(estimators.importance_weight(p))
        assert one == float(estimators.ix_weight(p, 0.0)) == float(estimators.cix_weight(p, 0.0))


def test_cix_is_ix_until_the_cap():
    assert float(estimators.cix_weight(0.3, 0.6)) == float(estimators.ix_weight(0.3, 0.6))
    assert float(estimators.cix_weight(0.5, 0.6)) == 1 > float(estimators.ix_weight(0.5, 0.6))


def test_full_exploration_removes_the_correction():
    for p in (1e-6, 0.3, 1.0):
        assert float(estimators.cix_weight(p, 1.0)) == 1


def test_advantages_are_action_values_less_their_mean_under_the_policy():
    for exploration in EXPLORATIONS:
        values = exactly(estimators.action_values, RETURNS, PROBABILITIES, exploration, -0.5)
        advantages = exactly(estimators.advantages, RETURNS, PROBABILITIES, exploration, -0.5)
        np.testing.assert_allclose(advantages, values - (values @ PROBABILITIES)[:, None], atol=1e-13)


def test_sampled_advantages_need_the_sampled_probability_alone():
    legal = jnp.ones(4, bool)
    for action in range(4):
        p = jnp.asarray(PROBABILITIES, jnp.float32)
        one = estimators.advantages(-1.3, action, p, 0.2, baseline=-0.1)
        other = estimators.sampled_advantages(-1.3, action, p[action], legal, 0.2, baseline=-0.1)
        np.testing.assert_array_equal(one, other)


# Expectations and variances by enumeration.


@pytest.mark.parametrize("exploration", EXPLORATIONS)
@pytest.mark.parametrize("baseline", [0.0, -0.8])
def test_expected_action_values_have_the_closed_form(exploration, baseline):
    rows = exactly(estimators.action_values, RETURNS, PROBABILITIES, exploration, baseline)
    mean, _ = oracles.moments(rows, PROBABILITIES)
    shrunk = PROBABILITIES / beta(exploration)
    np.testing.assert_allclose(mean, baseline + shrunk * (RETURNS - baseline), atol=1e-13)
    if exploration == 0:
        np.testing.assert_allclose(mean, RETURNS, atol=1e-13)
    if baseline == 0:
        assert np.all(mean >= RETURNS - 1e-13)  # optimism


@pytest.mark.parametrize("exploration", EXPLORATIONS)
@pytest.mark.parametrize("baseline", [0.0, -0.8])
def test_expected_advantages_have_the_closed_form(exploration, baseline):
    rows = exactly(estimators.advantages, RETURNS, PROBABILITIES, exploration, baseline)
    mean, _ = oracles.moments(rows, PROBABILITIES)
    shrunk = PROBABILITIES * (RETURNS - baseline) / beta(exploration)
    np.testing.assert_allclose(mean, shrunk - np.dot(PROBABILITIES, shrunk), atol=1e-13)
    if exploration == 0:
        np.testing.assert_allclose(mean, RETURNS - PROBABILITIES @ RETURNS, atol=1e-13)


def test_expected_weight_by_enumeration():
    with jax.enable_x64(True):
        for exploration in EXPLORATIONS:
            weights = [float(estimators.cix_weight(p, exploration)) for p in PROBABILITIES]
            mean, _ = oracles.moments(weights, PROBABILITIES)
            np.testing.assert_allclose(mean, np.sum(PROBABILITIES / beta(exploration)), rtol=1e-14)


# Gradients: a return is data, but the weights are differentiated through by importance-weighted losses.


@pytest.mark.parametrize("exploration", [0.0, 0.2, 1.0])
def test_gradients_of_weights(exploration):
    with jax.enable_x64(True):
        p = jnp.asarray(0.3)
        closed = {
            "ix_weight": -1 / (0.3 + exploration) ** 2,
            "cix_weight": -1 / (0.3 + exploration) ** 2 if 0.3 + exploration < 1 else 0.0,
        }
        for name, expected in closed.items():
            function = getattr(estimators, name)
            np.testing.assert_allclose(jax.grad(function)(p, exploration), expected, rtol=1e-13)
            numeric = oracles.finite_differences(lambda x, f=function: f(x, exploration), 0.3)
            np.testing.assert_allclose(numeric, expected, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(jax.grad(estimators.importance_weight)(p), -1 / 0.09, rtol=1e-13)


# Edges.


near = st.one_of(st.floats(1e-30, 1e-5), st.floats(1e-5, 1 - 1e-5), st.just(1.0), st.just(1 - 2**-24))


@pytest.mark.parametrize("x64", [False, True])
@hypothesis.settings(max_examples=60)
@hypothesis.given(
    weights=st.lists(near, min_size=12, max_size=12),
    exploration=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0])),
    return_=st.floats(-1e4, 0),
    baseline=st.floats(-1e4, 0),
)
def test_edges_stay_finite(x64, weights, exploration, return_, baseline):
    with jax.enable_x64(x64):
        weights = np.reshape(weights, (3, 4))
        weights[2] = [0, 1, 0, 0]  # one legal action
        probabilities = jnp.asarray(weights / weights.sum(axis=1, keepdims=True), float)
        for action in range(4):
            found = _everything(probabilities, jnp.asarray(action), return_, baseline, exploration)
            for name, leaf in found.items():
                assert leaf.dtype == probabilities.dtype
                assert np.all(np.isfinite(leaf)), name


@jax.jit
def _everything(probabilities, action, return_, baseline, exploration):
    def one(p):
        def total(r, b):
            return jnp.sum(estimators.advantages(r, action, p, exploration, baseline=b))

        return {
            "importance": estimators.importance_weight(p[action]),
            "ix": estimators.ix_weight(p[action], exploration),
            "cix": estimators.cix_weight(p[action], exploration),
            "values": estimators.action_values(return_, action, p, exploration, baseline=baseline),
            "advantages": estimators.advantages(return_, action, p, exploration, baseline=baseline),
            "gradient": jnp.stack(
                jax.grad(total, (0, 1))(jnp.asarray(return_, p.dtype), jnp.asarray(baseline, p.dtype))
            ),
        }

    return jax.vmap(one)(probabilities)


def test_padding_weighs_nothing():
    # Probability 0 stands at padding; with a critic's baseline there, an inf would make NaN of a mean.
    for exploration in (0.0, 0.5):
        legal = jnp.zeros(3, bool)
        got = estimators.sampled_advantages(0.0, 0, 0.0, legal, exploration, baseline=-50.0)
        np.testing.assert_array_equal(got, [0, 0, 0])
    assert float(estimators.importance_weight(0.0)) == 0
    np.testing.assert_array_equal(estimators.action_values(-10.0, 0, jnp.array([0.0, 1.0]), 0.0), [0, 0])


def test_vmap_is_a_loop():
    p = jnp.asarray(np.tile(PROBABILITIES, (3, 1)), jnp.float32)
    actions, returns = jnp.array([0, 1, 3]), jnp.array([-1.0, -2.0, -0.5])
    for function in (estimators.action_values, estimators.advantages):
        batched = jax.vmap(function, in_axes=(0, 0, 0, None))(returns, actions, p, 0.1)
        looped = [function(returns[i], actions[i], p[i], 0.1) for i in range(3)]
        np.testing.assert_array_equal(batched, np.stack(looped))


def test_whole_numbers_are_reals(unchecked):
    assert float(estimators.importance_weight(1)) == 1
    assert float(estimators.cix_weight(1, 0)) == 1
    np.testing.assert_array_equal(estimators.action_values(-2, 1, [0, 1], 1), [0, -2])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: estimators.cix_weight(0.5, 1.5), "exploration must lie in [0, 1], but is 1.5."),
        (lambda: estimators.cix_weight(0.5, float("nan")), "exploration must lie in [0, 1], but is nan."),
        (lambda: estimators.ix_weight(0.5, -0.1), "exploration must lie in [0, 1], but is -0.1."),
        (
            lambda: estimators.advantages(-1.0, 0, [0.5, 0.4], 0.1),
            "probabilities must sum to 1, but sums to 0.9.",
        ),
        (
            lambda: estimators.action_values(-1.0, 0, [1.5, -0.5], 0.1),
            "probabilities must be non-negative, but holds -0.5.",
        ),
        (
            lambda: estimators.action_values(-1.0, 0, [[0.5, 0.5]], 0.1),
            "probabilities must have the shape (any), but has (1, 2).",
        ),
        (
            lambda: estimators.action_values(-1.0, 0, 1.0, 0.1),
            "probabilities must have the shape (any), but has ().",
        ),
        (
            lambda: estimators.action_values([-1.0, 0.0], 0, [0.5, 0.5], 0.1),
            "return_ must have the shape (), but has (2,).",
        ),
        (
            lambda: estimators.advantages(-1.0, 0, [0.5, 0.5], 0.1, legal=np.ones(3, bool)),
            "legal must have the shape (2), but has (3,).",
        ),
        (lambda: estimators.advantages(-1.0, 2, [0.5, 0.5], 0.1), "action must be one of 0 to 1, but is 2."),
    ],
)
def test_bad_input_gets_one_sentence(unchecked, call, sentence):
    with pytest.raises(ValueError, match=r".*") as error:
        call()
    assert str(error.value) == sentence


def test_exactness_of_logits_to_estimates():
    # The whole arrow from logits: probabilities of the policy go into the estimator without loss.
    logits, legal = jnp.array([0.5, 1.0, -2.0]), jnp.array([True, True, False])
    p = policy.probabilities(logits, legal)
    got = estimators.advantages(-1.0, 1, p, 0.0, legal=legal)
    np.testing.assert_allclose(got, [1.0, -(1 - p[1]) / p[1], 0.0], rtol=1e-6)
