"""Estimates of action values and advantages from one sampled action: importance weights, IX, CIX.

Pipeline: return -> **estimate** -> direction. Equations of Morrill et al. (2022): Section 2.2 (implicit
exploration, Kocák et al. 2014) and Section 4, Definition 1 (capped implicit exploration).

Returns must not be positive: then every estimate is at least what it estimates in expectation, and
that optimism is what explores. In all functions `probability` is the one at which the action was drawn.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from pohp_neurd import checks, types


def importance_weight(probability: types.Scalar) -> Float[Array, ""]:
    """The importance correction 1 / π(A): unbiased, with unbounded variance.

    >>> float(importance_weight(0.25))
    4.0
    """
    return _reciprocal(_real(probability))


def ix_weight(probability: types.Scalar, exploration: types.Scalar) -> Float[Array, ""]:
    """The implicit-exploration correction 1 / (π(A) + η).

    >>> float(ix_weight(0.25, 0.25)), float(ix_weight(1.0, 1.0))
    (2.0, 0.5)
    """
    checks.in_unit_interval("exploration", exploration)
    return _reciprocal(_corrected(probability, exploration))


def cix_weight(probability: types.Scalar, exploration: types.Scalar) -> Float[Array, ""]:
    """The capped correction 1 / β with β = min(1, π(A) + η): IX that never shrinks a return.

    >>> float(cix_weight(0.25, 0.25)), float(cix_weight(0.75, 0.5))
    (2.0, 1.0)
    """
    checks.in_unit_interval("exploration", exploration)
    return _reciprocal(jnp.minimum(_corrected(probability, exploration), 1.0))


def action_values(
    return_: types.Scalar,
    action: types.Action,
    probabilities: types.Probabilities,
    exploration: types.Scalar,
    *,
    baseline: types.Scalar = 0.0,
) -> Float[Array, "A"]:
    """CIX estimate of every action's value: q̂(a) = V + 1{a = A} (G − V) / β, Definition 1 at V = 0.

    E[q̂(a)] = V + π(a) (q(a) − V) / β(a): unbiased at exploration 0, never below q(a) while G ≤ V.

    >>> action_values(-1.0, 0, jnp.array([0.25, 0.75]), 0.25).tolist()
    [-2.0, 0.0]
    """
    probabilities = _given(probabilities, action)
    checks.shape("return_", return_, ())
    weight = cix_weight(probabilities[action], exploration)
    taken = jax.nn.one_hot(action, probabilities.shape[0], dtype=bool)
    return baseline + jnp.where(taken, (return_ - baseline) * weight, 0.0)


def advantages(
    return_: types.Scalar,
    action: types.Action,
    probabilities: types.Probabilities,
    exploration: types.Scalar,
    *,
    baseline: types.Scalar = 0.0,
    legal: types.Mask | None = None,
) -> Float[Array, "A"]:
    """CIX estimate of every action's advantage: ρ̂(a) = (G − V) / β · (1{a = A} − π(A)), Definition 1.

    The probability of the SAMPLED action is taken from every indicator, for the value estimate that
    belongs to q̂ is v̂ = Σ_a π(a) q̂(a) = V + π(A) (G − V) / β. Illegal actions get 0; without `legal`,
    all actions are legal.

    >>> advantages(-1.0, 0, jnp.array([0.25, 0.75]), 0.25).tolist()
    [-1.5, 0.5]
    """
    probabilities = _given(probabilities, action)
    legal = jnp.ones(probabilities.shape, bool) if legal is None else legal
    checks.shape("legal", legal, probabilities.shape)
    probability = probabilities[action]
    return sampled_advantages(return_, action, probability, legal, exploration, baseline=baseline)


def sampled_advantages(
    return_: types.Scalar,
    action: types.Action,
    probability: types.Scalar,
    legal: types.Mask,
    exploration: types.Scalar,
    *,
    baseline: types.Scalar = 0.0,
    weight: Callable[..., Float[Array, ""]] = cix_weight,
) -> Float[Array, "A"]:
    """`advantages` from the sampled action's probability alone, which is all that they depend on.

    With `ix_weight` as the `weight` they are IX's.

    >>> sampled_advantages(-1.0, 0, 0.25, jnp.array([True, True, False]), 0.25).tolist()
    [-1.5, 0.5, 0.0]
    """
    checks.shape("legal", legal, (None,))
    checks.shape("return_", return_, ())
    legal = jnp.asarray(legal)
    checks.index("action", action, legal.shape[0])
    probability = _real(probability)
    scale = (return_ - baseline) * weight(probability, exploration)
    taken = jax.nn.one_hot(action, legal.shape[0], dtype=bool)
    return jnp.where(legal, jnp.where(taken, scale * (1.0 - probability), -scale * probability), 0.0)


def _given(probabilities: types.Probabilities, action: types.Action) -> Float[Array, "A"]:
    """A user's `probabilities` as an array, once it is clear that they are some and have the action."""
    checks.shape("probabilities", probabilities, (None,))
    checks.distribution("probabilities", probabilities)
    array = _real(probabilities)
    checks.index("action", action, array.shape[0])
    return array


def _real(value: Any) -> Array:
    """`value` as an array of its own float type; a 0 or 1 that was written without a point is a real too."""
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def _corrected(probability: types.Scalar, exploration: types.Scalar) -> Float[Array, ""]:
    probability = _real(probability)
    return probability + jnp.asarray(exploration, dtype=probability.dtype)


def _reciprocal(denominator: Float[Array, ""]) -> Float[Array, ""]:
    # A sampled action has a positive probability. 0 comes from padding: it weighs nothing, for an inf
    # would become NaN against the padding's zero weight. The floor leaves a return of 1e7 finite.
    limits = jnp.finfo(denominator.dtype)
    return jnp.where(denominator > 0, 1.0 / jnp.maximum(denominator, limits.tiny / limits.eps), 0.0)
