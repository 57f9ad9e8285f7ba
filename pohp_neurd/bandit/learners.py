"""Full-monitoring learners: told every arm's utility, they choose the next mixed policy.

The black box that Theorem 1's reduction is given (Morrill et al. 2022, Section 4). Each is (init, policy,
update); utilities should not be positive, as Hedge's guarantee needs.

Throughout the bandit rooms arms come first. Many runs at once are further axes: sums over arms then add whole
vectors of runs, several times as fast on a CPU as what `jax.vmap` would lay out.

What a learner promises is its regret bound, the g of Theorem 1. Along a run the bound adds up costs that the
estimates caused, and holds on every run. Ahead of it those costs are random; `bound` replaces them with what
they exceed only in the event of probability δ that Theorem 1's slack already pays for. docs/theorem1.md has
both derivations.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, directions, estimators, minimizers, types

Arms = minimizers.Arms


class Guarantee(NamedTuple):
    """A regret bound for utilities that are never positive."""

    cost: Callable[[Any, Arms, Arms], Float[Array, "*B"]]
    """(rounds before this one, probabilities, utilities) -> what this round adds to the run's bound."""
    pathwise: Callable[[np.ndarray, Int[np.ndarray, "C"], int], np.ndarray]
    """(costs added up [C, B], rounds played, arms) -> what no arm's regret under those utilities exceeds."""
    bound: Callable[[Float[np.ndarray, "T"], int, float, float], Float[np.ndarray, "T"]]
    """(explorations, arms, G, L) -> g after each round, for IX or CIX estimates of utilities in [−G, 0].

    L = log((arms + 1) / δ). Together with Theorem 1's slack it holds with probability 1 − δ."""


class Learner(NamedTuple):
    """A full-monitoring learner as pure functions, and what it promises."""

    init: Callable[..., Any]
    """The state for a number of arms, and of runs: `init(3)`, or `init(3, 2000)`."""
    policy: Callable[[Any], Arms]
    """The mixed policy π_t of the next round."""
    update: Callable[[Any, Arms], Any]
    """The state after a round that gave these utilities, one for every arm."""
    guarantee: Guarantee | None = None
    """The learner's regret bound, where one is known."""


class HedgeState(NamedTuple):
    """What Hedge remembers."""

    totals: Arms
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

    def current(state: HedgeState) -> Arms:
        alpha = jnp.asarray(schedule(state.rounds), state.totals.dtype)
        # Every arm is legal, so there is nothing to mask.
        return jax.nn.softmax(alpha * state.totals, axis=0)

    def update(state: HedgeState, utilities: Arms) -> HedgeState:
        return HedgeState(state.totals + utilities, state.rounds + 1)

    return Learner(init, current, update, _hedge_guarantee(schedule))


def _hedge_guarantee(step_size: types.Schedule) -> Guarantee:
    """Hedge's bound for step sizes α_t that never grow.

    Along a run, for every arm: Σ_t û_t(x) − û_t(π_t) ≤ log K / α_T + Σ_t (α_t / 2) Σ_x π_t(x) û_t(x)²
    (Lattimore and Szepesvári 2020, Eq. 11.13 and Exercise 28.13). Ahead of it:
    g = log K / α_T + (G² K / 2) Σ_t α_t + (G² / 4) max_t(α_t / η_t) L.
    """

    def cost(rounds: Any, probabilities: Arms, utilities: Arms) -> Float[Array, "*B"]:
        alpha = jnp.asarray(step_size(rounds), utilities.dtype)
        return alpha / 2 * jnp.sum(probabilities * utilities**2, axis=0)

    def pathwise(costs: np.ndarray, rounds: Int[np.ndarray, "C"], num_arms: int) -> np.ndarray:
        steps = evaluate(step_size, int(rounds[-1]))[rounds - 1]
        return np.log(num_arms) / steps.reshape(-1, *[1] * (costs.ndim - 1)) + costs

    def bound(
        explorations: Float[np.ndarray, "T"], num_arms: int, max_return: float, log_term: float
    ) -> Float[np.ndarray, "T"]:
        steps = evaluate(step_size, len(explorations))
        if np.any(np.diff(steps) > 0):
            raise ValueError("Hedge's bound needs step sizes that never grow from round to round.")
        # A division by an exploration of 0 is meant: without exploration there is no bound.
        with np.errstate(divide="ignore"):
            ratio = np.maximum.accumulate(steps / explorations)
        spread = max_return**2 * num_arms / 2 * np.cumsum(steps)
        return np.log(num_arms) / steps + spread + max_return**2 / 4 * ratio * log_term

    return Guarantee(cost, pathwise, bound)


def fixed_step_size(num_arms: int, max_return: float, horizon: int) -> float:
    """The step size that makes Hedge's g smallest at a horizon known ahead: α = √(2 log K / (K T)) / G."""
    _check_sizes(num_arms, max_return)
    checks.at_least("horizon", horizon)
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
    return _monitored(minimizers.regret_matching(), _regret_matching_guarantee())


def regret_matching_plus() -> Learner:
    """Regret matching+: negative regrets are forgotten at once (Tammelin et al. 2015)."""
    return _monitored(minimizers.regret_matching_plus(), _regret_matching_guarantee())


def predictive_regret_matching_plus() -> Learner:
    """Predictive regret matching+, with the last round as the prediction (Farina et al. 2021)."""
    return _monitored(minimizers.predictive_regret_matching_plus())


def optimistic_hedge(step_size: float) -> Learner:
    """Optimistic Hedge, with the last round as the prediction (Rakhlin and Sridharan 2013)."""
    return _monitored(minimizers.optimistic_hedge(step_size))


def _monitored(minimizer: minimizers.Minimizer, guarantee: Guarantee | None = None) -> Learner:
    """A minimiser that is told utilities."""

    def init(num_arms: int, *runs: int) -> Any:
        return minimizer.init(jnp.zeros((num_arms, *runs)))

    def update(state: Any, utilities: Arms) -> Any:
        received = jnp.sum(minimizer.policy(state) * utilities, axis=0, keepdims=True)
        return minimizer.observe(state, utilities - received)

    return Learner(init, minimizer.policy, update, guarantee)


def _regret_matching_guarantee() -> Guarantee:
    """The bound of regret matching, with or without +.

    Along a run, for every arm: Σ_t ρ̂_t(x) ≤ √(Σ_t ‖ρ̂_t‖²) with ρ̂_t(x) = û_t(x) − û_t(π_t) (Hart and
    Mas-Colell 2000; Tammelin et al. 2015). Ahead of it:
    g = G √((K − 1) T + K Σ_t 1 / η_t + L / (2 η_min²)).
    """

    def cost(rounds: Any, probabilities: Arms, utilities: Arms) -> Float[Array, "*B"]:
        del rounds
        received = jnp.sum(probabilities * utilities, axis=0, keepdims=True)
        return jnp.sum((utilities - received) ** 2, axis=0)

    def pathwise(costs: np.ndarray, rounds: Int[np.ndarray, "C"], num_arms: int) -> np.ndarray:
        del rounds, num_arms
        return np.sqrt(costs)

    def bound(
        explorations: Float[np.ndarray, "T"], num_arms: int, max_return: float, log_term: float
    ) -> Float[np.ndarray, "T"]:
        rounds = np.arange(1, len(explorations) + 1)
        with np.errstate(divide="ignore"):
            spread = (num_arms - 1) * rounds + num_arms * np.cumsum(1 / explorations)
            surprise = log_term / (2 * np.minimum.accumulate(explorations) ** 2)
        return max_return * np.sqrt(spread + surprise)

    return Guarantee(cost, pathwise, bound)


def _constant(value: float) -> types.Schedule:
    return lambda count: value


def evaluate(schedule: types.Schedule, horizon: int) -> Float[np.ndarray, "T"]:
    """A schedule's values before each of `horizon` rounds, float64 on the host."""
    with jax.enable_x64(True):
        values = np.asarray(schedule(np.arange(horizon, dtype=np.float64)), np.float64)
    return np.broadcast_to(values, (horizon,))


def pulled(action: types.ArrayLike, shape: tuple[int, ...]) -> Bool[Array, "A *B"]:
    """Which of the arms, the first axis of `shape`, is `action`: over many runs, faster than an index."""
    arms = jnp.arange(shape[0], dtype=jnp.int32).reshape(-1, *[1] * (len(shape) - 1))
    return jnp.broadcast_to(arms == action, shape)


def _check_sizes(num_arms: int, max_return: float) -> None:
    checks.at_least("num_arms", num_arms, 2)
    checks.positive("max_return", max_return)


# The black-box reduction.

ESTIMATORS: dict[str, Callable[..., Float[Array, ""]]] = {
    "importance": estimators.importance_weight,
    "ix": estimators.ix_weight,
    "cix": estimators.cix_weight,
}


class State(NamedTuple):
    """What must persist between rounds."""

    learner: Any
    rounds: Int[Array, ""]


class BanditLearner(NamedTuple):
    """A learner that sees nothing but the utility of the arm that it pulled."""

    init: Callable[..., State]
    """The state for a number of arms, and of runs: `init(3)`, or `init(3, 2000)`."""
    policy: Callable[[State], Arms]
    """The mixed policy π_t that the next arm must be drawn from."""
    estimate: Callable[[State, types.ArrayLike, types.ArrayLike], Arms]
    """û_t, every arm's utility as estimated from the pulled arm and its utility: numbers, or [1, B]."""
    update: Callable[[State, types.ArrayLike, types.ArrayLike], State]
    """The state after pulling an arm and getting its utility, which must not be positive."""
    learner: Learner
    """The full-monitoring learner inside."""
    schedule: types.Schedule
    """The exploration η of each round; 0 throughout for importance weights."""


def reduction(
    learner: Learner,
    estimator: str | Callable[..., Float[Array, ""]],
    schedule: float | types.Schedule = 0.0,
) -> BanditLearner:
    """`learner` as a bandit learner: each round it is fed û_t(x) = 1{x = X_t} u_t(X_t) · weight.

    `estimator` is "importance", "ix" or "cix", or a function such as `estimators.cix_weight` from the pulled
    arm's probability (and the exploration, if it takes a second argument) to the weight. `schedule` gives
    the exploration, constant or as a function of how many rounds were played.

    >>> bandit = reduction(hedge(0.1), "cix", directions.theorem1_exploration(1.0, 2))
    >>> bandit.estimate(bandit.init(2), 1, -1.0).tolist()
    [0.0, -1.0]
    """
    if isinstance(estimator, str):
        checks.one_of("estimator", estimator, tuple(ESTIMATORS))
        estimator = ESTIMATORS[estimator]
    weight: Callable[..., Float[Array, ""]] = estimator
    explores = len(inspect.signature(weight).parameters) > 1
    if not explores:
        explore = directions.constant(0.0)
    elif callable(schedule):
        explore = schedule
    else:
        explore = directions.constant(float(schedule))

    def init(num_arms: int, *runs: int) -> State:
        checks.at_least("num_arms", num_arms, 2)
        return State(learner.init(num_arms, *runs), jnp.zeros((), jnp.int32))

    def current(state: State) -> Arms:
        return learner.policy(state.learner)

    def estimate(state: State, action: types.ArrayLike, utility: types.ArrayLike) -> Arms:
        probabilities = current(state)
        taken = pulled(action, probabilities.shape)
        probability = jnp.sum(jnp.where(taken, probabilities, 0.0), axis=0, keepdims=True)
        exploration = jnp.asarray(explore(state.rounds), probabilities.dtype)
        # The weights are written for one decision; runs, if there are many, are mapped over.
        one = (lambda chance: weight(chance, exploration)) if explores else weight
        correction = jax.vmap(one)(probability.reshape(-1)).reshape(probability.shape)
        scaled = jnp.asarray(utility, probabilities.dtype) * correction
        return jnp.where(taken, scaled, 0.0)

    def update(state: State, action: types.ArrayLike, utility: types.ArrayLike) -> State:
        known = checks.known(utility)
        if known is not None and np.any(known > 0):
            raise ValueError(
                f"utilities must not be positive, but one is {known.max():g}: subtract the largest."
            )
        return State(learner.update(state.learner, estimate(state, action, utility)), state.rounds + 1)

    return BanditLearner(init, current, estimate, update, learner, explore)
