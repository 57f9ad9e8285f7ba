"""Averages of parameters against their definitions."""

import jax.numpy as jnp
import numpy as np

from pohp_neurd import self_play, tally_learners


def smoothed(values, rate):
    state = tally_learners.Smoothed({"w": jnp.zeros(2)}, jnp.zeros((), jnp.int32))
    found = []
    for value in values:
        state = tally_learners.smooth(state, {"w": jnp.full(2, value, jnp.float32)}, rate)
        found.append(np.asarray(state.parameters["w"])[0])
    assert int(state.updates) == len(values)
    return np.array(found)


def test_parameters_are_a_plain_mean_at_first():
    """Until 1 / rate updates: what training began with, and the order of the updates, have no weight."""
    values = np.random.default_rng(0).normal(size=100)
    expected = np.cumsum(values) / np.arange(1, 101)
    np.testing.assert_allclose(smoothed(values, 0.01), expected, rtol=0, atol=1e-6)


def test_parameters_are_an_exponential_mean_later():
    values = np.random.default_rng(1).normal(size=60)
    rate = 0.1
    expected = [values[:10].mean()]
    for value in values[10:]:
        expected.append((1 - rate) * expected[-1] + rate * value)
    np.testing.assert_allclose(smoothed(values, rate)[9:], expected, rtol=0, atol=1e-6)


def test_a_share_of_the_way():
    moved = tally_learners.moved({"w": jnp.array([1.0, 2.0])}, {"w": jnp.array([5.0, 0.0])}, 0.25)
    np.testing.assert_allclose(moved["w"], [2.0, 1.5])


def test_unreached_states_average_to_uniform():
    total = jnp.array([[0.0, 0.0, 0.0], [1.0, 3.0, 0.0]])
    legal = jnp.array([[True, False, True], [True, True, False]])
    np.testing.assert_allclose(self_play.averaged(total, legal), [[0.5, 0, 0.5], [0.25, 0.75, 0]])
