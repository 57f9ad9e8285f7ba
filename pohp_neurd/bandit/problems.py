"""Bandit problems: what every arm is worth in every round, in [−G, 0], as one run lives it.

A problem may look at the policy before it sets the utilities of a round, but not at the arm that is then
drawn: that is the adversary of Theorem 1. Its noise comes as uniform numbers, one draw for all runs.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import checks
from pohp_neurd.bandit import learners, noise


class Problem(NamedTuple):
    """A bandit problem as pure functions."""

    name: str
    num_arms: int
    max_return: float
    """G: utilities lie in [−G, 0]."""
    num_uniforms: int
    """How many uniform numbers a round takes."""
    init: Callable[..., Any]
    """The daimon's state before the first round, for many runs: `init()`, or `init(2000)`."""
    utilities: Callable[[Any, Float[Array, "A *B"], Float[Array, "U *B"]], Float[Array, "A *B"]]
    """(state, the learner's policy, uniform numbers) -> u_t, every arm's utility this round."""
    update: Callable[[Any, Float[Array, "A *B"]], Any]
    """(state, the learner's policy) -> the daimon's state after the round."""


def bernoulli(loss_probabilities: Sequence[float] | np.ndarray) -> Problem:
    """Arms that cost 1 with a probability of their own, independently."""
    chances = _chances(loss_probabilities)

    def utilities(
        rounds: Any, policy: Float[Array, "A *B"], uniforms: Float[Array, "U *B"]
    ) -> Float[Array, "A *B"]:
        return -(uniforms < _column(chances, uniforms)).astype(uniforms.dtype)

    return Problem("bernoulli", len(chances), 1.0, len(chances), _no_state, utilities, _stay)


def switching(num_arms: int, period: int, *, good: float = 0.25, bad: float = 0.5) -> Problem:
    """Bernoulli arms of which one is good, another one after every `period` rounds, in turn."""
    _check_arms(num_arms)
    _check_period(period)
    checks.in_unit_interval("good", good)
    checks.in_unit_interval("bad", bad)

    def utilities(
        rounds: Int[Array, ""], policy: Float[Array, "A *B"], uniforms: Float[Array, "U *B"]
    ) -> Float[Array, "A *B"]:
        best = noise.pulled((rounds // period) % num_arms, uniforms.shape)
        chances = jnp.where(best, good, bad).astype(uniforms.dtype)
        return -(uniforms < chances).astype(uniforms.dtype)

    return Problem("switching", num_arms, 1.0, num_arms, _count, utilities, _next)


def adaptive(num_arms: int) -> Problem:
    """An adversary that looks at the policy and makes its likeliest arm cost 1; all others are free."""
    _check_arms(num_arms)

    def utilities(
        state: Any, policy: Float[Array, "A *B"], uniforms: Float[Array, "U *B"]
    ) -> Float[Array, "A *B"]:
        likeliest = jnp.argmax(policy, axis=0, keepdims=True).astype(jnp.int32)
        return -noise.pulled(likeliest, policy.shape).astype(policy.dtype)

    return Problem("adaptive", num_arms, 1.0, 0, _no_state, utilities, _stay)


ROCK_PAPER_SCISSORS = ((0.0, -1.0, 2.0), (1.0, 0.0, -1.0), (-2.0, 1.0, 0.0))
"""Biased rock-paper-scissors: rock beats scissors for 2. The same as in `games.matrix_game`."""


def rock_paper_scissors(
    opponent: Sequence[float] | np.ndarray = (0.5, 0.25, 0.25),
    *,
    period: int | None = None,
    payoffs: Sequence[Sequence[float]] | np.ndarray = ROCK_PAPER_SCISSORS,
) -> Problem:
    """A matrix game against an opponent who draws from one mixture.

    With a `period` the opponent does not stand still: its mixture moves on by one action after every
    `period` rounds. Payoffs are shifted so that the largest is 0.
    """
    matrix = np.asarray(payoffs, np.float64)
    mixture = np.asarray(opponent, np.float64)
    checks.distribution("opponent", mixture)
    checks.shape("opponent", mixture, (matrix.shape[1],))
    if period is not None:
        _check_period(period)
    shifted = matrix - matrix.max()
    phases = range(1 if period is None else len(mixture))
    cumulative = np.cumsum([np.roll(mixture, phase) for phase in phases], axis=1)
    cumulative[:, -1] = 1.0  # rounding

    def utilities(
        rounds: Int[Array, ""], policy: Float[Array, "A *B"], uniforms: Float[Array, "U *B"]
    ) -> Float[Array, "A *B"]:
        phase = 0 if period is None else (rounds // period) % len(phases)
        edges = _column(cumulative, uniforms)[phase]
        action = jnp.sum(edges <= uniforms, axis=0, keepdims=True).astype(jnp.int32)
        drawn = noise.pulled(action, (len(mixture), *uniforms.shape[1:]))
        return jnp.asarray(shifted, uniforms.dtype) @ drawn.astype(uniforms.dtype)

    name = "rock_paper_scissors" if period is None else "shifting_rock_paper_scissors"
    return Problem(name, len(matrix), float(-shifted.min()), 1, _count, utilities, _next)


def fixed(utilities: Sequence[float] | np.ndarray, max_return: float, name: str = "fixed") -> Problem:
    """Arms that are worth the same in every round, such as pure policies against a fixed daimon."""
    worth = np.asarray(utilities, np.float64)
    _check_arms(len(worth))
    _check_range(worth, max_return)

    def constant(
        state: Any, policy: Float[Array, "A *B"], uniforms: Float[Array, "U *B"]
    ) -> Float[Array, "A *B"]:
        return jnp.broadcast_to(_column(worth, policy), policy.shape)

    return Problem(name, len(worth), float(max_return), 0, _no_state, constant, _stay)


def learning_daimon(
    payoffs: np.ndarray, max_return: float, daimon: learners.Learner, name: str = "learning daimon"
) -> Problem:
    """Arms against a daimon that learns: it mixes its own pure policies, and sees the learner's mixture.

    `payoffs[x, y]`, in [−G, 0], is what arm x is worth against the daimon's y; the daimon, a full-monitoring
    learner, wants it low. Arms are worth their expectation over the daimon's mixture.
    """
    matrix = np.asarray(payoffs, np.float64)
    checks.shape("payoffs", matrix, (None, None))
    _check_arms(len(matrix))
    _check_range(matrix, max_return)

    def utilities(
        state: Any, policy: Float[Array, "A *B"], uniforms: Float[Array, "U *B"]
    ) -> Float[Array, "A *B"]:
        return jnp.asarray(matrix, policy.dtype) @ daimon.policy(state)

    def update(state: Any, policy: Float[Array, "A *B"]) -> Any:
        # Zero-sum and shifted: what the learner does not get, less G, so that it is not positive.
        gains = -(jnp.asarray(matrix.T, policy.dtype) @ policy) - max_return
        return daimon.update(state, gains)

    def init(*runs: int) -> Any:
        return daimon.init(matrix.shape[1], *runs)

    return Problem(name, len(matrix), float(max_return), 0, init, utilities, update)


def _no_state(*runs: int) -> tuple[()]:
    return ()


def _stay(state: Any, policy: Float[Array, "A *B"]) -> Any:
    return state


def _count(*runs: int) -> Int[Array, ""]:
    # All runs are in the same round.
    return jnp.zeros((), jnp.int32)


def _next(rounds: Int[Array, ""], policy: Float[Array, "A *B"]) -> Int[Array, ""]:
    return rounds + 1


def _column(values: np.ndarray, like: Float[Array, "n *B"]) -> Float[Array, "..."]:
    """`values` with an axis of size 1 for each axis of runs that `like` has."""
    return jnp.asarray(values, like.dtype).reshape(*values.shape, *[1] * (like.ndim - 1))


def _chances(loss_probabilities: Sequence[float] | np.ndarray) -> Float[np.ndarray, "A"]:
    chances = np.asarray(loss_probabilities, np.float64)
    checks.in_unit_interval("loss_probabilities", chances)
    checks.shape("loss_probabilities", chances, (None,))
    _check_arms(len(chances))
    return chances


def _check_arms(num_arms: int) -> None:
    if num_arms < 2:
        raise ValueError(f"a bandit problem needs at least 2 arms, but has {num_arms}.")


def _check_period(period: int) -> None:
    if period < 1:
        raise ValueError(f"period must be at least 1 round, but is {period}.")


def _check_range(utilities: np.ndarray, max_return: float) -> None:
    checks.positive("max_return", max_return)
    if not np.all((utilities <= 1e-9) & (utilities >= -max_return - 1e-9)):
        raise ValueError(
            f"utilities must lie in [-{max_return:g}, 0], but range from {utilities.min():g} to "
            f"{utilities.max():g}: subtract the largest."
        )
