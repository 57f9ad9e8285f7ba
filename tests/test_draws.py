"""Draws in fixed point: every outcome's interval is as long as its probability, wherever it stands."""

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import policy
from pohp_neurd.bandit import simulation
from pohp_neurd.openspiel import uniforms

RARE = (1e-6, 1e-7, 1e-9, 1e-12)

thresholds = jax.jit(policy.thresholds)


def whole(fixed):
    """Fixed numbers as whole multiples of 2⁻⁴⁸, exactly."""
    return np.asarray(fixed.high).astype(np.int64) * policy.ONE + np.asarray(fixed.low)


def widths(probabilities):
    """How often each outcome is drawn, exactly: in a float64, which holds 48 bits."""
    ends = whole(thresholds(probabilities))
    return np.diff(ends, prepend=0) / float(policy.ONE**2)


def with_rare(rare, place):
    chances = np.array([0.3, 0.0, 0.25, 0.45 - rare])
    return np.insert(chances, place, rare)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize("rare", RARE)
def test_a_rare_outcome_is_drawn_as_rarely_as_it_should(rare, place, x64):
    with jax.enable_x64(x64):
        chances = jnp.asarray(with_rare(rare, place), float)
        drawn = widths(chances)
    expected = np.asarray(chances, np.float64)
    assert drawn.sum() == 1.0
    others = np.arange(5) != np.argmax(expected)
    assert np.all(expected[others] - drawn[others] >= 0)
    np.testing.assert_allclose(drawn[others], expected[others], rtol=0, atol=2.0**-48)
    # The likeliest has the rest, which float32's sum of all leaves open.
    np.testing.assert_allclose(drawn, expected, rtol=0, atol=2e-7)
    assert np.all(drawn[expected == 0] == 0)


@pytest.mark.parametrize("size", [1, 2, 7, 4_672])
def test_the_sum_of_any_number_of_outcomes_is_exact(size):
    chances = jax.random.dirichlet(jax.random.key(size), jnp.full(size, 0.3)).astype(jnp.float32)
    drawn, expected = widths(chances), np.asarray(chances, np.float64)
    others = np.arange(size) != np.argmax(expected)
    np.testing.assert_allclose(drawn[others], expected[others], rtol=0, atol=2.0**-48)
    assert drawn.sum() == 1.0
    assert np.all(drawn >= 0)


@jax.jit
def drawn_by(chances, uniform):
    """What each sampler takes at given uniform numbers: one outcome by `sample`, and one arm by `choose`."""

    def sampled(number):
        with mock.patch.object(policy, "uniform", return_value=number):
            return policy.sample(chances, key=jax.random.key(0))

    columns = jnp.broadcast_to(chances[:, None], (len(chances), len(uniform.high)))
    chosen = simulation.choose(columns, jax.tree.map(lambda half: half[None], uniform))[0]
    return jax.vmap(sampled)(uniform), chosen


@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize("rare", RARE)
def test_samplers_take_the_outcome_exactly_inside_its_interval(rare, place):
    chances = jnp.asarray(with_rare(rare, place), jnp.float32)
    ends = whole(thresholds(chances)).tolist()
    start = ends[place - 1] if place else 0
    numbers = np.clip([start, ends[place] - 1, start - 1, ends[place]], 0, policy.ONE**2 - 1)
    inside = (numbers >= start) & (numbers < ends[place])
    assert inside[:2].all()
    high, low = np.divmod(numbers, policy.ONE)
    for drawn in drawn_by(chances, policy.Fixed(jnp.asarray(high, jnp.int32), jnp.asarray(low, jnp.int32))):
        np.testing.assert_array_equal(drawn == place, inside)
        assert np.all(chances[drawn] > 0)


def test_uniform_numbers_are_uniform_and_their_halves_independent():
    """100,000 numbers: 5 standard errors of the mean of each half, and of their correlation."""
    count = 100_000
    halves = np.stack(policy.uniform(jax.random.key(0), (count,))) / policy.ONE
    assert halves.min() >= 0
    assert halves.max() < 1
    assert np.all(np.abs(halves.mean(axis=1) - 0.5) < 5 * np.sqrt(1 / 12 / count))
    assert abs(np.corrcoef(halves)[0, 1]) < 5 / np.sqrt(count)


def test_where_float32_draws_right_nothing_changes():
    """100,000 draws from moderate probabilities are those that float32's 23 bits give from the same keys."""
    keys = jax.random.split(jax.random.key(1), 100_000)
    chances = jnp.array([0.2, 0.0, 0.5, 0.3])

    def coarse(key):
        return jnp.sum(jnp.cumsum(chances) <= jax.random.uniform(key)).astype(jnp.int32)

    drawn = jax.jit(jax.vmap(lambda key: policy.sample(chances, key=key)))(keys)
    np.testing.assert_array_equal(drawn, jax.jit(jax.vmap(coarse))(keys))


def test_no_legal_action_gives_the_first():
    assert int(policy.sample(jnp.zeros(3), key=jax.random.key(0))) == 0


@pytest.mark.parametrize(
    ("chances", "uniform", "index"),
    [
        ([1 - 6e-8, 1e-9], 1 - 3e-8, 0),  # the sum is short of 1, and that is not the last one's
        ([1 - 6e-8, 1e-9], 1 - 1e-10, 1),
        ([0.5, 0.5, 0.0], 1 - 2**-53, 1),
        ([0.0, 1.0], 0.0, 1),
    ],
)
def test_draws_on_the_host(chances, uniform, index):
    assert uniforms.pick(list(enumerate(chances)), uniform) == index
