"""Draws from a distribution in fixed point, so that what is rare comes as rarely as it should.

Pipeline: probabilities -> **action**. Near 1 the numbers of float32 are 2⁻²⁴ apart, uniform ones and
cumulative probabilities alike: an action of probability 10⁻⁹ would come 60 times too often or never, and an
estimate that divides by the probability would be wrong by as much. Here both have 48 bits, in two whole
numbers of 24.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import types

BITS = 24
ONE = 1 << BITS


class Fixed(NamedTuple):
    """The numbers (high + low / 2²⁴) / 2²⁴."""

    high: Int[Array, "..."]
    low: Int[Array, "..."]
    """From 0 to 2²⁴ − 1."""


def uniform(key: types.Key, shape: tuple[int, ...] = ()) -> Fixed:
    """Uniform numbers in [0, 1)."""
    return Fixed(*digits(key, (2, *shape)))


def digits(key: types.Key, shape: tuple[int, ...]) -> Int[Array, "..."]:
    """Uniform whole numbers below 2²⁴: one half of a Fixed."""
    return (jax.random.bits(key, shape, jnp.uint32) >> jnp.uint32(32 - BITS)).astype(jnp.int32)


def fixed(values: Float[types.ArrayLike, "..."]) -> Fixed:
    """Numbers from 0 to 1, rounded down to multiples of 2⁻⁴⁸, which many floats are already."""
    scaled = values * ONE
    xp = np if isinstance(values, np.ndarray) else jnp
    high = xp.floor(scaled)
    low = xp.floor((scaled - high) * ONE)
    return Fixed(jnp.asarray(high, jnp.int32), jnp.asarray(low, jnp.int32))


def thresholds(probabilities: Float[types.ArrayLike, "..."], axis: int = -1) -> Fixed:
    """Cumulative probabilities along `axis`: the first one above a uniform number tells what is drawn.

    Each interval is as long as its probability, rounded down to a multiple of 2⁻⁴⁸; one of probability 0 is
    empty. What rounding leaves open up to 1 goes to the likeliest outcome, never to a rare one.
    """
    probabilities = jnp.asarray(probabilities)
    axis %= probabilities.ndim
    summed: Fixed = jax.lax.associative_scan(_add, fixed(probabilities), axis=axis)
    total = jax.tree.map(lambda part: jax.lax.slice_in_dim(part, -1, None, axis=axis), summed)
    filled = _add(summed, Fixed(ONE - total.high, -total.low))
    likeliest = jnp.argmax(probabilities, axis=axis, keepdims=True).astype(jnp.int32)
    after = jax.lax.broadcasted_iota(jnp.int32, probabilities.shape, axis) >= likeliest
    return jax.tree.map(lambda new, old: jnp.where(after, new, old), filled, summed)


def choose(probabilities: Float[types.ArrayLike, "... A"], uniform: Fixed) -> Int[Array, "..."]:
    """The outcome that each uniform number picks; never one of probability zero."""
    number = jax.tree.map(lambda half: half[..., None], uniform)
    return jnp.sum(reached(thresholds(probabilities), number), axis=-1).astype(jnp.int32)


def reached(thresholds: Fixed, uniform: Fixed) -> Bool[Array, "..."]:
    """Whether a uniform number has reached a threshold."""
    equal = thresholds.high == uniform.high
    return (thresholds.high < uniform.high) | (equal & (thresholds.low <= uniform.low))


def _add(one: Fixed, other: Fixed) -> Fixed:
    low = one.low + other.low
    return Fixed(one.high + other.high + (low >> BITS), low & (ONE - 1))
