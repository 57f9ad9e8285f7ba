"""Decisions at random, for tests of what learns from them."""

import jax.numpy as jnp
import numpy as np

from pohp_neurd import learners


def batch(seed=0, size=6, num_states=3, num_actions=4, features=None, dtype=jnp.float32):
    """Decisions at random, with illegal actions and one of weight 0."""
    rng = np.random.default_rng(seed)
    legal = rng.random((size, num_actions)) < 0.6
    action = rng.integers(0, num_actions, size)
    legal[np.arange(size), action] = True
    weight = rng.random(size)
    weight[-1] = 0.0 if size > 1 else weight[-1]
    state = rng.normal(size=(size, features)) if features else rng.integers(0, num_states, size)
    return learners.Decision(
        agent_state=jnp.asarray(state, dtype if features else jnp.int32),
        legal=jnp.asarray(legal),
        action=jnp.asarray(action, jnp.int32),
        probability=jnp.asarray(rng.uniform(0.05, 1.0, size), dtype),
        return_=jnp.asarray(-rng.random(size) * 2, dtype),
        baseline=jnp.asarray(-rng.random(size), dtype),
        weight=jnp.asarray(weight, dtype),
        target=jnp.asarray(-rng.random(size) * 2, dtype),
    )
