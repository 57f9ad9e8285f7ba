"""The masked softmax, sampling, entropy and centring."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from pohp_neurd import policy

LOGITS = np.array([0.3, -1.2, 2.0, 0.7, -0.1])
LEGAL = np.array([True, False, True, True, False])


def test_probabilities_by_hand():
    logits = jnp.log(jnp.array([1.0, 2.0, 5.0, 100.0]))
    legal = jnp.array([True, True, True, False])
    np.testing.assert_allclose(policy.probabilities(logits, legal), [1 / 8, 2 / 8, 5 / 8, 0], rtol=1e-6)


def test_probabilities_match_oracle():
    with jax.enable_x64(True):
        got = policy.probabilities(jnp.asarray(LOGITS), jnp.asarray(LEGAL))
        assert got.dtype == jnp.float64
        np.testing.assert_allclose(got, oracles.softmax(LOGITS, LEGAL), rtol=1e-14)


def test_without_mask_it_is_the_usual_softmax():
    got = policy.probabilities(jnp.asarray(LOGITS, jnp.float32), jnp.ones(5, bool))
    np.testing.assert_allclose(got, jax.nn.softmax(jnp.asarray(LOGITS, jnp.float32)), rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("batch", [1, 4])
def test_illegal_actions_get_exactly_nothing(batch):
    keys = jax.random.split(jax.random.key(0), 2)
    logits = jax.random.normal(keys[0], (batch, 5)) * 10
    legal = jax.random.bernoulli(keys[1], 0.5, (batch, 5)).at[:, 0].set(True)
    outputs, illegal = jax.tree.map(np.asarray, (_everything(logits, legal), ~legal))
    for name in ("probabilities", "log", "centred", "entropy gradient"):
        np.testing.assert_array_equal(outputs[name][illegal], 0.0)
    either = illegal[:, None, :] | illegal[:, :, None]
    for name in ("jacobian", "log jacobian"):
        np.testing.assert_array_equal(outputs[name][either], 0.0)


def test_illegal_logits_have_no_influence():
    one = policy.probabilities(jnp.array([0.5, 9.0, -0.5]), jnp.array([True, False, True]))
    other = policy.probabilities(jnp.array([0.5, -3e30, -0.5]), jnp.array([True, False, True]))
    np.testing.assert_array_equal(one, other)


def test_no_legal_action_gives_zeros():
    logits, legal = jnp.array([1.0, 2.0]), jnp.zeros(2, bool)
    for name, output in _everything(logits[None], legal[None]).items():
        np.testing.assert_array_equal(output, np.zeros(output.shape), name)


def test_gradient_of_softmax_closed_form_and_finite_differences():
    with jax.enable_x64(True):
        legal = jnp.asarray(LEGAL)
        p = oracles.softmax(LOGITS, LEGAL)
        jacobian = jax.jacobian(policy.probabilities)(jnp.asarray(LOGITS), legal)
        np.testing.assert_allclose(jacobian, np.diag(p) - np.outer(p, p), atol=1e-14)
        for a in range(5):
            numeric = oracles.finite_differences(lambda x, a=a: oracles.softmax(x, LEGAL)[a], LOGITS)
            np.testing.assert_allclose(jacobian[a], numeric, atol=1e-9)


def test_log_probabilities_match_the_logarithm_and_outlast_underflow():
    with jax.enable_x64(True):
        got = policy.log_probabilities(jnp.asarray(LOGITS), jnp.asarray(LEGAL))
        np.testing.assert_allclose(got[LEGAL], np.log(oracles.softmax(LOGITS, LEGAL)[LEGAL]), rtol=1e-13)
    far = policy.log_probabilities(jnp.array([0.0, -1e4]), jnp.ones(2, bool))
    np.testing.assert_array_equal(far, [0.0, -1e4])


def test_gradient_of_log_probability_closed_form():
    with jax.enable_x64(True):
        p = oracles.softmax(LOGITS, LEGAL)
        jacobian = jax.jacobian(policy.log_probabilities)(jnp.asarray(LOGITS), jnp.asarray(LEGAL))
        expected = np.where(LEGAL[:, None] & LEGAL, np.eye(5) - p, 0.0)
        np.testing.assert_allclose(jacobian, expected, atol=1e-14)


def test_entropy_by_hand_and_its_gradient():
    with jax.enable_x64(True):
        p = oracles.softmax(LOGITS, LEGAL)
        entropy = -sum(x * np.log(x) for x in p if x > 0)
        args = (jnp.asarray(LOGITS), jnp.asarray(LEGAL))
        np.testing.assert_allclose(policy.entropy(*args), entropy, rtol=1e-14)
        logs = np.where(LEGAL, np.log(np.where(LEGAL, p, 1.0)), 0.0)
        np.testing.assert_allclose(jax.grad(policy.entropy)(*args), -p * (logs + entropy), atol=1e-14)
        numeric = oracles.finite_differences(lambda x: policy.entropy(jnp.asarray(x), args[1]), LOGITS)
        np.testing.assert_allclose(jax.grad(policy.entropy)(*args), numeric, atol=1e-8)


def test_centred_is_over_legal_actions():
    got = policy.centred(jnp.array([1.0, 50.0, 3.0]), jnp.array([True, False, True]))
    np.testing.assert_array_equal(got, [-1.0, 0.0, 1.0])


def test_sample_frequencies():
    # 200,000 draws: 5 standard errors of each frequency.
    count, probabilities = 200_000, jnp.array([0.2, 0.0, 0.5, 0.3, 0.0])
    keys = jax.random.split(jax.random.key(1), count)
    actions = jax.jit(jax.vmap(lambda key: policy.sample(probabilities, key=key)))(keys)
    frequencies = np.bincount(np.asarray(actions), minlength=5) / count
    p = np.asarray(probabilities, np.float64)
    assert np.all(np.abs(frequencies - p) <= 5 * np.sqrt(p * (1 - p) / count))
    assert actions.dtype == jnp.int32


@pytest.mark.parametrize(
    "probabilities", [[0.0, 0.5, 0.5, 0.0], [1.0, 0, 0, 0], [0, 0, 0, 1.0], [0.3, 0, 0.7, 0]]
)
@pytest.mark.parametrize("digits", [0, policy.ONE - 1])
def test_sample_never_takes_an_impossible_action(monkeypatch, probabilities, digits):
    # The ends of the unit interval, where rounding could step outside the possible actions.
    end = policy.Fixed(jnp.int32(digits), jnp.int32(digits))
    monkeypatch.setattr(policy, "uniform", lambda key: end)
    action = policy.sample(jnp.asarray(probabilities, jnp.float32), key=jax.random.key(0))
    assert probabilities[int(action)] > 0


extreme = st.one_of(st.floats(-1e4, 1e4, width=32), st.sampled_from([-1e4, 0.0, 1e4]))


@pytest.mark.thorough
@pytest.mark.parametrize("x64", [False, True])
@hypothesis.settings(max_examples=60)
@hypothesis.given(
    logits=st.lists(extreme, min_size=15, max_size=15),
    legal=st.lists(st.booleans(), min_size=15, max_size=15),
)
def test_extreme_logits_stay_finite(x64, logits, legal):
    with jax.enable_x64(x64):
        logits = jnp.asarray(np.reshape(logits, (3, 5)), float)
        legal = np.reshape(legal, (3, 5))
        legal[2] = [False, True, False, False, False]  # one legal action
        outputs = _everything(logits, jnp.asarray(legal))
        for name, leaf in outputs.items():
            assert np.all(np.isfinite(leaf)), name
        probabilities = np.asarray(outputs["probabilities"])
        np.testing.assert_array_equal(probabilities[~legal], 0.0)
        np.testing.assert_allclose(probabilities.sum(axis=1), legal.any(axis=1), rtol=1e-6)
        assert probabilities[2, 1] == 1
        assert np.all(np.asarray(outputs["entropy"]) >= 0)


@jax.jit
def _everything(logits, legal):
    def one(logits, legal):
        return {
            "probabilities": policy.probabilities(logits, legal),
            "log": policy.log_probabilities(logits, legal),
            "entropy": policy.entropy(logits, legal),
            "centred": policy.centred(logits, legal),
            "jacobian": jax.jacobian(policy.probabilities)(logits, legal),
            "log jacobian": jax.jacobian(policy.log_probabilities)(logits, legal),
            "entropy gradient": jax.grad(policy.entropy)(logits, legal),
        }

    return jax.vmap(one)(logits, legal)
