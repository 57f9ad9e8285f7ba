"""A game that changes: rock-paper-scissors whose bias jumps, learnt from samples, many runs at once.

One win counts `bias` times; every `jump_every` updates it is another one, in the fixed order of WINNERS, and
the equilibrium jumps with it. Two readings: in `self_play` two learners meet, judged by the exact NashConv of
their current policies in the game of the moment; in `bandit` one learner meets the equilibrium of the game
before the jump, judged by its regret for not playing the phase's best action. `study` asks what exploration
does in it.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from pohp_neurd.games import matrix_game

from pohp_neurd import checks, directions, policy, shaping, tally_learners, types

WINNERS = (0, 2, 1)
"""Whose win counts more, phase by phase. In this order the equilibrium of a phase is at its worst in the
next: the action that it plays most often is the one that loses most."""

READINGS = ("self_play", "bandit")
WORLDS = ("jumping", "still")
LEARNERS = ("spg", "neurd_cix")
BASELINES = ("none", "mean", "value")
"""None, as in Theorem 1; the running mean of own returns; the exact value of the policies of the moment."""

POINTS = 20
"""Points of a phase that are kept, each a mean over a twentieth of it; a multiple of 4 for the quarters."""

COLLAPSE = 1e-3
"""A policy with an entry below this is called collapsed."""

SEATS = tally_learners.seats(tally_learners.Rows(np.ones((2, 3), bool)), (1, 1))


class Setting(NamedTuple):
    """What may differ between runs of one compiled function; arrays of one shape, or numbers."""

    exploration: Any
    power: Any
    """Exploration falls as (1 + t / start)^−power: 0 for a constant one."""
    step_size: Any
    magnet_strength: Any
    baseline: Any
    """The place in BASELINES."""


class World(NamedTuple):
    """The game phase by phase."""

    payoffs: np.ndarray
    """The row agent's [phases, 3, 3], in the game's own units."""
    opponent: np.ndarray
    """What the column agent plays in the bandit [phases, 3]: the equilibrium of the phase before."""


class Pace(NamedTuple):
    """What a compiled function is compiled for."""

    jump_every: int
    batch_size: int
    decay_start: float
    magnet_speed: float
    baseline_speed: float


class Agents(NamedTuple):
    """Both agents' learning state; in the bandit the second one's is without influence."""

    learner: Any
    mean_return: Array


def world(kind: str, *, bias: float, cycles: int) -> World:
    """The world that jumps, or the one that stays in its first phase, of the same length."""
    checks.one_of("world", kind, WORLDS)
    order = WINNERS * cycles
    games = np.stack([matrix_game.biased_rock_paper_scissors(bias, winner) for winner in order])
    # The phase before the first is the last of the cycle.
    opponents = np.stack(
        [matrix_game.rock_paper_scissors_equilibrium(games[phase - 1]) for phase in range(len(games))]
    )
    kept = np.arange(len(order)) if kind == "jumping" else np.zeros(len(order), int)
    return World(games[kept].astype(np.float32), opponents[kept].astype(np.float32))


@functools.partial(jax.jit, static_argnames=("learner", "reading", "pace"))
def play(
    world: World, settings: Setting, seeds: Array, *, learner: str, reading: str, pace: Pace
) -> tuple[Array, Array]:
    """NashConv (or the bandit's regret) and the share of collapsed updates, as means over a phase's points.

    All settings of one seed draw from the same uniform numbers, so that their differences are not noise.

    Args:
        world: The game of every phase.
        settings: Arrays of one length.
        seeds: As many runs of each setting.
        learner: One of LEARNERS.
        reading: One of READINGS.
        pace: How long phases are, and how fast learners move.

    Returns:
        Two arrays [seeds, settings, points].
    """
    of_setting = functools.partial(_run, learner=learner, reading=reading, pace=pace)
    of_seed = jax.vmap(of_setting, in_axes=(None, 0, None))
    return jax.vmap(of_seed, in_axes=(None, None, 0))(world, settings, seeds)


def _run(
    world: World, setting: Setting, seed: Array, *, learner: str, reading: str, pace: Pace
) -> tuple[Array, Array]:
    """One run: a scan over points, and in each a scan over its updates."""
    payoffs = jnp.asarray(world.payoffs)
    phases, length = payoffs.shape[0], pace.jump_every // POINTS
    key = jax.random.key(seed)
    opponents = jnp.asarray(world.opponent) if reading == "bandit" else None
    table = table_learner(setting, learner, pace)

    def update(agents: Agents, count: Array) -> tuple[Agents, tuple[Array, Array]]:
        phase = count // pace.jump_every
        game = payoffs[phase]
        policies = jax.vmap(policy.probabilities)(
            table.outputs(SEATS, agents.learner).logits, jnp.ones((2, 3), bool)
        )
        if opponents is not None:
            policies = jnp.stack([policies[0], opponents[phase]])
        judged = judge(policies, game, reading)
        frequencies = _joint_frequencies(policies, pace.batch_size, key=jax.random.fold_in(key, count))
        tally, means = evidence(agents, policies, frequencies, game, setting.baseline)
        moved = agents.mean_return + pace.baseline_speed * (means - agents.mean_return)
        learner_state, _ = table.update(SEATS, agents.learner, tally, count)
        return Agents(learner_state, moved), judged

    def point(agents: Agents, counts: Array) -> tuple[Agents, tuple[Array, Array]]:
        agents, (gaps, collapsed) = jax.lax.scan(update, agents, counts)
        return agents, (jnp.mean(gaps), jnp.mean(collapsed))

    first = Agents(table.init(SEATS), jnp.full(2, -0.5))
    counts = jnp.arange(phases * pace.jump_every).reshape(phases * POINTS, length)
    return jax.lax.scan(point, first, counts)[1]


def table_learner(setting: Setting, learner: str, pace: Pace) -> tally_learners.TallyLearner:
    """Both agents' updates, without a baseline: `evidence` has subtracted it."""

    def exploration(count: Array) -> Array:
        # `directions.decaying`, with a power that differs between the runs of one compiled function.
        age = 1.0 + jnp.asarray(count, jnp.float32) / pace.decay_start
        return setting.exploration * age**-setting.power

    rule = directions.spg() if learner == "spg" else directions.neurd_cix(exploration)
    # As schedules: plain numbers are checked, and these differ between the runs of one compiled function.
    magnet = shaping.Magnet(lambda count: setting.magnet_strength, pace.magnet_speed)
    return tally_learners.table(
        rule,
        step_size=lambda count: setting.step_size,
        magnet=magnet,
        baseline_rate=None,
    )


def _joint_frequencies(policies: Array, size: int, *, key: types.Key) -> Array:
    """How often each pair of actions [3, 3] came up in a batch of `size` games."""
    keys = jax.random.split(key, (2, size))
    draw = jax.vmap(lambda p, k: policy.sample(p, key=k), in_axes=(None, 0))
    actions = jax.vmap(draw)(policies, keys)
    rows, columns = jax.nn.one_hot(actions, 3)
    return jnp.mean(rows[:, :, None] * columns[:, None, :], axis=0)


def evidence(
    agents: Agents, policies: Array, frequencies: Array, game: Array, baseline: Any
) -> tuple[directions.Tally, Array]:
    """What an update learns from, and both agents' mean returns, which are shifted to [−1, 0].

    Args:
        agents: With the running means of returns before this update.
        policies: Both agents' [2, 3].
        frequencies: Of pairs of actions [3, 3]; they sum to 1.
        game: The row agent's payoffs [3, 3].
        baseline: The place in BASELINES.

    Returns:
        The tally of one episode, the mean of the batch, with the baseline subtracted; the mean returns [2].
    """
    bound = jnp.max(jnp.abs(game))
    # The row agent's view and the column agent's: own action first.
    returns = jnp.stack([game - bound, -game.T - bound]) / (2.0 * bound)
    seen = jnp.stack([frequencies, frequencies.T])
    values = jnp.stack([policies[0] @ returns[0] @ policies[1], policies[1] @ returns[1] @ policies[0]])
    wanted = jnp.asarray(baseline)
    subtracted = jnp.where(wanted == 1, agents.mean_return, jnp.where(wanted == 2, values, 0.0))
    sums = jnp.sum(seen * (returns - subtracted[:, None, None]), axis=2)
    tally = directions.Tally(sums, jnp.sum(seen, axis=2), jnp.ones(()))
    return tally, jnp.sum(seen * returns, axis=(1, 2))


def judge(policies: Array, game: Array, reading: str) -> tuple[Array, Array]:
    """NashConv or regret in the game of the moment, and whether a learner's policy has collapsed."""
    worth = jnp.sum(game * policies[1][None, :], axis=1)
    if reading == "bandit":
        gap = jnp.max(worth) - jnp.sum(policies[0] * worth)
        return gap, (jnp.min(policies[0]) < COLLAPSE).astype(gap.dtype)
    cost = jnp.sum(game * policies[0][:, None], axis=0)
    gap = jnp.max(worth) - jnp.min(cost)
    return gap, (jnp.min(policies) < COLLAPSE).astype(gap.dtype)
