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


class _Run(NamedTuple):
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
def _start(problem: problems.Problem, bandit: BanditLearner, num_runs: int) -> _Run:
    arms, scalar = jnp.zeros(problem.num_arms), jnp.zeros(())
    totals = Totals(arms, scalar, arms, scalar, scalar)
    run = _Run(bandit.init(problem.num_arms), problem.init(), totals)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[..., None], (*leaf.shape, num_runs)), run)


@functools.partial(jax.jit, static_argnames=("problem", "bandit", "num_runs"))
def _advance(
    problem: problems.Problem,
    bandit: BanditLearner,
    num_runs: int,
    runs: _Run,
    key: types.Key,
    start: types.Action,
    stop: types.Action,
) -> _Run:
    # Runs on the last axis: sums over arms then add whole vectors, which is what a CPU does best.
    step = jax.vmap(functools.partial(_round, problem, bandit), in_axes=-1, out_axes=-1)

    def body(count: Array, runs: _Run) -> _Run:
        return step(runs, noise.uniforms(key, count, problem.num_uniforms + 1, num_runs))

    return jax.lax.fori_loop(start, stop, body, runs)


def _round(problem: problems.Problem, bandit: BanditLearner, run: _Run, uniforms: Float[Array, "U"]) -> _Run:
    """One round of one run."""
    probabilities = bandit.policy(run.learner)
    utilities = problem.utilities(run.daimon, probabilities, uniforms[1:])
    action = noise.choose(probabilities, uniforms[0])
    utility = jnp.sum(jnp.where(jnp.arange(problem.num_arms) == action, utilities, 0.0))
    estimates = bandit.estimate(run.learner, action, utility)
    guarantee = bandit.learner.guarantee
    cost = jnp.zeros(())
    if guarantee is not None:
        cost = guarantee.cost(run.learner.rounds, probabilities, estimates)
    totals = Totals(
        utilities=run.totals.utilities + utilities,
        received=run.totals.received + utility,
        estimates=run.totals.estimates + estimates,
        expected=run.totals.expected + jnp.sum(probabilities * estimates),
        cost=run.totals.cost + cost,
    )
    learner = bandit.update(run.learner, action, utility)
    return _Run(learner, problem.update(run.daimon, probabilities), totals)
