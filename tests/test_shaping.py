"""Threshold, magnet and proximal step: closed forms, a loop, an optimizer."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import oracles
import pytest
import scipy.optimize
from decisions import batch

from pohp_neurd import directions, learners, optimizers, policy, shaping, tabular


def test_threshold_by_hand():
    legal = jnp.array([True, True, True, False])
    logits = jnp.array([5.0, 1.0, 0.0, 100.0])  # centred: 3, −1, −2
    outward = shaping.thresholded(jnp.array([1.0, 1.0, -1.0, 0.0]), logits, legal, 2.0)
    np.testing.assert_array_equal(outward, [0.0, 1.0, 0.0, 0.0])
    inward = shaping.thresholded(jnp.array([-1.0, -1.0, 1.0, 0.0]), logits, legal, 2.0)
    np.testing.assert_array_equal(inward, [-1.0, -1.0, 1.0, 0.0])


def test_threshold_matches_a_loop_and_bounds_the_logits():
    rng = np.random.default_rng(3)
    for _ in range(20):
        logits, direction = rng.normal(size=(2, 5)) * 3
        legal = rng.random(5) < 0.7
        legal[0] = True
        got = shaping.thresholded(
            *(jnp.asarray(x, jnp.float32) for x in (direction, logits)), jnp.asarray(legal), 1.5
        )
        for a in range(5):
            centred = logits[a] - logits[legal].mean() if legal[a] else 0.0
            blocked = (centred >= 1.5 and direction[a] > 0) or (centred <= -1.5 and direction[a] < 0)
            np.testing.assert_allclose(got[a], 0.0 if blocked else direction[a], rtol=1e-6)
    model = tabular.table(1, 3)
    learner = learners.learner(model.apply, directions.neurd(), optimizers.sgd(0.1), threshold=1.0)
    always = learners.Decision(
        jnp.array([0]), jnp.ones((1, 3), bool), jnp.array([0]), jnp.array([0.5]), jnp.array([-1.0])
    )
    state, update = learner.init(model.init()), jax.jit(learner.update)
    for _ in range(100):
        state, _ = update(state, always)
    # The others rise to the threshold and no further; only their moves shift the first one's place.
    spread = np.asarray(policy.centred(state.parameters.logits[0], jnp.ones(3, bool)))
    assert 1.0 <= spread.max() <= 1.1
    again, _ = update(state, always)
    np.testing.assert_array_equal(again.parameters.logits, state.parameters.logits)


def test_magnet_pull_is_the_gradient_of_the_divergence():
    with jax.enable_x64(True):
        legal = np.array([True, True, False, True])
        mine, magnet = np.random.default_rng(0).normal(size=(2, 4))

        def divergence(weights):  # of unnormalised arguments, so that every entry is free
            reference = oracles.softmax(magnet, legal)
            return sum(w * np.log(w / m) for w, m, ok in zip(weights, reference, legal, strict=True) if ok)

        slope = oracles.finite_differences(divergence, oracles.softmax(mine, legal) + 1e-12)
        expected = np.where(legal, -slope - np.mean(-slope[legal]), 0.0)
        got = shaping.magnet_pull(jnp.asarray(mine), jnp.asarray(magnet), jnp.asarray(legal))
        np.testing.assert_allclose(got, expected, atol=1e-6)
        centred = [policy.centred(jnp.asarray(x), jnp.asarray(legal)) for x in (mine, magnet)]
        np.testing.assert_allclose(got, centred[1] - centred[0], atol=1e-14)


def no_news(size=3):
    """Decisions whose direction is 0, so that the magnet alone moves the policy."""
    zeros = jnp.zeros(size)
    legal, action = jnp.ones((size, 4), bool), jnp.zeros(size, jnp.int32)
    return learners.Decision(jnp.arange(size), legal, action, zeros + 0.5, zeros)


def test_fixed_magnet_is_a_geometric_pull():
    with jax.enable_x64(True):
        model = tabular.table(3, 4)
        start = tabular.Table(jnp.asarray(np.random.default_rng(0).normal(size=(3, 4))), None)
        learner = learners.learner(
            model.apply,
            directions.neurd_cix(0.1),
            optimizers.sgd(0.5),
            magnet=shaping.Magnet(strength=0.4),
        )
        state = learner.init(start)._replace(magnet=model.init())
        update = jax.jit(learner.update)
        for _ in range(3):
            state, _ = update(state, no_news())
        centred = np.asarray(start.logits) - np.mean(start.logits, axis=1, keepdims=True)
        left = np.asarray(state.parameters.logits)
        np.testing.assert_allclose(left - left.mean(axis=1, keepdims=True), centred * (1 - 0.5 * 0.4) ** 3)
        np.testing.assert_array_equal(state.magnet.logits, np.zeros((3, 4)))


def test_moving_magnet_follows_the_parameters():
    model, decisions = tabular.table(3, 4), batch()
    learner = learners.learner(
        model.apply, directions.neurd_cix(0.1), optimizers.sgd(0.5), magnet=shaping.Magnet(0.2, speed=0.25)
    )
    state, update = learner.init(model.init()), jax.jit(learner.update)
    for _ in range(3):
        before = state
        state, _ = update(state, decisions)
        expected = 0.75 * before.magnet.logits + 0.25 * state.parameters.logits
        np.testing.assert_allclose(state.magnet.logits, expected, rtol=1e-6, atol=1e-7)


def test_magnet_strength_by_schedule():
    model = tabular.table(3, 4)
    schedule = optax.piecewise_constant_schedule(0.4, {1: 0.0})  # 0.4 at the first update, then 0
    learner = learners.learner(
        model.apply, directions.neurd_cix(0.1), optimizers.sgd(0.5), magnet=shaping.Magnet(schedule)
    )
    start = model.init()._replace(logits=jnp.tile(jnp.array([2.0, -2.0, 0.0, 0.0]), (3, 1)))
    state = learner.init(start)._replace(magnet=model.init())
    update = jax.jit(learner.update)
    first, _ = update(state, no_news())
    second, _ = update(first, no_news())
    np.testing.assert_allclose(first.parameters.logits, 0.8 * start.logits, rtol=1e-6)
    np.testing.assert_array_equal(second.parameters.logits, first.parameters.logits)


@pytest.mark.parametrize(("step_size", "strength"), [(0.3, 0.0), (0.3, 0.5), (2.0, 40.0)])
def test_proximal_step_is_the_maximiser(step_size, strength):
    with jax.enable_x64(True):
        logits, direction, magnet = np.random.default_rng(5).normal(size=(3, 4))
        everywhere = np.ones(4, bool)
        old, reference = oracles.softmax(logits, everywhere), oracles.softmax(magnet, everywhere)

        def loss(free):
            pi = oracles.softmax(free, everywhere)
            near = np.sum(pi * np.log(pi / old)) / step_size
            return -(direction @ pi - near - strength * np.sum(pi * np.log(pi / reference)))

        best = scipy.optimize.minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
        old_logits, move, reference_logits = (jnp.asarray(x) for x in (logits, direction, magnet))
        got = shaping.pulled(old_logits + step_size * move, reference_logits, step_size * strength)
        np.testing.assert_allclose(
            oracles.softmax(np.asarray(got), everywhere), oracles.softmax(best, everywhere), atol=1e-6
        )
        assert loss(np.asarray(got)) <= loss(best) + 1e-12


def test_proximal_step_without_strength_is_the_plain_step():
    with jax.enable_x64(True):
        rows = [jnp.asarray(x) for x in np.random.default_rng(5).normal(size=(3, 4))]
        got = shaping.pulled(rows[0] + 0.3 * rows[1], rows[2], 0.3 * 0.0)
        np.testing.assert_allclose(got, rows[0] + 0.3 * rows[1], rtol=1e-14)
