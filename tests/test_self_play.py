"""Self-play: expected updates against exact directions, sampled ones against expected ones, resumption."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import directions, exact, openspiel, policy, self_play, tally_learners
from pohp_neurd.finite import rollout, tree_builder
from pohp_neurd.finite import tree as trees

SHIFTED = "kuhn_poker(players=3)"


@functools.cache
def arena_of(name):
    tree = openspiel.compile_game(name)
    with jax.enable_x64(True):
        return tree, self_play.arena_of(tree, jnp.float64)


def some_policy(tree, seed=0):
    rng = np.random.default_rng(seed)
    table = np.where(tree.legal, rng.dirichlet(np.ones(tree.num_actions), len(tree.legal)), 0.0)
    return table / table.sum(axis=1, keepdims=True)


@pytest.mark.thorough
@pytest.mark.parametrize("weights", ["realization", "counterfactual"])
@pytest.mark.parametrize("name", ["kuhn_poker", SHIFTED])
def test_expected_tallies_make_exact_directions(name, weights):
    tree, arena = arena_of(name)
    table = some_policy(tree)
    with jax.enable_x64(True):
        legal = jnp.asarray(tree.legal)
        expect = jax.jit(self_play.expected_tally, static_argnums=2)
        tally, _ = expect(arena, jnp.asarray(table), weights)
        for learner, exploration in (("spg", 1.0), ("neurd", 0.0), ("neurd_cix", 0.1), ("neurd_cix", 1.0)):
            rule = directions.rule(learner, exploration)
            add = jax.jit(
                jax.vmap(directions.summed_direction, in_axes=(None, 0, 0, 0, None)), static_argnums=0
            )
            found = add(rule, jnp.asarray(table), tally.returns, legal, rule.exploration(0))
            expected = exact.expected_direction(
                tree, table, learner, exploration, weights=weights, baseline="value"
            )
            np.testing.assert_allclose(found, expected, atol=1e-12)
        known = exact.quantities(tree, table)
        reach = known.realization if weights == "realization" else known.counterfactual_realization
        np.testing.assert_allclose(tally.visits, reach[:, None] * table, atol=1e-12)


def loop_for(rule, *, step_size=2.0, num_episodes=64, average=None, **options):
    learner = tally_learners.table(rule, step_size=step_size)
    return self_play.loop(
        learner, num_episodes=num_episodes, average=average or self_play.Weights(1.0), **options
    )


def test_sampled_tallies_are_expected_ones_on_average():
    """200 batches of 500 episodes: means within 5 standard errors, at every state and action."""
    tree, arena = arena_of("kuhn_poker")
    table = 0.5 * some_policy(tree) + 0.5 * exact.uniform(tree)  # nothing so rare that it never happens

    @jax.jit
    def batch(key):
        return rollout.tally(
            arena.board, rollout.play(arena.board, jnp.asarray(table, jnp.float32), 500, key=key)
        )

    tallies = [jax.tree.map(np.asarray, batch(jax.random.key(seed))) for seed in range(200)]
    found = exact.quantities(tree, table)
    visits = found.realization[:, None] * table
    returns = visits * found.shifted_action_value
    for truth, name in ((visits, "visits"), (returns, "returns")):
        samples = np.stack([getattr(tally, name) for tally in tallies]) / 500
        errors = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
        assert np.all(np.abs(samples.mean(axis=0) - truth) <= 5 * errors + 1e-9)


def test_cutting_a_run_into_calls_changes_nothing(count_compilations):
    _, arena = arena_of("kuhn_poker")
    loop = loop_for(directions.neurd_cix(0.1))
    key = jax.random.key(3)
    with jax.enable_x64(True):
        start = loop.init(arena, key=jax.random.key(0))
        whole = loop.advance(arena, start, np.int32(9), key)
        with count_compilations() as seen:
            parts = start
            for updates in (2, 1, 6):
                parts = loop.advance(arena, parts, np.int32(updates), key)
        assert seen.count == 0
    for a, b in zip(
        jax.tree.leaves(whole._replace(steps=0)), jax.tree.leaves(parts._replace(steps=0)), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    assert int(parts.updates) == 9
    # 64 episodes of two or three decisions in each of the last six updates.
    assert 6 * 64 * 2 <= int(parts.steps) <= 6 * 64 * 3


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("weights", "share"),
    [
        (self_play.Weights(), lambda t, count: 1.0),
        (self_play.Weights(power=1.0), lambda t, count: t + 1.0),
        (self_play.Weights(forgetting=0.25), lambda t, count: 0.75 ** (count - 1 - t)),
    ],
)
def test_the_average_policy_weighs_with_own_reach_and_time(weights, share):
    tree, arena = arena_of("kuhn_poker")
    loop = loop_for(directions.neurd_cix(0.2), step_size=20.0, average=weights)
    total = np.zeros(tree.legal.shape)
    with jax.enable_x64(True):
        state = loop.init(arena, key=jax.random.key(0))
        for update in range(5):
            table = np.asarray(loop.policies(arena, state), np.float64)
            found = exact.quantities(tree, table / table.sum(axis=1, keepdims=True))
            reach = found.realization / found.counterfactual_realization
            total += share(update, 5) * reach[:, None] * table
            state = loop.advance(arena, state, np.int32(1), jax.random.key(1))
        assert state.total[0].dtype == jnp.float64
        average = loop.average(arena, state)
    np.testing.assert_allclose(average, total / total.sum(axis=1, keepdims=True), atol=1e-6)


@pytest.mark.thorough
def test_alternating_updates_move_one_agent_at_a_time():
    tree, arena = arena_of("kuhn_poker")
    loop = loop_for(directions.neurd_cix(0.1), alternating=True)
    with jax.enable_x64(True):
        state = loop.init(arena, key=jax.random.key(0))
        for update in range(3):
            before = np.asarray(loop.policies(arena, state))
            state = loop.advance(arena, state, np.int32(1), jax.random.key(1))
            moved = np.any(np.asarray(loop.policies(arena, state)) != before, axis=1)
            assert set(tree.state_player[moved]) == {update % 2}


@pytest.mark.thorough
def test_scaled_returns_are_a_smaller_step_with_a_stronger_magnet():
    _, arena = arena_of("kuhn_poker")
    with jax.enable_x64(True):
        tables = []
        for scale, step_size in ((4.0, 8.0), (1.0, 2.0)):
            loop = loop_for(directions.neurd_cix(0.1), step_size=step_size, scale=scale)
            state = loop.init(arena, key=jax.random.key(0))
            tables.append(loop.policies(arena, loop.advance(arena, state, np.int32(5), jax.random.key(1))))
        np.testing.assert_allclose(*tables, atol=1e-5)


def test_divergence_names_its_first_update():
    _, arena = arena_of("kuhn_poker")
    learner = tally_learners.table(directions.neurd(), step_size=lambda t: jnp.where(t < 3, 0.1, jnp.inf))
    loop = self_play.loop(learner, num_episodes=32)
    with jax.enable_x64(True):
        state = loop.init(arena, key=jax.random.key(0))
        assert int(loop.advance(arena, state, np.int32(3), jax.random.key(1)).diverged) == self_play.NEVER
        assert int(loop.advance(arena, state, np.int32(8), jax.random.key(1)).diverged) == 3


def trained(name, updates, **options):
    return trained_on(arena_of(name)[0], updates, **options)


def trained_on(tree, updates, *, rule=None, step_size=0.5, **options):
    arena = self_play.arena_of(tree)
    loop = loop_for(rule or directions.neurd_cix(0.1), step_size=step_size, num_episodes=256, **options)
    with jax.enable_x64(True):
        state = loop.init(arena, key=jax.random.key(0))
        state = loop.advance(arena, state, np.int32(updates), jax.random.key(1))
        return tree, np.asarray(loop.policies(arena, state)), np.asarray(loop.average(arena, state))


@pytest.mark.thorough
def test_prisoners_defect():
    tree, current, average = trained("matrix_pd", 400)
    for table in (current, average):
        assert np.all(table[:, 1] > 0.95), table
    assert exact.nash_conv(tree, current.astype(np.float64)) < 0.5  # NashConv of uniform play is 5


def test_an_agent_that_often_has_no_turn_learns():
    """Agent 0 stops for 1, or goes on to agent 1, who shares (2, 1) or takes (0, 2): so it learns to stop."""
    ends = {"s": (1.0, 0.0), "gs": (2.0, 1.0), "gt": (0.0, 2.0)}

    def describe(node):
        if node in ends:
            return tree_builder.Node(trees.TERMINAL, ends[node])
        return tree_builder.Node(len(node), (0.0, 0.0), information_state=node, actions=(0, 1))

    tree = tree_builder.grow(
        "",
        describe,
        lambda node, action: node + ("sg" if not node else "st")[action],
        num_agents=2,
        num_actions=2,
    )
    _, current, _ = trained_on(tree, 400)
    assert current[0, 0] > 0.99
    # Once agent 0 stops, agent 1 is hardly ever asked: over twelve keys it ended at 0.885 to 0.915.
    assert current[1, 1] > 0.8


@pytest.mark.thorough
def test_three_players_learn():
    tree, _, average = trained(SHIFTED, 1_500, step_size=2.0)
    assert exact.nash_conv(tree, exact.uniform(tree)) == pytest.approx(2.0625)
    assert exact.nash_conv(tree, average) < 0.5


def test_expected_neurd_finds_kuhn_pokers_value():
    tree, _, average = trained(
        "kuhn_poker", 10_000, rule=directions.neurd(), step_size=0.25, update="expected"
    )
    assert exact.nash_conv(tree, average) < 0.01
    assert exact.expected_returns(tree, average)[0] == pytest.approx(-1 / 18, abs=3e-3)


def test_bad_input():
    learner = tally_learners.table(directions.spg(), step_size=1.0)
    with pytest.raises(ValueError, match="num_episodes must be at least 1, but is 0"):
        self_play.loop(learner, num_episodes=0)
    with pytest.raises(ValueError, match="update must be one of"):
        self_play.loop(learner, num_episodes=1, update="guessed")
    with pytest.raises(ValueError, match="average power"):
        self_play.Weights(power=-1.0)


def test_the_policies_are_the_softmax_of_the_outputs():
    tree, arena = arena_of("kuhn_poker")
    loop = loop_for(directions.spg())
    with jax.enable_x64(True):
        state = loop.init(arena, key=jax.random.key(0))
        state = loop.advance(arena, state, np.int32(2), jax.random.key(1))
        expected = jax.vmap(policy.probabilities)(state.learner.table.logits, tree.legal)
        np.testing.assert_allclose(loop.policies(arena, state), expected, rtol=1e-6)
