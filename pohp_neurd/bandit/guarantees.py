"""What a full-monitoring learner promises: its regret bound, along one run and ahead of all.

The g of Theorem 1 (Morrill et al. 2022). Along a run the bound adds up costs that the estimates caused, and
holds on every run. Ahead of it those costs are random; `bound` replaces them with what they exceed only in
the event of probability δ that Theorem 1's slack already pays for. docs/theorem1.md has both derivations.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import types


class Guarantee(NamedTuple):
    """A regret bound for utilities that are never positive."""

    cost: Callable[[Any, Float[Array, "A *B"], Float[Array, "A *B"]], Float[Array, "*B"]]
    """(rounds before this one, probabilities, utilities) -> what this round adds to the run's bound."""
    pathwise: Callable[[np.ndarray, Int[np.ndarray, "C"], int], np.ndarray]
    """(costs added up [C, B], rounds played, arms) -> what no arm's regret under those utilities exceeds."""
    bound: Callable[[Float[np.ndarray, "T"], int, float, float], Float[np.ndarray, "T"]]
    """(explorations, arms, G, L) -> g after each round, for IX or CIX estimates of utilities in [−G, 0].

    L = log((arms + 1) / δ). Together with Theorem 1's slack it holds with probability 1 − δ."""


def hedge(step_size: types.Schedule) -> Guarantee:
    """Hedge's bound for step sizes α_t that never grow.

    Along a run, for every arm: Σ_t û_t(x) − û_t(π_t) ≤ log K / α_T + Σ_t (α_t / 2) Σ_x π_t(x) û_t(x)²
    (Lattimore and Szepesvári 2020, Eq. 11.13 and Exercise 28.13). Ahead of it:
    g = log K / α_T + (G² K / 2) Σ_t α_t + (G² / 4) max_t(α_t / η_t) L.
    """

    def cost(
        rounds: Any, probabilities: Float[Array, "A *B"], utilities: Float[Array, "A *B"]
    ) -> Float[Array, "*B"]:
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


def regret_matching() -> Guarantee:
    """The bound of regret matching, with or without +.

    Along a run, for every arm: Σ_t ρ̂_t(x) ≤ √(Σ_t ‖ρ̂_t‖²) with ρ̂_t(x) = û_t(x) − û_t(π_t) (Hart and
    Mas-Colell 2000; Tammelin et al. 2015). Ahead of it:
    g = G √((K − 1) T + K Σ_t 1 / η_t + L / (2 η_min²)).
    """

    def cost(
        rounds: Any, probabilities: Float[Array, "A *B"], utilities: Float[Array, "A *B"]
    ) -> Float[Array, "*B"]:
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


def evaluate(schedule: types.Schedule, horizon: int) -> Float[np.ndarray, "T"]:
    """A schedule's values before each of `horizon` rounds, float64 on the host."""
    with jax.enable_x64(True):
        values = np.asarray(schedule(np.arange(horizon, dtype=np.float64)), np.float64)
    return np.broadcast_to(values, (horizon,))
