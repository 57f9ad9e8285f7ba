"""What followed an action: λ-returns with a critic, Monte Carlo returns among them.

Pipeline: trajectory -> **return** -> estimate. Conventions of Morrill et al. (2022), Section 2.1: index t
is a decision; `rewards[t]` is the reward at the NEXT active history and `continuations[t]` the probability
(or the sampled 0 or 1) that the process goes on from there. So a terminal reward stands at the last
decision, with continuation 0.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from pohp_neurd import checks, types


def lambda_returns(
    rewards: Float[types.ArrayLike, "T"],
    continuations: Float[types.ArrayLike, "T"],
    next_values: Float[types.ArrayLike, "T"],
    *,
    lambda_: types.Scalar,
    bootstrap: types.Scalar | Float[types.ArrayLike, "T"] = 1.0,
) -> Float[Array, "T"]:
    """TD(λ) return after every decision, cut off after the last one.

    G_t = r_{t+1} + γ_{t+1} ((1 − λ) b_t V_{t+1} + λ G_{t+1}),  with G_T := b_{T−1} V_T,

    where V_{t+1} = `next_values[t]` is the critic's value at the next active history and b = `bootstrap`
    discounts values, never rewards. An array of factors says it step by step: ones and a last 0.9
    discount the value at the cut alone. The paper's critic target is the first of a window of 32 rewards, at
    λ = 0.9 and b = 0.9. λ = 1 is the n-step return, without values the Monte Carlo return; λ = 0 is TD(0).

    >>> zeros = jnp.zeros(3)
    >>> lambda_returns(jnp.array([0.0, -1.0, -2.0]), jnp.array([1.0, 0.5, 0.0]), zeros, lambda_=1.0).tolist()
    [-2.0, -2.0, -2.0]

    Args:
      rewards: r_{t+1}.
      continuations: γ_{t+1}.
      next_values: V_{t+1}.
      lambda_: λ.
      bootstrap: b.

    Returns:
      G_t.
    """
    rewards = jnp.asarray(rewards)
    checks.shape("rewards", rewards, (None,))
    if not rewards.shape[0]:
        raise ValueError("a return needs at least one reward, but there is none.")
    checks.shape("continuations", continuations, rewards.shape)
    checks.in_unit_interval("continuations", continuations)
    checks.shape("next_values", next_values, rewards.shape)
    checks.in_unit_interval("lambda_", lambda_)
    factors = jnp.asarray(bootstrap, dtype=rewards.dtype)
    checks.shape("bootstrap", factors, rewards.shape if factors.ndim else ())
    values = jnp.asarray(next_values) * jnp.broadcast_to(factors, rewards.shape)

    def backward(
        following: Float[Array, ""],
        step: tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]],
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        reward, continuation, value = step
        mixed = (1.0 - lambda_) * value + lambda_ * following
        return_ = reward + continuation * mixed
        return return_, return_

    steps = (rewards, jnp.asarray(continuations), values)
    return jax.lax.scan(backward, values[-1], steps, reverse=True)[1]
