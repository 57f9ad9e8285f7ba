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

from pohp_neurd import checks, types
from pohp_neurd.bandit import noise, problems
from pohp_neurd.bandit.reduction import BanditLearner


class Parts(NamedTuple):
    """The sums that only the proof's decomposition needs."""

    estimates: Float[types.ArrayLike, "... A B"]
    """û^{1:t}(x), what the learner believes of each arm."""
    expected: Float[types.ArrayLike, "... B"]
    """û^{1:t}(π), what the learner's mixed policies got under its estimates."""
    cost: Float[types.ArrayLike, "... B"]
    """What the learner's guarantee has added up; 0 for a learner without one."""


class Totals(NamedTuple):
    """Sums over the rounds played. From `simulate` each has a first axis of records, and runs come last."""

    utilities: Float[types.ArrayLike, "... A B"]
    """u^{1:t}(x), what each arm would have got."""
    received: Float[types.ArrayLike, "... B"]
    """u^{1:t}(X), what the learner got."""
    parts: Parts | None = None
    """None where nobody asked for the decomposition."""


class Runs(NamedTuple):
    """Many runs, side by side."""

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
    decompose: bool = False,
) -> Totals:
    """The totals of `num_runs` independent runs after each of `rounds`, as numpy arrays [C, …, B]."""
    played = list(play(problem, bandit, rounds, num_runs, key=key, decompose=decompose))
    return jax.tree.map(lambda *records: np.stack(records), *played)


def play(
    problem: problems.Problem,
    bandit: BanditLearner,
    rounds: Sequence[int],
    num_runs: int,
    *,
    key: types.Key,
    decompose: bool = False,
) -> Iterator[Totals]:
    """The totals after each of `rounds` in turn, so that a caller can show how far it got.

    Raises `checks.Diverged` where a learner's policy is no distribution any more.
    """
    if num_runs < 1:
        raise ValueError(f"num_runs must be at least 1, but is {num_runs}.")
    stops = [int(stop) for stop in rounds]
    if not stops or stops[0] < 1 or any(after <= before for before, after in itertools.pairwise(stops)):
        raise ValueError(f"rounds must be increasing numbers from 1 on, but are {stops[:8]}.")
    runs = begin(problem, bandit, num_runs, decompose)
    for start, stop in zip([0, *stops], stops, strict=False):
        runs = advance(problem, bandit, num_runs, runs, key=key, start=start, stop=stop)
        yield jax.tree.map(np.asarray, runs.totals)


def advance(
    problem: problems.Problem,
    bandit: BanditLearner,
    num_runs: int,
    runs: Runs,
    *,
    key: types.Key,
    start: int,
    stop: int,
) -> Runs:
    """All runs after round `stop`, from those after round `start`; where it is cut makes no difference.

    Args:
      problem: what the arms are worth.
      bandit: who plays.
      num_runs: how many independent runs.
      runs: from `begin`, or from here.
      key: of the whole simulation.
      start: rounds played so far.
      stop: rounds played then.

    Returns:
      The runs. Raises `checks.Diverged` where a learner's policy is no distribution any more.
    """
    runs = _advance(problem, bandit, num_runs, runs, key, start, stop)
    if not checks.all_finite((bandit.policy(runs.learner), runs.totals)):
        raise checks.Diverged("a policy or a total", after=f"{stop:,} rounds", remedy="step size")
    return runs


@functools.partial(jax.jit, static_argnames=("problem", "bandit", "num_runs", "decompose"))
def begin(problem: problems.Problem, bandit: BanditLearner, num_runs: int, decompose: bool = False) -> Runs:
    """All runs before the first round; `decompose` keeps the sums of the proof's decomposition, too."""
    arms, scalars = jnp.zeros((problem.num_arms, num_runs)), jnp.zeros(num_runs)
    totals = Totals(arms, scalars, Parts(arms, scalars, scalars) if decompose else None)
    return Runs(bandit.init(problem.num_arms, num_runs), problem.init(num_runs), totals)


@functools.partial(jax.jit, static_argnames=("problem", "bandit", "num_runs"))
def _advance(
    problem: problems.Problem,
    bandit: BanditLearner,
    num_runs: int,
    runs: Runs,
    key: types.Key,
    start: types.Action,
    stop: types.Action,
) -> Runs:
    def body(count: Array, runs: Runs) -> Runs:
        return _round(problem, bandit, runs, noise.uniforms(key, count, problem.num_uniforms, num_runs))

    return jax.lax.fori_loop(start, stop, body, runs)


def _round(problem: problems.Problem, bandit: BanditLearner, runs: Runs, numbers: noise.Numbers) -> Runs:
    """One round of every run."""
    probabilities = bandit.policy(runs.learner)
    utilities = problem.utilities(runs.daimon, probabilities, numbers.problem)
    action = noise.choose(probabilities, numbers.action)
    taken = noise.pulled(action, utilities.shape)
    utility = jnp.sum(jnp.where(taken, utilities, 0.0), axis=0, keepdims=True)
    parts = runs.totals.parts
    if parts is not None:
        estimates = bandit.estimate(runs.learner, action, utility)
        parts = Parts(
            estimates=parts.estimates + estimates,
            expected=parts.expected + jnp.sum(probabilities * estimates, axis=0),
            cost=parts.cost + _cost(bandit, runs.learner, probabilities, estimates),
        )
    totals = Totals(runs.totals.utilities + utilities, runs.totals.received + utility[0], parts)
    learner = bandit.update(runs.learner, action, utility)
    return Runs(learner, problem.update(runs.daimon, probabilities), totals)


def _cost(
    bandit: BanditLearner, state: Any, probabilities: Float[Array, "A B"], estimates: Float[Array, "A B"]
) -> Float[Array, "B"]:
    guarantee = bandit.learner.guarantee
    if guarantee is None:
        return jnp.zeros(probabilities.shape[1], probabilities.dtype)
    return guarantee.cost(state.rounds, probabilities, estimates)
