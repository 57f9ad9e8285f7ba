"""Compiled episodes, updates of self-play, and the rounds and runs of bandits draw independently.

Draws are read off real runs through public functions, under policies that do not change, so that equal or
correlated draws can only come from equal or correlated randomness.
"""

import functools

import independence
import jax
import jax.numpy as jnp
import numpy as np
from pohp_neurd.games import matrix_game

from pohp_neurd import bandit as bandits
from pohp_neurd import learners, openspiel, policy, self_play, tally_learners
from pohp_neurd.bandit import problems, simulation
from pohp_neurd.finite import rollout


def places(tree, rows):
    """What was chosen on the way to `rows`, as places among the possible: [depth, episodes]."""
    found = []
    while np.any(tree.parent[rows] >= 0):
        parent = tree.parent[rows]
        assert np.all(parent >= 0), "these episodes are of different lengths"
        found.append(rows - tree.first_child[parent])
        rows = parent
    return np.array(found[::-1])


@functools.lru_cache(maxsize=1)
def goofspiel():
    tree = openspiel.compile_game("goofspiel(num_cards=3,points_order=random,returns_type=win_loss)")
    board = rollout.board(tree)
    uniform = jnp.asarray(tree.legal / tree.legal.sum(axis=1, keepdims=True), jnp.float32)

    def play(number):
        key = jax.random.fold_in(jax.random.key(0), number)
        return places(tree, np.asarray(rollout.play(board, uniform, 4_096, key=key).end))

    return play


def varying(rows, count=3):
    """The choices that are choices: the first few at which there is more than one possibility."""
    return [row for row in rows if row.min() != row.max()][:count]


def test_chance_and_actions_of_an_episode():
    """4,096 episodes of Goofspiel: the prize, both bids and the next prize are four independent draws."""
    found = varying(goofspiel()(0), 4)
    independence.check_all(
        dict(zip(("first prize", "first bid", "second bid", "next prize"), found, strict=True))
    )


def test_episodes_of_a_batch_and_of_two_batches():
    this, following = goofspiel()(0), goofspiel()(1)
    for name, now, later in zip(
        ("prize", "bid", "other bid"), varying(this), varying(following), strict=True
    ):
        independence.check_stream(now, f"{name} over the episodes of a batch")
        independence.check(now, later, f"{name} in two batches")


def recorded_loop(seed, updates=1_024):
    """What both agents did at every update of a self-play loop of one episode each: [2, updates]."""
    tree = matrix_game.zero_sum(matrix_game.ROCK_PAPER_SCISSORS)

    def init(seats, *, key):
        return jnp.zeros((updates, 2, 3))

    def outputs(seats, log):
        return policy.Output(jnp.zeros((2, 3)), jnp.zeros(2))

    def update(seats, log, tally, number):
        nothing = learners.Info(*(jnp.zeros(()) for _ in learners.Info._fields))
        return log.at[number].set(tally.visits), nothing

    recorder = tally_learners.TallyLearner(init, outputs, update)
    loop, arena = self_play.loop(recorder, num_episodes=1), self_play.arena_of(tree)
    key = jax.random.key(seed)
    state = loop.init(arena, key=key)
    for _ in range(2):
        state = loop.advance(arena, state, np.int32(updates // 2), key)
    return np.argmax(np.asarray(state.learner), axis=-1).T


def test_updates_of_self_play():
    """1,024 updates from one game each, of two seeds."""
    found = {}
    for seed in (0, 1):
        actions = recorded_loop(seed)
        found |= {f"agent {seat} of seed {seed}": actions[seat] for seat in range(2)}
    independence.check_all(found)
    for name, actions in found.items():
        independence.check_stream(actions, f"{name} over updates")


# Bandits: what arms are worth and which is pulled, over rounds and runs.

ROUNDS, RUNS = 64, 64


def bandit_draws(seed):
    """(arm pulled, the problem's uniform number) of 64 rounds and 64 runs, from what was received alone."""

    def utilities(state, policy, uniforms):
        return -(jnp.array([[1.0], [3.0]]) + uniforms) / 4

    problem = problems.Problem("telling", 2, 1.0, 1, lambda *runs: (), utilities, lambda state, policy: state)
    still = bandits.reduction(bandits.learners.hedge(1e-9), "importance")
    totals = simulation.simulate(problem, still, range(1, ROUNDS + 1), RUNS, key=jax.random.key(seed))
    received = -4 * np.diff(np.asarray(totals.received), axis=0, prepend=0)
    arm = (received > 2.5).astype(int)
    # Sums are float32, of up to 64: an error of 1e-5 in the number is far below a bin.
    return arm, (received - 1 - 2 * arm).astype(np.float64)


def test_arms_and_utilities_over_rounds_and_runs():
    """4,096 pulls: the arm and what arms are worth, in rounds and in runs beside each other."""
    found = {}
    for seed in (0, 1):
        arm, worth = bandit_draws(seed)
        found |= {f"arms of seed {seed}": arm, f"worth in seed {seed}": worth}
    independence.check_all(found)
    for name, draws in found.items():
        independence.check_stream(draws.reshape(-1), f"{name}, run after run")
        independence.check_stream(draws.T.reshape(-1), f"{name}, round after round")


def test_noise_of_rounds_runs_and_keys():
    """1,024 numbers each, of two rounds and two keys: both halves of the action's, two for the problem."""
    found = {}
    for seed in (0, 1):
        for round_ in (0, 1):
            numbers = simulation.uniforms(jax.random.key(seed), round_, 2, 1_024)
            rows = [*numbers.action.high, *numbers.action.low, *numbers.problem]
            names = [f"row {row} of round {round_} of key {seed}" for row in range(4)]
            found |= {name: np.asarray(row, float) for name, row in zip(names, rows, strict=True)}
    independence.check_all(found)
    for name, draws in found.items():
        independence.check_stream(draws, name)
