"""Uniform numbers: the bits of JAX's threefry, and arms drawn from them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import random as jax_random

from pohp_neurd import policy
from pohp_neurd.bandit import learners, simulation


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_threefry_gives_the_bits_of_jax(seed):
    key = jax.random.key_data(jax.random.key(seed))
    counters = jax.random.bits(jax.random.key(5), (2, 1000), jnp.uint32)
    ours = jnp.concatenate(simulation.threefry(key, counters[0], counters[1]))
    np.testing.assert_array_equal(ours, jax_random.threefry_2x32(key, counters.reshape(-1)))


def real(fixed):
    return (np.asarray(fixed.high) + np.asarray(fixed.low) / policy.ONE) / policy.ONE


@pytest.mark.parametrize("x64", [False, True])
def test_uniforms_are_uniform_and_independent_between_places_and_rounds(x64):
    with jax.enable_x64(x64):
        rounds = [simulation.uniforms(jax.random.key(3), t, 2, 20_001) for t in range(4)]
    kind = np.float64 if x64 else np.float32
    assert all(numbers.problem.dtype == kind for numbers in rounds)
    halves = [np.stack(numbers.action)[:, 0] / policy.ONE for numbers in rounds]
    rows = np.concatenate([*halves, *(np.asarray(numbers.problem, np.float64) for numbers in rounds)])
    assert rows.shape == (16, 20_001)
    assert rows.min() >= 0
    assert rows.max() < 1
    # 20,001 numbers a row; the mean of a uniform has a standard error of √(1 / 12 / n).
    assert np.all(np.abs(rows.mean(axis=1) - 0.5) < 5 * np.sqrt(1 / 12 / 20_001))
    # A fifth of them below 0.2: the binomial's standard error.
    assert np.all(np.abs((rows < 0.2).mean(axis=1) - 0.2) < 5 * np.sqrt(0.16 / 20_001))
    # Correlations of independent rows have a standard error of 1 / √n.
    correlations = np.corrcoef(rows)[np.triu_indices(16, 1)]
    assert np.all(np.abs(correlations) < 5 / np.sqrt(20_001))


def test_uniforms_depend_on_the_key():
    one, other = (simulation.uniforms(jax.random.key(seed), 0, 1, 100) for seed in (0, 1))
    assert not np.any(np.asarray(one.problem) == np.asarray(other.problem))
    assert not np.any(real(one.action) == real(other.action))


def test_old_style_keys_are_the_same_and_other_generators_are_refused():
    one, other = (simulation.uniforms(key, 0, 2, 10) for key in (jax.random.PRNGKey(4), jax.random.key(4)))
    jax.tree.map(np.testing.assert_array_equal, one, other)
    with pytest.raises(ValueError, match="threefry"):
        simulation.uniforms(jax.random.key(0, impl="rbg"), 0, 1, 1)


def test_choose_draws_from_the_probabilities():
    chances = np.array([0.0, 0.1, 0.0, 0.6, 0.3, 0.0], np.float32)
    numbers = simulation.uniforms(jax.random.key(0), 0, 0, 100_000)
    policy = jnp.broadcast_to(jnp.asarray(chances)[:, None], (6, 100_000))
    counts = np.bincount(np.asarray(jax.jit(simulation.choose)(policy, numbers.action))[0], minlength=6)
    assert np.all(counts[chances == 0] == 0)
    error = np.sqrt(chances * (1 - chances) / 100_000)
    assert np.all(np.abs(counts / 100_000 - chances) <= 5 * error)


@pytest.mark.parametrize("total", [0.9, 0.9999999, 1.0, 1.0000001])
def test_choose_stays_in_range_at_the_ends(total):
    chances = jnp.array([[0.5], [0.5], [0.0]], jnp.float32) * total
    for digits, arm in ((0, 0), (policy.ONE - 1, 1)):
        end = jnp.full((1, 1), digits, jnp.int32)
        assert int(simulation.choose(chances, policy.Fixed(end, end))[0, 0]) == arm


def test_pulled_marks_one_arm_of_each_run():
    assert learners.pulled(1, (3,)).tolist() == [False, True, False]
    marks = learners.pulled(jnp.array([[0, 2]]), (3, 2))
    assert marks.tolist() == [[True, False], [False, False], [False, True]]
