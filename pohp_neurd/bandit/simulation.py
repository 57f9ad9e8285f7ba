"""Thousands of bandit runs at once: a scan over rounds, with the runs side by side.

Between a `problems.Problem` with a bandit learner and `regret`, which judges the sums that come back. Under
`jax.enable_x64(True)` everything is float64, and the proof's identities hold to its rounding.

Uniform numbers are the bits of JAX's threefry, unrolled. On a CPU `jax.random.uniform` loops over the
cipher's rounds and hashes once for each number; it would take most of a simulation's time. Unrolled, with
both words of each hash used, the same cipher fuses into the round's own loop. The counter is (place, round),
so no key has to be split or folded along the way.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, UInt32

from pohp_neurd import checks, policy, types
from pohp_neurd.bandit import learners, problems
from pohp_neurd.bandit.learners import BanditLearner


class Numbers(NamedTuple):
    """The uniform numbers of one round."""

    action: policy.Fixed
    """To choose an arm by, [1, B]: fine enough for a rare one."""
    problem: Float[Array, "U B"]
    """In [0, 1), multiples of 2^-23 in float32 and of 2^-32 in float64."""


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
    checks.at_least("num_runs", num_runs)
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
        return _round(problem, bandit, runs, uniforms(key, count, problem.num_uniforms, num_runs))

    return jax.lax.fori_loop(start, stop, body, runs)


def _round(problem: problems.Problem, bandit: BanditLearner, runs: Runs, numbers: Numbers) -> Runs:
    """One round of every run."""
    probabilities = bandit.policy(runs.learner)
    utilities = problem.utilities(runs.daimon, probabilities, numbers.problem)
    action = choose(probabilities, numbers.action)
    taken = learners.pulled(action, utilities.shape)
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


def uniforms(key: types.Key, round_: types.Action, count: int, num_runs: int) -> Numbers:
    """One number for each run to act by and `count` for its problem: of key, round and sizes alone."""
    bits = _bits(key, round_, 1 + count, num_runs)
    # Rounds stay below 2^31, so that this counter is no other's.
    finer = _bits(key, jnp.asarray(round_).astype(jnp.uint32) | jnp.uint32(1 << 31), 1, num_runs)
    halves = (half >> jnp.uint32(32 - policy.BITS) for half in (bits[:1], finer))
    return Numbers(policy.Fixed(*(half.astype(jnp.int32) for half in halves)), _real(bits[1:]))


def _real(bits: UInt32[Array, "U B"]) -> Float[Array, "U B"]:
    dtype = jnp.zeros(()).dtype
    if dtype == jnp.float32:
        # The top 23 bits as the mantissa of a number in [1, 2).
        mantissa = (bits >> jnp.uint32(9)) | jnp.uint32(0x3F800000)
        return jax.lax.bitcast_convert_type(mantissa, jnp.float32) - 1.0
    return bits.astype(dtype) * 2.0**-32


def _bits(key: types.Key, round_: Any, count: int, num_runs: int) -> UInt32[Array, "U B"]:
    words = _key_words(key)
    size = count * num_runs
    places = jnp.arange((size + 1) // 2, dtype=jnp.uint32)
    rounds = jnp.broadcast_to(jnp.asarray(round_).astype(jnp.uint32), places.shape)
    return jnp.concatenate(threefry(words, places, rounds))[:size].reshape(count, num_runs)


# Threefry-2x32-20 (Salmon et al. 2011): rotations of the rounds, and the key schedule's constant.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(
    key: UInt32[Array, "2"], first: UInt32[Array, "H"], second: UInt32[Array, "H"]
) -> tuple[UInt32[Array, "H"], UInt32[Array, "H"]]:
    """The two output words of Threefry-2x32 with 20 rounds, for each pair of counter words."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    x, y = first + schedule[0], second + schedule[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << jnp.uint32(rotation)) | (y >> jnp.uint32(32 - rotation))) ^ x
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + jnp.uint32(group + 1)
    return x, y


def choose(probabilities: Float[Array, "A *B"], uniform: policy.Fixed) -> Int[Array, "1 *B"]:
    """The arm that a uniform number [1, *B] picks, by the inverse of the cumulative distribution."""
    passed = policy.reached(policy.thresholds(probabilities, axis=0), uniform)
    return jnp.sum(passed, axis=0, keepdims=True).astype(jnp.int32)


def _key_words(key: types.Key) -> UInt32[Array, "2"]:
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.key_data(key)
    if key.shape != (2,):
        raise ValueError("the simulation draws with threefry: use a key of jax.random.key(seed).")
    return key
