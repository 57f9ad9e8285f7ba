"""The black-box reduction: a full-monitoring learner that is fed estimates plays a bandit.

Theorem 1 of Morrill et al. (2023): what the estimates cost is a slack that does not depend on the learner.
Exp3 is Hedge with importance weights, Exp3-IX (Kocák et al. 2014; Neu 2015) Hedge with IX, and so on.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import checks, estimators, types
from pohp_neurd import learners as exploration_schedules
from pohp_neurd.bandit import learners

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

    init: Callable[[int], State]
    """The state for a number of arms."""
    policy: Callable[[State], Float[Array, "A"]]
    """The mixed policy π_t that the next arm must be drawn from."""
    estimate: Callable[[State, types.Action, types.Scalar], Float[Array, "A"]]
    """û_t, every arm's utility as estimated from the pulled arm and its utility."""
    update: Callable[[State, types.Action, types.Scalar], State]
    """The state after pulling an arm and getting its utility, which must not be positive."""
    learner: learners.Learner
    """The full-monitoring learner inside."""
    schedule: types.Schedule
    """The exploration η of each round; 0 throughout for importance weights."""


def reduction(
    learner: learners.Learner,
    estimator: str | Callable[..., Float[Array, ""]],
    schedule: float | types.Schedule = 0.0,
) -> BanditLearner:
    """`learner` as a bandit learner: each round it is fed û_t(x) = 1{x = X_t} u_t(X_t) · weight.

    `estimator` is "importance", "ix" or "cix", or a function such as `estimators.cix_weight` from the pulled
    arm's probability (and the exploration, if it takes a second argument) to the weight. `schedule` gives
    the exploration, constant or as a function of how many rounds were played.

    >>> bandit = reduction(learners.hedge(0.1), "cix", exploration_schedules.theorem1_exploration(1.0, 2))
    >>> bandit.estimate(bandit.init(2), 1, -1.0).tolist()
    [0.0, -1.0]
    """
    if isinstance(estimator, str):
        checks.one_of("estimator", estimator, tuple(ESTIMATORS))
        estimator = ESTIMATORS[estimator]
    weight: Callable[..., Float[Array, ""]] = estimator
    explores = len(inspect.signature(weight).parameters) > 1
    if not explores:
        explore = exploration_schedules.constant(0.0)
    elif callable(schedule):
        explore = schedule
    else:
        explore = exploration_schedules.constant(float(schedule))

    def init(num_arms: int) -> State:
        if num_arms < 2:
            raise ValueError(f"num_arms must be at least 2, but is {num_arms}.")
        return State(learner.init(num_arms), jnp.zeros((), jnp.int32))

    def current(state: State) -> Float[Array, "A"]:
        return learner.policy(state.learner)

    def estimate(state: State, action: types.Action, utility: types.Scalar) -> Float[Array, "A"]:
        probabilities = current(state)
        taken = jnp.arange(probabilities.shape[0]) == action
        # A masked sum, not an index: over thousands of runs a gather is the slowest step of the round.
        probability = jnp.sum(jnp.where(taken, probabilities, 0.0))
        exploration = jnp.asarray(explore(state.rounds), probabilities.dtype)
        correction = weight(probability, exploration) if explores else weight(probability)
        scaled = jnp.asarray(utility, probabilities.dtype) * correction
        return jnp.where(taken, scaled, 0.0)

    def update(state: State, action: types.Action, utility: types.Scalar) -> State:
        known = checks.known(utility)
        if known is not None and known > 0:
            raise ValueError(
                f"utilities must not be positive, but one is {float(known):g}: subtract the largest."
            )
        return State(learner.update(state.learner, estimate(state, action, utility)), state.rounds + 1)

    return BanditLearner(init, current, estimate, update, learner, explore)
