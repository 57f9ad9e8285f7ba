"""Thousands of bandit runs at once: a scan over rounds, with the runs side by side.

Between a `problems.Problem` with a bandit learner and `regret`, which judges the sums that come back. Under
`jax.enable_x64(True)` everything is float64, and the proof's identities hold to its rounding.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pohp_neurd import types
from pohp_neurd.bandit import noise, problems
from pohp_neurd.bandit.reduction import BanditLearner


class Totals(NamedTuple):
    """Sums over the rounds played. From `simulate` each has leading axes [C records], and runs come last."""

    utilities: Float[types.ArrayLike, "... A B"]
    """u^{1:t}(x), what each arm would have got."""
    received: Float[types.ArrayLike, "... B"]
    """u^{1:t}(X), what the learner got."""
    estimates: Float[types.ArrayLike, "... A B"]
    """û^{1:t}(x), what the learner believes of each arm."""
    expected: Float[types.ArrayLike, "... B"]
    """û^{1:t}(π), what the learner's mixed policies got under its estimates."""
    cost: Float[types.ArrayLike, "... B"]
    """What the learner's guarantee has added up; 0 for a learner without one."""


class _Runs(NamedTuple):
    learner: Any
    daimon: Any
    totals: Totals


def simulate(
    problem: problems.Problem,
    bandit: BanditLearner,
    rounds: Sequence[int],
    num_runs: int,
    *,
    key: types.Key,
) -> Totals:
    """The totals of `num_runs` independent runs after each of `rounds`, as numpy arrays [C, …, B]."""
    played = list(play(problem, bandit, rounds, num_runs, key=key))
    return Totals(*(np.stack(field) for field in zip(*played, strict=True)))


def play(
    problem: problems.Problem,
    bandit: BanditLearner,
    rounds: Sequence[int],
    num_runs: int,
    *,
    key: types.Key,
) -> Iterator[Totals]:
    """The totals after each of `rounds` in turn, so that a caller can show how far it got."""
    if num_runs < 1:
        raise ValueError(f"num_runs must be at least 1, but is {num_runs}.")
    stops = [int(stop) for stop in rounds]
    if not stops or stops[0] < 1 or any(after <= before for before, after in itertools.pairwise(stops)):
        raise ValueError(f"rounds must be increasing numbers from 1 on, but are {stops[:8]}.")
    runs = _start(problem, bandit, num_runs)
    for start, stop in zip([0, *stops], stops, strict=False):
        runs = _advance(problem, bandit, num_runs, runs, key, start, stop)
        yield Totals(*(np.asarray(field) for field in runs.totals))


@functools.partial(jax.jit, static_argnames=("problem", "bandit", "num_runs"))
def _start(problem: problems.Problem, bandit: BanditLearner, num_runs: int) -> _Runs:
    # Not one array twice: a loop carries each of them on its own.
    arms, scalars = jnp.zeros((2, problem.num_arms, num_runs)), jnp.zeros((3, num_runs))
    totals = Totals(arms[0], scalars[0], arms[1], scalars[1], scalars[2])
    return _Runs(bandit.init(problem.num_arms, num_runs), problem.init(num_runs), totals)


@functools.partial(jax.jit, static_argnames=("problem", "bandit", "num_runs"))
def _advance(
    problem: problems.Problem,
    bandit: BanditLearner,
    num_runs: int,
    runs: _Runs,
    key: types.Key,
    start: types.Action,
    stop: types.Action,
) -> _Runs:
    def body(count: Array, runs: _Runs) -> _Runs:
        uniforms = noise.uniforms(key, count, 1 + problem.num_uniforms, num_runs)
        return _round(problem, bandit, runs, uniforms)

    return jax.lax.fori_loop(start, stop, body, runs)


def _round(
    problem: problems.Problem, bandit: BanditLearner, runs: _Runs, uniforms: Float[Array, "U B"]
) -> _Runs:
    """One round of every run."""
    probabilities = bandit.policy(runs.learner)
    utilities = problem.utilities(runs.daimon, probabilities, uniforms[1:])
    action = noise.choose(probabilities, uniforms[:1])
    taken = noise.pulled(action, utilities.shape)
    utility = jnp.sum(jnp.where(taken, utilities, 0.0), axis=0, keepdims=True)
    estimates = bandit.estimate(runs.learner, action, utility)
    totals = Totals(
        utilities=runs.totals.utilities + utilities,
        received=runs.totals.received + utility[0],
        estimates=runs.totals.estimates + estimates,
        expected=runs.totals.expected + jnp.sum(probabilities * estimates, axis=0),
        cost=runs.totals.cost + _cost(bandit, runs.learner, probabilities, estimates),
    )
    learner = bandit.update(runs.learner, action, utility)
    return _Runs(learner, problem.update(runs.daimon, probabilities), totals)


def _cost(
    bandit: BanditLearner, state: Any, probabilities: Float[Array, "A B"], estimates: Float[Array, "A B"]
) -> Float[Array, "B"]:
    guarantee = bandit.learner.guarantee
    if guarantee is None:
        return jnp.zeros(probabilities.shape[1], probabilities.dtype)
    return guarantee.cost(state.rounds, probabilities, estimates)
