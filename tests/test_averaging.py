"""Averages of parameters."""

import jax
import jax.numpy as jnp
import numpy as np

from pohp_neurd import averaging


def test_a_smoothed_network_is_a_plain_mean_until_the_rate_takes_over():
    """Where it began has no weight after the first update, and each of 1 / rate updates has the same."""
    rate, values = 0.25, np.array([3.0, -1.0, 4.0, 10.0, 2.0, -6.0], np.float32)
    state = averaging.Smoothed({"w": jnp.full(2, 100.0)}, jnp.zeros((), jnp.int32))
    smooth = jax.jit(averaging.smooth, static_argnums=2)
    expected = 0.0
    for count, value in enumerate(values, start=1):
        state = smooth(state, {"w": jnp.full(2, value)}, rate)
        expected = values[:count].mean() if count <= 4 else expected + rate * (value - expected)
        np.testing.assert_allclose(state.parameters["w"], expected, rtol=1e-6)
        assert int(state.updates) == count
