"""A game that changes: rock-paper-scissors whose bias jumps, learnt from samples, many runs at once.

One win counts `bias` times; every `jump_every` updates it is another one, in the fixed order of WINNERS, and
the equilibrium jumps with it. Two readings: in `self_play` two learners meet, judged by the exact NashConv of
their current policies in the game of the moment; in `bandit` one learner meets the equilibrium of the game
before the jump, judged by its regret for not playing the phase's best action. `changing_game_study` asks what
exploration does in it.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pohp_neurd import checks, directions, learners, policy, shaping, types
from pohp_neurd.experiment import changing_game_config
from pohp_neurd.games import matrix_game

WINNERS = (0, 2, 1)
"""Whose win counts more, phase by phase. In this order the equilibrium of a phase is at its worst in the
next: the action that it plays most often is the one that loses most."""

READINGS = ("self_play", "bandit")
WORLDS = ("jumping", "still")
LEARNERS = ("spg", "neurd_cix")
BASELINES, POINTS = changing_game_config.BASELINES, changing_game_config.POINTS

COLLAPSE = 1e-3
"""A policy with an entry below this is called collapsed."""


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

    payoffs: Float[types.ArrayLike, "phases 3 3"]
    """The row agent's, in the game's own units."""
    opponent: Float[types.ArrayLike, "phases 3"]
    """What the column agent plays in the bandit: the equilibrium of the phase before."""


class Pace(NamedTuple):
    """What a compiled function is compiled for."""

    jump_every: int
    batch_size: int
    decay_start: float
    magnet_speed: float
    baseline_speed: float


class Agents(NamedTuple):
    """Both agents' learning state; in the bandit the second one's is without influence."""

    logits: Float[Array, "2 3"]
    magnet: Float[Array, "2 3"]
    mean_return: Float[Array, "2"]


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
) -> tuple[Float[Array, "seeds settings points"], Float[Array, "seeds settings points"]]:
    """NashConv (or the bandit's regret) and the share of collapsed updates, as means over a phase's points.

    All settings of one seed draw from the same uniform numbers, so that their differences are not noise.
    """
    of_setting = functools.partial(_run, learner=learner, reading=reading, pace=pace)
    of_seed = jax.vmap(of_setting, in_axes=(None, 0, None))
    return jax.vmap(of_seed, in_axes=(None, None, 0))(world, settings, seeds)


def _run(
    world: World, setting: Setting, seed: Array, *, learner: str, reading: str, pace: Pace
) -> tuple[Float[Array, "points"], Float[Array, "points"]]:
    """One run: a scan over points, and in each a scan over its updates."""
    payoffs = jnp.asarray(world.payoffs)
    phases, length = payoffs.shape[0], pace.jump_every // POINTS
    key = jax.random.key(seed)

    def schedule(count: Array) -> Array:
        # `directions.decaying`, with a power that differs between the runs of one compiled function.
        age = 1.0 + count.astype(jnp.float32) / pace.decay_start
        return setting.exploration * age**-setting.power

    rule = directions.spg() if learner == "spg" else directions.neurd_cix(schedule)
    opponents = jnp.asarray(world.opponent) if reading == "bandit" else None

    def update(agents: Agents, count: Array) -> tuple[Agents, tuple[Array, Array]]:
        phase = count // pace.jump_every
        game = payoffs[phase]
        policies = _policies(agents.logits)
        if opponents is not None:
            policies = jnp.stack([policies[0], opponents[phase]])
        judged = judge(policies, game, reading)
        tally = _joint_frequencies(policies, pace.batch_size, key=jax.random.fold_in(key, count))
        exploration = rule.exploration(count)
        return learn(agents, policies, tally, game, exploration, rule, setting, pace), judged

    def point(agents: Agents, counts: Array) -> tuple[Agents, tuple[Array, Array]]:
        agents, (gaps, collapsed) = jax.lax.scan(update, agents, counts)
        return agents, (jnp.mean(gaps), jnp.mean(collapsed))

    first = Agents(jnp.zeros((2, 3)), jnp.zeros((2, 3)), jnp.full(2, -0.5))
    counts = jnp.arange(phases * pace.jump_every).reshape(phases * POINTS, length)
    return jax.lax.scan(point, first, counts)[1]


def _joint_frequencies(policies: Array, size: int, *, key: types.Key) -> Float[Array, "3 3"]:
    """How often each pair of actions came up in a batch of `size` games."""
    keys = jax.random.split(key, (2, size))
    draw = jax.vmap(lambda p, k: policy.sample(p, key=k), in_axes=(None, 0))
    actions = jax.vmap(draw)(policies, keys)
    rows, columns = jax.nn.one_hot(actions, 3)
    return jnp.mean(rows[:, :, None] * columns[:, None, :], axis=0)


def learn(
    agents: Agents,
    policies: Array,
    tally: Float[Array, "3 3"],
    game: Float[Array, "3 3"],
    exploration: types.Scalar,
    rule: learners.Rule,
    setting: Setting,
    pace: Pace,
) -> Agents:
    """Both agents after an update from the frequencies of joint actions, on returns shifted to [−1, 0]."""
    bound = jnp.max(jnp.abs(game))
    # The row agent's view and the column agent's: own action first.
    returns = jnp.stack([game - bound, -game.T - bound]) / (2.0 * bound)
    seen = jnp.stack([tally, tally.T])
    values = jnp.stack([policies[0] @ returns[0] @ policies[1], policies[1] @ returns[1] @ policies[0]])
    wanted = jnp.asarray(setting.baseline)
    baseline = jnp.where(wanted == 1, agents.mean_return, jnp.where(wanted == 2, values, 0.0))
    sums = jnp.sum(seen * (returns - baseline[:, None, None]), axis=2)
    legal = jnp.ones(3, bool)

    def step(logits: Array, magnet: Array, probabilities: Array, summed: Array) -> Array:
        direction = directions.summed_direction(rule, probabilities, summed, legal, exploration)
        return shaping.proximal_step(
            logits, direction, magnet, step_size=setting.step_size, strength=setting.magnet_strength
        )

    logits = jax.vmap(step)(agents.logits, agents.magnet, policies, sums)
    # Only differences count, and a walk of the common part would eat up float32's digits.
    logits = logits - jnp.max(logits, axis=1, keepdims=True)
    means = jnp.sum(seen * returns, axis=(1, 2))
    return Agents(
        logits,
        agents.magnet + pace.magnet_speed * (logits - agents.magnet),
        agents.mean_return + pace.baseline_speed * (means - agents.mean_return),
    )


def judge(policies: Array, game: Array, reading: str) -> tuple[Array, Array]:
    """NashConv or regret in the game of the moment, and whether a learner's policy has collapsed."""
    worth = jnp.sum(game * policies[1][None, :], axis=1)
    if reading == "bandit":
        gap = jnp.max(worth) - jnp.sum(policies[0] * worth)
        return gap, (jnp.min(policies[0]) < COLLAPSE).astype(gap.dtype)
    cost = jnp.sum(game * policies[0][:, None], axis=0)
    gap = jnp.max(worth) - jnp.min(cost)
    return gap, (jnp.min(policies) < COLLAPSE).astype(gap.dtype)


def _policies(logits: Float[Array, "2 3"]) -> Float[Array, "2 3"]:
    return jax.vmap(policy.probabilities)(logits, jnp.ones(logits.shape, bool))
