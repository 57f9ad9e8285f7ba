"""Estimates of every action that could have been sampled, for expectations and variances by enumeration."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(jax.jit, static_argnames=("function",))
def every_action(function, returns, probabilities, exploration, baseline=0.0):
    """`function`'s estimate for each action that could have been sampled: row A with probability π(A)."""

    def one(action, return_):
        return function(return_, action, probabilities, exploration, baseline=baseline)

    return jax.vmap(one)(jnp.arange(len(returns)), returns)


def exactly(function, returns, probabilities, exploration, baseline=0.0):
    """The same in float64, as numpy."""
    with jax.enable_x64(True):
        arguments = [jnp.asarray(x, jnp.float64) for x in (returns, probabilities, exploration, baseline)]
        rows = every_action(function, *arguments)
        assert rows.dtype == jnp.float64
        return np.asarray(rows)
