"""Average policies: what self-play brings to an equilibrium, where the current policy may go in circles.

In a table the average is exact, in sequence form: over time, each state's policy is weighted with the
probability that its own agent would come to it (Hoda et al. 2010; Zinkevich et al. 2007).
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float


def average(total: Float[Array, "S A"], legal: Bool[Array, "S A"]) -> Float[Array, "S A"]:
    """The average policy; uniform at states that were never reached."""
    mass = jnp.sum(total, axis=1, keepdims=True)
    allowed = legal.astype(total.dtype)
    uniform = allowed / jnp.maximum(jnp.sum(allowed, axis=1, keepdims=True), 1.0)
    return jnp.where(mass > 0, total / jnp.where(mass > 0, mass, 1.0), uniform)
