"""Uniform numbers for thousands of runs at once: the bits of JAX's threefry, unrolled.

On a CPU `jax.random.uniform` loops over the cipher's rounds and hashes once for each number; it would take
most of a simulation's time. Unrolled, with both words of each hash used, the same cipher fuses into the
round's own loop. The counter is (place, round), so no key has to be split or folded along the way.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int, UInt32

from pohp_neurd import draws, types

# Threefry-2x32-20 (Salmon et al. 2011): rotations of the rounds, and the key schedule's constant.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


class Numbers(NamedTuple):
    """The uniform numbers of one round."""

    action: draws.Fixed
    """To choose an arm by, [1, B]: fine enough for a rare one."""
    problem: Float[Array, "U B"]
    """In [0, 1), multiples of 2^-23 in float32 and of 2^-32 in float64."""


def uniforms(key: types.Key, round_: types.Action, count: int, num_runs: int) -> Numbers:
    """One number for each run to act by and `count` for its problem: of key, round and sizes alone."""
    bits = _bits(key, round_, 1 + count, num_runs)
    # Rounds stay below 2^31, so that this counter is no other's.
    finer = _bits(key, jnp.asarray(round_).astype(jnp.uint32) | jnp.uint32(1 << 31), 1, num_runs)
    halves = (half >> jnp.uint32(32 - draws.BITS) for half in (bits[:1], finer))
    return Numbers(draws.Fixed(*(half.astype(jnp.int32) for half in halves)), _real(bits[1:]))


def _real(bits: UInt32[Array, "U B"]) -> Float[Array, "U B"]:
    dtype = jnp.zeros(()).dtype
    if dtype == jnp.float32:
        # The top 23 bits as the mantissa of a number in [1, 2).
        mantissa = (bits >> jnp.uint32(9)) | jnp.uint32(0x3F800000)
        return jax.lax.bitcast_convert_type(mantissa, jnp.float32) - 1.0
    return bits.astype(dtype) * 2.0**-32


def _bits(key: types.Key, round_: Any, count: int, num_runs: int) -> UInt32[Array, "U B"]:
    words = _key_words(key)
    size = count * num_runs
    places = jnp.arange((size + 1) // 2, dtype=jnp.uint32)
    rounds = jnp.broadcast_to(jnp.asarray(round_).astype(jnp.uint32), places.shape)
    return jnp.concatenate(threefry(words, places, rounds))[:size].reshape(count, num_runs)


def threefry(
    key: UInt32[Array, "2"], first: UInt32[Array, "H"], second: UInt32[Array, "H"]
) -> tuple[UInt32[Array, "H"], UInt32[Array, "H"]]:
    """The two output words of Threefry-2x32 with 20 rounds, for each pair of counter words."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    x, y = first + schedule[0], second + schedule[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << jnp.uint32(rotation)) | (y >> jnp.uint32(32 - rotation))) ^ x
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + jnp.uint32(group + 1)
    return x, y


def choose(probabilities: Float[Array, "A *B"], uniform: draws.Fixed) -> Int[Array, "1 *B"]:
    """The arm that a uniform number [1, *B] picks, by the inverse of the cumulative distribution."""
    passed = draws.reached(draws.thresholds(probabilities, axis=0), uniform)
    return jnp.sum(passed, axis=0, keepdims=True).astype(jnp.int32)


def pulled(action: types.ArrayLike, shape: tuple[int, ...]) -> Bool[Array, "A *B"]:
    """Which of the arms, the first axis of `shape`, is `action`: over many runs, faster than an index."""
    arms = jnp.arange(shape[0], dtype=jnp.int32).reshape(-1, *[1] * (len(shape) - 1))
    return jnp.broadcast_to(arms == action, shape)


def _key_words(key: types.Key) -> UInt32[Array, "2"]:
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.key_data(key)
    if key.shape != (2,):
        raise ValueError("the simulation draws with threefry: use a key of jax.random.key(seed).")
    return key
