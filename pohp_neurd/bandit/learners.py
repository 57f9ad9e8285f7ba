"""Full-monitoring learners: told every arm's utility, they choose the next mixed policy.

The black box that Theorem 1's reduction is given (Morrill et al. 2022, Section 4). Each is (init, policy,
update); utilities should not be positive, as Hedge's guarantee needs.

Throughout the bandit rooms arms come first. Many runs at once are further axes: sums over arms then add whole
vectors of runs, several times as fast on a CPU as what `jax.vmap` would lay out.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import checks, types
from pohp_neurd.bandit import guarantees


class Learner(NamedTuple):
    """A full-monitoring learner as pure functions, and what it promises."""

    init: Callable[..., Any]
    """The state for a number of arms, and of runs: `init(3)`, or `init(3, 2000)`."""
    policy: Callable[[Any], Float[Array, "A *B"]]
    """The mixed policy π_t of the next round."""
    update: Callable[[Any, Float[Array, "A *B"]], Any]
    """The state after a round that gave these utilities, one for every arm."""
    guarantee: guarantees.Guarantee | None = None
    """The learner's regret bound, where one is known."""


class HedgeState(NamedTuple):
    """What Hedge remembers."""

    totals: Float[Array, "A *B"]
    """Every arm's utilities, added up."""
    rounds: Int[Array, ""]


def hedge(step_size: float | types.Schedule) -> Learner:
    """Hedge: π_t(x) ∝ exp(α_t Σ_{s<t} u_s(x)) (Freund and Schapire 1997), with a fixed or anytime α_t.

    The current step size multiplies all past utilities, not the latest alone: with step sizes that shrink
    only this form has no regret (Lattimore and Szepesvári 2020, Section 28.6).

    >>> learner = hedge(1.0)
    >>> state = learner.update(learner.init(2), jnp.array([0.0, -jnp.log(3.0)]))
    >>> [round(float(p), 4) for p in learner.policy(state)]
    [0.75, 0.25]
    """
    if callable(step_size):
        schedule = step_size
    else:
        checks.positive("step_size", step_size)
        schedule = _constant(float(step_size))

    def init(num_arms: int, *runs: int) -> HedgeState:
        return HedgeState(jnp.zeros((num_arms, *runs)), jnp.zeros((), jnp.int32))

    def current(state: HedgeState) -> Float[Array, "A *B"]:
        alpha = jnp.asarray(schedule(state.rounds), state.totals.dtype)
        # Every arm is legal, so there is nothing to mask.
        return jax.nn.softmax(alpha * state.totals, axis=0)

    def update(state: HedgeState, utilities: Float[Array, "A *B"]) -> HedgeState:
        return HedgeState(state.totals + utilities, state.rounds + 1)

    return Learner(init, current, update, guarantees.hedge(schedule))


def fixed_step_size(num_arms: int, max_return: float, horizon: int) -> float:
    """The step size that makes Hedge's g smallest at a horizon known ahead: α = √(2 log K / (K T)) / G."""
    _check_sizes(num_arms, max_return)
    if horizon < 1:
        raise ValueError(f"horizon must be at least 1, but is {horizon}.")
    return float(np.sqrt(2 * np.log(num_arms) / (num_arms * horizon)) / max_return)


def anytime_step_size(num_arms: int, max_return: float) -> types.Schedule:
    """Step sizes for any horizon: α_t = √(log K / (K t)) / G at round t, from 1."""
    _check_sizes(num_arms, max_return)
    scale = float(np.sqrt(np.log(num_arms) / num_arms) / max_return)
    return lambda count: scale / jnp.sqrt(jnp.asarray(count, float) + 1.0)


def regret_matching() -> Learner:
    """Regret matching: π_t(x) ∝ max(0, regret for not having played x) (Hart and Mas-Colell 2000).

    >>> learner = regret_matching()
    >>> state = learner.update(learner.init(3), jnp.array([0.0, -1.0, -2.0]))
    >>> learner.policy(state).tolist()
    [1.0, 0.0, 0.0]
    """
    return _regret_matching(lambda regrets: regrets)


def regret_matching_plus() -> Learner:
    """Regret matching+: negative regrets are forgotten at once (Tammelin et al. 2015)."""
    return _regret_matching(lambda regrets: jnp.maximum(regrets, 0.0))


def _regret_matching(kept: Callable[[Float[Array, "A *B"]], Float[Array, "A *B"]]) -> Learner:
    def init(num_arms: int, *runs: int) -> Float[Array, "A *B"]:
        return jnp.zeros((num_arms, *runs))

    def current(regrets: Float[Array, "A *B"]) -> Float[Array, "A *B"]:
        positive = jnp.maximum(regrets, 0.0)
        total = jnp.sum(positive, axis=0, keepdims=True)
        uniform = jnp.full(regrets.shape, 1 / regrets.shape[0], regrets.dtype)
        return jnp.where(total > 0, positive / jnp.where(total > 0, total, 1.0), uniform)

    def update(regrets: Float[Array, "A *B"], utilities: Float[Array, "A *B"]) -> Float[Array, "A *B"]:
        received = jnp.sum(current(regrets) * utilities, axis=0, keepdims=True)
        return kept(regrets + utilities - received)

    return Learner(init, current, update, guarantees.regret_matching())


def _constant(value: float) -> types.Schedule:
    return lambda count: value


def _check_sizes(num_arms: int, max_return: float) -> None:
    if num_arms < 2:
        raise ValueError(f"num_arms must be at least 2, but is {num_arms}.")
    checks.positive("max_return", max_return)
