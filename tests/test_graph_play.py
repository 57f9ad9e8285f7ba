"""Play and exact sweeps on graphs, against the tree of the same game."""

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score
from scipy import stats

from pohp_neurd import exact, openspiel
from pohp_neurd.finite import graph, rollout
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import policies

play = jax.jit(rollout.play, static_argnames="num_episodes")
LIARS_DICE = "liars_dice(dice_sides=3)"
WITH_REWARDS = (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=3,points_order=descending))"
)


def random_table(world, seed):
    weights = np.where(world.legal, np.random.default_rng(seed).exponential(size=world.legal.shape), 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def lifted(tree, world, table):
    """The table of a graph's agent states for the tree's information states, through OpenSpiel's states."""
    return openspiel.table_of(tree, openspiel.MemoryPolicy(world, table))


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        *(
            (name, "observation")
            for name in ("kuhn_poker(players=3)", "leduc_poker", LIARS_DICE, WITH_REWARDS)
        ),
        ("leduc_poker", "window:1"),
        (LIARS_DICE, "window:2"),
    ],
)
def test_expected_tallies_are_those_of_all_histories(name, memory):
    """Every history of the tree, weighted by its reach, adds to the agent state that it is in."""
    tree = openspiel.compile_game(name)
    world = openspiel.compile_game(name, agent_state=memory)
    table = random_table(world, 0)
    same = lifted(tree, world, table)
    found = exact.quantities(tree, same)
    origin, states = compiling.origin_of(world), policies.witness_states(tree)
    row_of = np.array([origin.row(state, state.current_player()) for state in states])
    visits = np.zeros(table.shape)
    values = np.zeros(table.shape)
    np.add.at(visits, row_of, found.realization[:, None] * same)
    np.add.at(values, row_of, found.realization[:, None] * found.action_value)
    state_value = np.sum(table * values, axis=1, keepdims=True)
    with jax.enable_x64(True):
        field = graph.field(world, jnp.float64)
        tally = jax.jit(graph.expected_tally)(field, jnp.asarray(table), jnp.asarray(world.legal))
    np.testing.assert_allclose(tally.visits, visits, atol=1e-12)
    np.testing.assert_allclose(
        tally.returns, np.where(world.legal, table * (values - state_value), 0.0), atol=1e-12
    )


def test_a_last_level_that_pays_nothing():
    """By hand: the second agent may end the game with (-1, 1), or let the first end it with nothing."""
    world = graph.Graph(
        num_agents=2,
        num_actions=2,
        levels=np.array([0, 1, 2]),
        player=np.array([1, 0], np.int32),
        agent_state=np.array([1, 0], np.int32),
        seen=np.array([1, 0], np.int32),
        first_edge=np.array([0, 2, 4]),
        action=np.array([0, 1, 0, 1], np.int32),
        child=np.array([-1, 1, -1, -1], np.int32),
        chance=np.ones(4),
        rewards=np.array([[-1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        state_player=np.array([0, 1], np.int32),
        legal=np.ones((2, 2), bool),
        features=np.zeros((2, 1), np.float32),
    )
    tally = graph.expected_tally(graph.field(world), jnp.full((2, 2), 0.5), jnp.ones((2, 2), bool))
    np.testing.assert_allclose(tally.returns, [[0.0, 0.0], [0.25, -0.25]], atol=1e-6)
    np.testing.assert_allclose(tally.visits, [[0.25, 0.25], [0.5, 0.5]], atol=1e-6)


@pytest.mark.parametrize("name", ["leduc_poker", LIARS_DICE, WITH_REWARDS])
def test_sampled_tallies_agree_with_expected_ones(name):
    """200,000 episodes: visits and returns of every agent state within 5 standard errors."""
    world = openspiel.compile_game(name, agent_state="observation")
    table = random_table(world, 1)
    board = rollout.board(world)
    count = 200_000
    episodes = play(board, jnp.asarray(table, jnp.float32), num_episodes=count, key=jax.random.key(0))
    tally = jax.jit(rollout.tally)(board, episodes)
    with jax.enable_x64(True):
        exactly = jax.jit(graph.expected_tally)(
            graph.field(world, jnp.float64), jnp.asarray(table), jnp.asarray(world.legal)
        )
    expected = np.asarray(exactly.visits)
    # No agent state comes twice in these games, so that visits are binomial.
    error = np.sqrt(expected * (1 - np.minimum(expected, 1)) / count)
    assert np.all(np.abs(np.asarray(tally.visits) / count - expected) <= 5 * error + 1e-9)
    assert np.all(np.asarray(tally.returns) <= 0)
    mean = np.asarray(tally.returns).sum() / count
    total = exact.expected_returns(world, table) - world.best_return_to_go[0]
    assert np.asarray(tally.returns).shape == table.shape
    assert mean < 0
    ends = np.asarray(board.returns)[np.asarray(episodes.end)]
    spread = ends.std(axis=0) / np.sqrt(count)
    assert np.all(np.abs(ends.mean(axis=0) - total) <= 5 * spread + 1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["kuhn_poker", LIARS_DICE])
def test_play_has_the_distribution_of_openspiel(name):
    """Terminal returns of 100,000 episodes here and 5,000 in pyspiel: chi-square of the joint table."""
    world = openspiel.compile_game(name, agent_state="observation")
    table = random_table(world, 2)
    board = rollout.board(world)
    episodes = play(board, jnp.asarray(table, jnp.float32), num_episodes=100_000, key=jax.random.key(1))
    ours = np.asarray(board.returns)[np.asarray(episodes.end)][:, 0] + world.best_return_to_go[0, 0]
    policy = openspiel.MemoryPolicy(world, table)
    rng = np.random.default_rng(3)
    game = pyspiel.load_game(name)
    theirs = []
    for _ in range(5_000):
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes = dict(state.chance_outcomes())
            else:
                outcomes = policy.action_probabilities(state)
            state.apply_action(int(rng.choice(list(outcomes), p=list(outcomes.values()))))
        theirs.append(state.returns()[0])
    values = np.unique(np.round(np.concatenate([ours, theirs]), 4))
    counts = [[np.sum(np.isclose(sample, value, atol=1e-3)) for value in values] for sample in (ours, theirs)]
    assert stats.chi2_contingency(counts).pvalue > 1e-6


def test_a_policy_that_remembers_is_one_of_openspiels():
    """Its score in OpenSpiel is the expected return here, and so is that of its tabular form."""
    game = pyspiel.load_game("kuhn_poker")
    world = openspiel.compile_game(game, agent_state="window:1")
    table = random_table(world, 4)
    policy = openspiel.MemoryPolicy(world, table)
    expected = exact.expected_returns(world, table)
    score = expected_game_score.policy_value(game.new_initial_state(), [policy, policy])
    np.testing.assert_allclose(score, expected, atol=1e-12)
    tabular = openspiel_policy.tabular_policy_from_callable(game, policy.action_probabilities)
    assert openspiel.nash_conv(game, tabular) == pytest.approx(exact.nash_conv(world, table), abs=1e-12)


def test_states_that_a_graph_does_not_know_are_named():
    world = openspiel.compile_game("kuhn_poker", agent_state="observation")
    policy = openspiel.MemoryPolicy(world, exact.uniform(world))
    other = pyspiel.load_game("leduc_poker").new_initial_state()
    for action in (0, 1):
        other.apply_action(action)
    with pytest.raises(ValueError, match="does not know"):
        policy.action_probabilities(other)
    with pytest.raises(ValueError, match="table must have the shape"):
        openspiel.MemoryPolicy(world, exact.uniform(world)[:2])


@pytest.mark.parametrize("update", ["expected", "sampled"])
def test_the_solver_on_a_graph(update):
    """With perfect recall in Kuhn poker it comes to the equilibrium, and its policy plays in OpenSpiel."""
    world = openspiel.compile_game("kuhn_poker", agent_state="observation")
    solver = openspiel.NeuRDCIXSolver(world, update=update)
    solver.evaluate_and_update_policy(1_000)
    assert solver.nash_conv() < 0.05
    assert solver.nash_conv() == solver.nash_conv("current")
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    assert sum(solver.current_policy().action_probabilities(state).values()) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="agents that forget have no average policy"):
        solver.average_policy()


@pytest.mark.parametrize("game", ["kuhn_poker", WITH_REWARDS])
def test_quantities_on_a_graph_are_what_one_episode_says_on_average(game):
    world = openspiel.compile_game(game, agent_state="observation")
    table = random_table(world, 8)
    found = exact.quantities(world, table)
    with jax.enable_x64(True):
        field = graph.field(world, jnp.float64)
        tally = graph.expected_tally(field, jnp.asarray(table), jnp.asarray(world.legal))
    np.testing.assert_allclose(found.realization[:, None] * table, tally.visits, atol=1e-12)
    direction = exact.expected_direction(world, table, "spg")
    np.testing.assert_allclose(direction, tally.returns, atol=1e-12)
    np.testing.assert_allclose(found.history_value[0], exact.expected_returns(world, table), atol=1e-12)


def test_quantities_on_a_graph_without_merging_are_those_of_the_tree():
    tree = openspiel.compile_game("kuhn_poker")
    world = openspiel.compile_game("kuhn_poker", agent_state="information_state")
    table = random_table(world, 9)
    on_tree, on_graph = exact.quantities(tree, lifted(tree, world, table)), exact.quantities(world, table)
    for name in ("value", "realization", "counterfactual_realization"):
        np.testing.assert_allclose(
            np.sort(getattr(on_tree, name)), np.sort(getattr(on_graph, name)), atol=1e-12, err_msg=name
        )
