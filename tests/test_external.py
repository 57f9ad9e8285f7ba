"""External sampling: what is drawn says on average what exact values say, and without draws exactly that."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import directions, openspiel, self_play, tally_learners
from pohp_neurd.experiment import game_config
from pohp_neurd.finite import external

SAMPLES = 4_000


def random_policy(tree, seed):
    weights = np.where(tree.legal, np.random.default_rng(seed).exponential(size=tree.legal.shape), 0.0)
    return jnp.asarray(weights / weights.sum(axis=1, keepdims=True), jnp.float32)


def uniform(tree):
    return jnp.asarray(tree.legal / tree.legal.sum(axis=1, keepdims=True), jnp.float32)


def exact(arena, table, trying):
    """As if actions had been drawn from `trying`; `table` is nowhere 0 where it is asked about."""
    tally, _ = self_play.expected_tally(arena, table, "counterfactual")
    ratio = np.where(table > 0, trying / np.where(table > 0, table, 1.0), 0.0)
    return np.stack([tally.returns * ratio, tally.visits * ratio], axis=-1)


@pytest.mark.parametrize("game", ["kuhn_poker", "kuhn_poker(players=3)", "leduc_poker"])
def test_on_average_it_says_what_exact_values_say(game):
    """Within five standard errors, wherever a hundredth of the samples comes: their error can be told."""
    tree = openspiel.compile_game(game)
    arena, table = self_play.arena_of(tree), random_policy(tree, 1)
    agents, batches, trying = range(tree.num_agents), 40, random_policy(tree, 6)
    draw = jax.jit(lambda key: external.tally(arena.line, table, trying, agents, SAMPLES // batches, key=key))
    found = [draw(key) for key in jax.random.split(jax.random.key(2), batches)]
    each = np.stack([np.stack([one.returns, one.visits], axis=-1) for one in found]) / (SAMPLES // batches)
    error = each.std(axis=0, ddof=1) / np.sqrt(batches)
    wanted = exact(arena, table, trying)
    often = wanted[..., 1] > 0.01
    assert often.sum() > 10
    assert np.all((np.abs(each.mean(axis=0) - wanted) <= 5 * error)[often])
    assert np.any((np.abs(wanted[..., 0]) > 10 * error[..., 0])[often])  # or the bound says nothing


def test_where_nothing_is_left_to_draw_it_is_exact():
    """Others that always do the same, and no chance: every sample is the whole truth."""
    tree = openspiel.compile_game("turn_based_simultaneous_game(game=matrix_rps())")
    arena = self_play.arena_of(tree)
    table = np.asarray(random_policy(tree, 3)).copy()
    table[tree.states_of(1)] = [0.0, 1.0, 0.0]
    table = jnp.asarray(table)
    found = external.tally(arena.line, table, uniform(tree), [0], 7, key=jax.random.key(4))
    mine = tree.states_of(0)
    np.testing.assert_allclose(
        found.returns[mine] / 7, exact(arena, table, uniform(tree))[mine, :, 0], atol=1e-6
    )
    np.testing.assert_allclose(found.visits[mine] / 7, uniform(tree)[mine], atol=1e-6)
    assert not np.any(found.visits[tree.states_of(1)])


def test_one_sample_leads_chance_and_others_to_one_child_each():
    """So in Kuhn poker, one deal: an agent is met with one card, and by one line of play of the other."""
    tree = openspiel.compile_game("kuhn_poker")
    arena, table = self_play.arena_of(tree), random_policy(tree, 5)
    for seed in range(20):
        found = external.tally(arena.line, table, table, [0], 1, key=jax.random.key(seed))
        met = np.flatnonzero(np.asarray(found.visits).sum(axis=1))
        names = [tree.information_state_strings[row] for row in met]
        assert len({name[0] for name in names}) == 1
        assert 1 <= len(names) <= 2


@pytest.mark.thorough
def test_seeds_make_different_draws_and_agents_learn():
    solvers = [
        openspiel.NeuRDCIXSolver("kuhn_poker", update="sampled", sampling="external", seed=seed)
        for seed in (0, 0, 1)
    ]
    for solver in solvers:
        solver.evaluate_and_update_policy(2_000)
    same, again, other = (solver.nash_conv() for solver in solvers)
    assert same == again != other
    assert max(same, other) < 0.05
    assert solvers[0].decisions > 2_000


@pytest.mark.thorough
@pytest.mark.parametrize(("learner", "bar"), [("rm_plus", 0.03), ("regret_matching", 0.06)])
def test_minimizers_hear_of_actions_that_they_never_take(learner, bar):
    """Regret matching leaves actions out altogether: told nothing of them, it would stay where it is."""
    options = {"update": "sampled", "sampling": "external", "learner": learner}
    solver = openspiel.NeuRDCIXSolver("kuhn_poker", **options)
    solver.evaluate_and_update_policy(2_000)
    assert solver.nash_conv() < bar


def test_it_is_refused_where_it_makes_no_sense():
    learner = tally_learners.table(directions.neurd(), step_size=1.0)
    with pytest.raises(ValueError, match="sampling=external is for update=sampled"):
        self_play.loop(learner, num_episodes=1, sampling="external", update="expected")
    with pytest.raises(ValueError, match="sampling=external is for sampled updates on a tree"):
        openspiel.NeuRDCIXSolver("kuhn_poker", sampling="external")
    config = game_config.Config(game="kuhn_poker", sampling="external")
    with pytest.raises(ValueError, match="sampling=external takes a tree, which a graph run has not"):
        game_config.resolved(config, "graph")
    with pytest.raises(ValueError, match="baseline_of is not read by sampling=external"):
        game_config.refuse_unread(config, ["baseline_of"])
    with pytest.raises(ValueError, match="sampling must be one of outcome, external"):
        openspiel.NeuRDCIXSolver("kuhn_poker", update="sampled", sampling="robust")
