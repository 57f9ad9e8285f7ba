"""Regret minimisers under full monitoring, for bandits and for every information state of a game alike.

A minimiser is told each round's regrets ρ(x) = u(x) − u(π), one for every arm, and chooses the next mixed
policy. Arms come first, and further axes are runs: the states of one width in a game, or independent bandits.
Where runs have fewer arms than there are rows, `legal` marks their own; regrets are 0 elsewhere.

Hedge with full monitoring is NeuRD in games (`directions`) and `bandit.learners.hedge` in bandits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from pohp_neurd import checks, types

Arms = Float[Array, "A *B"]
"""A number for every arm, or for every arm of many runs."""

Legal = Bool[Array, "A *B"] | None
"""Which arms there are; None for all."""


class Minimizer(NamedTuple):
    """A regret minimiser as pure functions."""

    init: Callable[[Any], Any]
    """(zeros, one for every arm) -> the state before the first round."""
    policy: Callable[..., Arms]
    """(state, legal) -> the mixed policy of the next round."""
    observe: Callable[[Any, Arms], Any]
    """(state, regrets of the round) -> the next state."""


class Predictive(NamedTuple):
    """Sums, and the last round's regrets, as the prediction of the next."""

    sums: Arms
    last: Arms


def minimizer(name: str, step_size: float) -> Minimizer:
    """The minimiser that flags call by one of `checks.MINIMIZERS`; only Hedge looks at `step_size`."""
    checks.one_of("learner", name, tuple(checks.MINIMIZERS))
    if name == "optimistic_hedge":
        return optimistic_hedge(step_size)
    if name == "predictive_rm_plus":
        return predictive_regret_matching_plus()
    return regret_matching_plus() if name == "rm_plus" else regret_matching()


def regret_matching() -> Minimizer:
    """Regret matching: π(x) ∝ max(0, Σ ρ(x)) (Hart and Mas-Colell 2000). In games it is CFR."""
    return Minimizer(_same, matched, jnp.add)


def regret_matching_plus() -> Minimizer:
    """Regret matching+: negative sums are forgotten at once (Tammelin et al. 2015). In games it is CFR+."""
    return Minimizer(_same, matched, _plus)


def predictive_regret_matching_plus() -> Minimizer:
    """Predictive regret matching+: π ∝ max(0, Q + ρ_last) (Farina et al. 2021). In games it is PCFR+."""

    def policy(state: Predictive, legal: Legal = None) -> Arms:
        return matched(state.sums + state.last, legal)

    def observe(state: Predictive, regrets: Arms) -> Predictive:
        return Predictive(_plus(state.sums, regrets), regrets)

    return Minimizer(_predictive, policy, observe)


def optimistic_hedge(step_size: float) -> Minimizer:
    """Optimistic Hedge: π(x) ∝ exp(α (Σ ρ(x) + ρ_last(x))) (Rakhlin and Sridharan 2013)."""
    checks.positive("step_size", step_size)

    def policy(state: Predictive, legal: Legal = None) -> Arms:
        return jax.nn.softmax(step_size * (state.sums + state.last), axis=0, where=legal)

    def observe(state: Predictive, regrets: Arms) -> Predictive:
        return Predictive(state.sums + regrets, regrets)

    return Minimizer(_predictive, policy, observe)


def matched(regrets: Arms, legal: Legal = None) -> Arms:
    """The policy in proportion to the positive part of `regrets`; uniform where there is none."""
    positive = jnp.maximum(regrets, 0.0)
    total = jnp.sum(positive, axis=0, keepdims=True)
    if legal is None:
        uniform = jnp.full(regrets.shape, 1 / regrets.shape[0], regrets.dtype)
    else:
        allowed = legal.astype(regrets.dtype)
        uniform = allowed / jnp.sum(allowed, axis=0, keepdims=True)
    return jnp.where(total > 0, positive / jnp.where(total > 0, total, 1.0), uniform)


def _plus(sums: Arms, regrets: Arms) -> Arms:
    return jnp.maximum(sums + regrets, 0.0)


def _same(zeros: types.ArrayLike) -> types.ArrayLike:
    return zeros


def _predictive(zeros: types.ArrayLike) -> Predictive:
    return Predictive(zeros, zeros)
