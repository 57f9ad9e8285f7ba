"""Regret: what was realised, the parts that the proof of Theorem 1 splits it into, and what bounds them.

Theorem 1 of Morrill et al. (2022): with probability 1 − δ, for all arms x at once,
ρ^{1:T}(x) ≤ g + h, with the learner's own full-monitoring bound g and the slack h of the estimates.
docs/theorem1.md has the proof in this notation. Host arrays, float64.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from scipy import special

from pohp_neurd import checks, types
from pohp_neurd.bandit import learners, simulation

Explorations = Sequence[float] | np.ndarray | jax.Array | float | types.Schedule
"""η of every round: an array, one number for all, or a schedule."""


def regrets(totals: simulation.Totals) -> Float[np.ndarray, "... A B"]:
    """The realised regret for not having pulled each arm throughout: ρ^{1:t}(x) = u^{1:t}(x) − u^{1:t}(X)."""
    return np.asarray(totals.utilities) - _over_arms(totals.received, totals)


def worst_regret(totals: simulation.Totals) -> Float[np.ndarray, "... B"]:
    """The regret against the best arm in hindsight, max_x ρ^{1:t}(x)."""
    return regrets(totals).max(axis=_arms(totals))


class Decomposition(NamedTuple):
    """The three parts of the proof of Theorem 1, which add up to the regret."""

    full_monitoring: Float[np.ndarray, "... A B"]
    """û^{1:t}(x) − û^{1:t}(π), the learner's regret under its own estimates."""
    arm_error: Float[np.ndarray, "... A B"]
    """u^{1:t}(x) − û^{1:t}(x), how far each arm is underestimated."""
    play_error: Float[np.ndarray, "... B"]
    """û^{1:t}(π) − u^{1:t}(X), how far the estimates flatter what was played."""


def decomposition(totals: simulation.Totals) -> Decomposition:
    """The regret's three parts: ρ^{1:t}(x) = full_monitoring(x) + arm_error(x) + play_error."""
    if totals.parts is None:
        raise ValueError("these totals have no parts: simulate with decompose=True.")
    estimates, expected = np.asarray(totals.parts.estimates), np.asarray(totals.parts.expected)
    return Decomposition(
        full_monitoring=estimates - _over_arms(expected, totals),
        arm_error=np.asarray(totals.utilities) - estimates,
        play_error=expected - np.asarray(totals.received),
    )


def theorem1_slack(
    horizon: int,
    num_arms: int,
    max_return: float,
    delta: float,
    explorations: Explorations | None = None,
) -> float:
    """Theorem 1's slack after `horizon` rounds: h = G K Σ_t η_t + (G / (2 η_min)) L + (G / 2) L.

    L = log((K + 1) / δ). `explorations` are η_1, …, η_T in (0, 1], or one number for all rounds, or a
    schedule. Without them: the paper's schedule at its best ξ, in closed form.

    >>> round(theorem1_slack(10_000, 5, 1.0, 0.05), 1)
    980.9
    >>> round(theorem1_slack(4, 2, 1.0, 0.05, [0.5, 0.5, 0.5, 0.5]), 3)
    10.142
    """
    if explorations is None:
        return theorem1_slack_closed_form(horizon, num_arms, max_return, delta)
    return float(slack_curve(horizon, num_arms, max_return, delta, explorations)[-1])


def slack_curve(
    horizon: int,
    num_arms: int,
    max_return: float,
    delta: float,
    explorations: Explorations,
) -> Float[np.ndarray, "T"]:
    """`theorem1_slack` at every horizon from 1 to `horizon`; infinite from where the exploration is 0."""
    log_term = _log_term(horizon, num_arms, max_return, delta)
    values = exploration_values(horizon, explorations)
    with np.errstate(divide="ignore"):
        smallest = 1 / (2 * np.minimum.accumulate(values))
    return max_return * (num_arms * np.cumsum(values) + (smallest + 0.5) * log_term)


def theorem1_slack_closed_form(
    horizon: int, num_arms: int, max_return: float, delta: float, xi: float | None = None
) -> float:
    """An upper bound on the slack for η_t = ξ / √(K t): (2ξ + L / (2ξ)) G √(K T) + G L / 2.

    By default at `best_xi`. It needs η_1 ≤ 1, that is ξ ≤ √K.

    >>> round(theorem1_slack_closed_form(1_000_000, 10, 1.0, 0.05))
    14691
    """
    log_term = _log_term(horizon, num_arms, max_return, delta)
    xi = best_xi(num_arms, delta) if xi is None else xi
    checks.positive("xi", xi)
    if xi > np.sqrt(num_arms):
        raise ValueError(
            f"xi must be at most √{num_arms} = {np.sqrt(num_arms):.6g}, or the first exploration exceeds 1, "
            f"but is {xi:g}."
        )
    rate = 2 * xi + log_term / (2 * xi)
    return float(max_return * (rate * np.sqrt(num_arms * horizon) + log_term / 2))


def best_xi(num_arms: int, delta: float) -> float:
    """The ξ that makes the closed form smallest: √L / 2, or √K where that would let η_1 exceed 1.

    >>> round(best_xi(5, 0.05), 4)
    1.094
    """
    log_term = _log_term(1, num_arms, 1.0, delta)
    return float(min(np.sqrt(log_term) / 2, np.sqrt(num_arms)))


def exploration_values(horizon: int, explorations: Explorations) -> Float[np.ndarray, "T"]:
    """η_1, …, η_T as an array, from an array, one number, or a schedule."""
    if callable(explorations):
        values = learners.evaluate(explorations, horizon)
    else:
        values = np.asarray(explorations, np.float64)
        if values.ndim:
            checks.shape("explorations", values, (horizon,))
        values = np.broadcast_to(values, (horizon,))
    checks.in_unit_interval("explorations", values)
    return values


def bound_curve(
    learner: learners.Learner,
    horizon: int,
    num_arms: int,
    max_return: float,
    delta: float,
    explorations: Explorations,
) -> Float[np.ndarray, "T"]:
    """Theorem 1's bound g + h at every horizon up to `horizon`; at each it fails with probability δ at most.

    Infinite without exploration: importance weights have no such bound.
    """
    if learner.guarantee is None:
        raise ValueError("this learner has no known full-monitoring bound: give it a guarantee.")
    values = exploration_values(horizon, explorations)
    log_term = _log_term(horizon, num_arms, max_return, delta)
    own = learner.guarantee.bound(values, num_arms, max_return, log_term)
    return own + slack_curve(horizon, num_arms, max_return, delta, values)


def violation_limit(violations: int, num_runs: int, confidence: float = 0.95) -> float:
    """The largest violation probability that fits the count: Clopper and Pearson's (1934) one-sided limit.

    >>> round(violation_limit(0, 2000), 5)
    0.0015
    """
    if not 0 <= violations <= num_runs or num_runs < 1:
        raise ValueError(f"violations must be 0 to {num_runs} of at least 1 run, but are {violations}.")
    if violations == num_runs:
        return 1.0
    return float(special.betaincinv(violations + 1, num_runs - violations, confidence))


def _log_term(horizon: int, num_arms: int, max_return: float, delta: float) -> float:
    checks.at_least("horizon", horizon)
    checks.at_least("num_arms", num_arms)
    checks.positive("max_return", max_return)
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, but is {delta:g}.")
    return float(np.log((num_arms + 1) / delta))


def _arms(totals: simulation.Totals) -> int:
    """The axis of arms: the one before the runs."""
    return np.ndim(totals.utilities) - 2


def _over_arms(values: types.ArrayLike, totals: simulation.Totals) -> np.ndarray:
    return np.expand_dims(np.asarray(values), _arms(totals))
