"""The black-box reduction: a full-monitoring learner that is fed estimates plays a bandit.

Theorem 1 of Morrill et al. (2022): what the estimates cost is a slack that does not depend on the learner.
Exp3 is Hedge with importance weights, Exp3-IX (Kocák et al. 2014; Neu 2015) Hedge with IX, and so on.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import checks, estimators, types
from pohp_neurd import directions as exploration_schedules
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

    init: Callable[..., State]
    """The state for a number of arms, and of runs: `init(3)`, or `init(3, 2000)`."""
    policy: Callable[[State], learners.Arms]
    """The mixed policy π_t that the next arm must be drawn from."""
    estimate: Callable[[State, types.ArrayLike, types.ArrayLike], learners.Arms]
    """û_t, every arm's utility as estimated from the pulled arm and its utility: numbers, or [1, B]."""
    update: Callable[[State, types.ArrayLike, types.ArrayLike], State]
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

    def init(num_arms: int, *runs: int) -> State:
        checks.at_least("num_arms", num_arms, 2)
        return State(learner.init(num_arms, *runs), jnp.zeros((), jnp.int32))

    def current(state: State) -> learners.Arms:
        return learner.policy(state.learner)

    def estimate(state: State, action: types.ArrayLike, utility: types.ArrayLike) -> learners.Arms:
        probabilities = current(state)
        taken = learners.pulled(action, probabilities.shape)
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
