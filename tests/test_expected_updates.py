"""Self-play on exact expectations against exact directions, CFR's theory, and known equilibria."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pohp_neurd.games import matrix_game

from pohp_neurd import cfr, directions, exact, openspiel, policy, self_play, shaping, tally_learners


def finished(loop, arena, iterations):
    """The current and the average policy, and the last update's figures."""
    with jax.enable_x64(True):
        state = loop.init(arena, key=jax.random.key(0))
        state = loop.advance(arena, state, np.int32(iterations), jax.random.key(1))
        return [np.asarray(find(arena, state)) for find in (loop.policies, loop.average)], state.info


def in_slots(tree, rule, learning, iterations, *, alternating=False, **options):
    with jax.enable_x64(True):
        arena = cfr.arena_of(tree, jnp.float64)
    local = cfr.table(rule, **learning, **options)
    loop = cfr.loop(local, average=self_play.Weights(1.0), alternating=alternating, figures=True)
    return finished(loop, arena, iterations)


def in_tables(tree, rule, learning, iterations, **options):
    with jax.enable_x64(True):
        arena = self_play.arena_of(tree, jnp.float64)
    learning = tally_learners.table(rule, baseline_rate=None, dtype=jnp.float64, **learning)
    average = self_play.Weights(1.0)
    loop = self_play.loop(learning, num_episodes=1, update="expected", average=average, **options)
    return finished(loop, arena, iterations)


def run(tree, iterations, step_size):
    """NeuRD on counterfactual advantages, which is CFR with Hedge: the current and the average policy."""
    with jax.enable_x64(True):
        arena = cfr.arena_of(tree, jnp.float64)
    learner = cfr.table(directions.neurd(), step_size=step_size, average_over="episodes")
    loop = cfr.loop(learner, average=self_play.Weights(), alternating=False)
    return finished(loop, arena, iterations)[0]


MAGNET = shaping.Magnet(0.3, directions.decaying(0.2, power=1.0, start=2.0))
OPTIONS = {
    "magnet": (directions.neurd(), {"magnet": MAGNET, "average_over": "episodes"}, {}),
    "cix": (directions.neurd_cix(0.1), {"average_over": "visits", "threshold": 0.4}, {"scale": 4.0}),
    "spg": (
        directions.spg(),
        {"entropy_cost": 0.2, "average_over": "episodes"},
        {"weights": "realization"},
    ),
    "mean": (directions.neurd(), {"average_over": "visits", "magnet": MAGNET}, {"weights": "realization"}),
}
THREE = pytest.param("kuhn_poker(players=3)", marks=pytest.mark.thorough)


@pytest.mark.parametrize("name", ["kuhn_poker", THREE])
@pytest.mark.parametrize("which", OPTIONS)
def test_slots_are_the_table_that_learns_from_tallies(which, name):
    rule, learning, options = OPTIONS[which]
    tree = openspiel.compile_game(name)
    both = [find(tree, rule, {"step_size": 0.7, **learning}, 9, **options) for find in (in_slots, in_tables)]
    np.testing.assert_allclose(both[0][0], both[1][0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(both[0][1], both[1][1], rtol=1e-9)


@pytest.mark.thorough
def test_a_turn_of_every_player_is_one_player_at_a_time():
    tree = openspiel.compile_game("kuhn_poker(players=3)")
    learning = {"step_size": 0.7, "magnet": shaping.Magnet(0.1, 0.0), "average_over": "visits"}
    turns, _ = in_slots(tree, directions.neurd(), learning, 4, alternating=True)
    single, _ = in_tables(tree, directions.neurd(), learning, 12, alternating=True)
    np.testing.assert_allclose(turns[0], single[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "kuhn_poker",
        *[pytest.param(name, marks=pytest.mark.slow) for name in ("kuhn_poker(players=3)", "leduc_poker")],
    ],
)
def test_updates_follow_exact_directions(name):
    """Three updates, step by step, from the directions and reaches of the sweeps over histories."""
    tree = openspiel.compile_game(name)
    logits, total = np.zeros(tree.legal.shape), np.zeros(tree.legal.shape)
    for _ in range(3):
        with jax.enable_x64(True):
            current = np.asarray(jax.vmap(policy.probabilities)(logits, tree.legal))
        found = exact.quantities(tree, current)
        own_reach = found.realization / found.counterfactual_realization
        total += own_reach[:, None] * current
        logits += 0.7 * exact.expected_direction(tree, current, "neurd", weights="counterfactual")
    with jax.enable_x64(True):
        current = np.asarray(jax.vmap(policy.probabilities)(logits, tree.legal))
    mine, average = run(tree, 3, 0.7)
    np.testing.assert_allclose(mine, current, atol=1e-12)
    np.testing.assert_allclose(average, total / total.sum(axis=1, keepdims=True), atol=1e-12)


@pytest.mark.thorough
def test_average_policy_of_a_matrix_game_is_the_plain_mean():
    game = matrix_game.zero_sum(matrix_game.BIASED_ROCK_PAPER_SCISSORS)
    _, average = run(game, 20_000, 0.02)
    np.testing.assert_allclose(average, [[0.25, 0.5, 0.25]] * 2, atol=0.01)


def test_average_policy_of_kuhn_poker_approaches_an_equilibrium():
    """Hedge's regret at each of the 12 states bounds NashConv, through CFR's theorem."""
    tree = openspiel.compile_game("kuhn_poker")
    iterations, step = 4_000, 0.05
    _, average = run(tree, iterations, step)
    # CFR's theorem: NashConv is at most the sum over states of regret / T, with counterfactual values
    # in an interval of width 4 times the others' reach, at most 4.
    bound = 12 * (np.log(2) / (step * iterations) + step * 4**2 / 8)
    assert exact.nash_conv(tree, average) < min(bound, 0.05)


def test_imperfect_recall_is_refused():
    with pytest.warns(UserWarning, match="observation strings stand in"):
        tree = openspiel.compile_game("deep_sea(size=3)")
    loop = self_play.loop(
        tally_learners.table(directions.neurd(), step_size=1.0), num_episodes=1, update="expected"
    )
    arena = self_play.arena_of(tree)
    state = loop.init(arena, key=jax.random.key(0))
    with pytest.raises(ValueError, match="expected updates need perfect recall"):
        loop.advance(arena, state, np.int32(1), jax.random.key(0))
    with pytest.raises(ValueError, match="has no perfect recall, which expected updates"):
        openspiel.NeuRDCIXSolver(tree)
