"""What followed an action: Monte Carlo return-to-go, and truncated λ-returns with a critic.

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


def monte_carlo(
    rewards: Float[types.ArrayLike, "T"], continuations: Float[types.ArrayLike, "T"]
) -> Float[Array, "T"]:
    """Return-to-go after every decision: G_t = r_{t+1} + γ_{t+1} G_{t+1}, and 0 beyond the last.

    >>> monte_carlo(jnp.array([0.0, -1.0, -2.0]), jnp.array([1.0, 0.5, 0.0])).tolist()
    [-2.0, -2.0, -2.0]
    """
    rewards = jnp.asarray(rewards)
    zeros = jnp.zeros_like(rewards)
    return lambda_returns(rewards, continuations, zeros, lambda_=1.0, bootstrap=0.0)


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
    discount the value at the cut alone.
    """
    rewards = _checked(rewards, continuations, next_values, lambda_)
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


def truncated_lambda_returns(
    rewards: Float[types.ArrayLike, "T"],
    continuations: Float[types.ArrayLike, "T"],
    next_values: Float[types.ArrayLike, "T"],
    *,
    steps: int,
    lambda_: types.Scalar,
    bootstrap: types.Scalar = 1.0,
) -> Float[Array, "T"]:
    """The λ-return after every decision, each cut off after its own `steps` steps (or at the end).

    The paper's critic target is `steps=32, lambda_=0.9, bootstrap=0.9`. `steps=1` or `lambda_=0` is
    one-step TD; `lambda_=1` is the n-step return.
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, but is {steps}.")
    rewards = _checked(rewards, continuations, next_values, lambda_)
    continuations = jnp.asarray(continuations)
    length = rewards.shape[0]
    values = jnp.asarray(next_values) * bootstrap
    # Row t of every window array holds decision t and the steps - 1 after it; what lies beyond the
    # end of the trajectory is skipped, so that the last value stands for all that follows.
    windows = jnp.arange(length)[:, None] + jnp.arange(steps)[None, :]
    inside = windows < length
    windows = jnp.minimum(windows, length - 1)
    cut = values[windows[:, -1]]

    def backward(
        following: Float[Array, "T"], step: tuple[Array, Array, Array, Array]
    ) -> tuple[Float[Array, "T"], None]:
        reward, continuation, value, is_inside = step
        mixed = (1.0 - lambda_) * value + lambda_ * following
        return jnp.where(is_inside, reward + continuation * mixed, following), None

    columns = tuple(array[windows].T for array in (rewards, continuations, values))
    return jax.lax.scan(backward, cut, (*columns, inside.T), reverse=True)[0]


def _checked(
    rewards: Float[types.ArrayLike, "T"],
    continuations: Float[types.ArrayLike, "T"],
    next_values: Float[types.ArrayLike, "T"],
    lambda_: types.Scalar,
) -> Float[Array, "T"]:
    """`rewards` as an array, once all that goes with them fits."""
    rewards = jnp.asarray(rewards)
    checks.shape("rewards", rewards, (None,))
    if not rewards.shape[0]:
        raise ValueError("a return needs at least one reward, but there is none.")
    checks.shape("continuations", continuations, rewards.shape)
    checks.in_unit_interval("continuations", continuations)
    checks.shape("next_values", next_values, rewards.shape)
    checks.in_unit_interval("lambda_", lambda_)
    return rewards
