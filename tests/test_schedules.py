"""Schedules against their formulas."""

import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import directions


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_decaying_is_its_formula(power):
    """At update t: value / (1 + t / start)^power."""
    counts = np.array([0, 1, 7, 100, 30_000])
    found = directions.decaying(0.8, power=power, start=10.0)(jnp.asarray(counts))
    np.testing.assert_allclose(found, 0.8 / (1 + counts / 10.0) ** power, rtol=1e-6)


def test_decaying_is_as_precise_as_its_value():
    assert directions.decaying(jnp.float32(0.8), power=0.5, start=10.0)(jnp.asarray(3)).dtype == jnp.float32
