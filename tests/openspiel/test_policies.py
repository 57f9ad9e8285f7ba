"""Policies cross the boundary in both directions unchanged."""

import jax
import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python import policy as python_policy
from open_spiel.python.algorithms import expected_game_score

from pohp_neurd import exact, neural, openspiel
from pohp_neurd.openspiel import policies


@pytest.fixture(scope="module")
def leduc():
    return openspiel.compile_game("leduc_poker")


@pytest.fixture(scope="module")
def network(leduc):
    model = neural.network(leduc.features.shape[1], leduc.num_actions, torso=(16,))
    return model, model.init(key=jax.random.key(0))


@pytest.fixture(scope="module")
def table(leduc):
    weights = np.random.default_rng(0).exponential(size=leduc.legal.shape) * leduc.legal
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "convert", [openspiel.to_tabular_policy, openspiel.to_pyspiel_policy, openspiel.TablePolicy]
)
def test_there_and_back(leduc, table, convert):
    np.testing.assert_allclose(openspiel.table_of(leduc, convert(leduc, table)), table, atol=1e-15)


def test_three_players_there_and_back():
    tree = openspiel.compile_game("kuhn_poker(players=3)")
    policy = exact.uniform(tree)
    np.testing.assert_array_equal(openspiel.table_of(tree, openspiel.to_tabular_policy(tree, policy)), policy)


def test_network_in_one_pass_equals_state_by_state(leduc, network):
    model, parameters = network
    table = openspiel.table_of(leduc, network)
    state = pyspiel.load_game("leduc_poker").new_initial_state().child(0).child(3)
    row = policies.rows_by_string(leduc)[0, state.information_state_string()]
    logits = np.asarray(
        model.apply(parameters, np.array(state.information_state_tensor(), np.float32)).logits
    )
    legal = state.legal_actions()
    expected = np.exp(logits[legal]) / np.exp(logits[legal]).sum()
    np.testing.assert_allclose(table[row, legal], expected, rtol=1e-5)


def test_one_network_for_each_player(leduc, network):
    model, parameters = network
    other = jax.jit(model.init)(key=jax.random.key(1))
    table = openspiel.table_of(leduc, [(model, parameters), (model, other)])
    first, second = leduc.states_of(0), leduc.states_of(1)
    np.testing.assert_array_equal(table[first], openspiel.table_of(leduc, (model, parameters))[first])
    np.testing.assert_array_equal(table[second], openspiel.table_of(leduc, (model, other))[second])
    with pytest.raises(ValueError, match="has 2 players, but 1 networks"):
        openspiel.table_of(leduc, [(model, parameters)])


def test_probabilities_are_float64_and_sum_to_one(leduc, network):
    """OpenSpiel's samplers refuse float32 probabilities on most states of Leduc poker."""
    policy = openspiel.NetworkPolicy(leduc, *network)
    for state in policies.witness_states(leduc)[::7]:
        for player in (None, state.current_player()):
            probabilities = policy.action_probabilities(state, player)
            assert list(probabilities) == state.legal_actions()
            assert sum(probabilities.values()) == pytest.approx(1.0, abs=1e-12)
        policy.sample_action(state)


def test_states_off_the_tree(network):
    """A tree of one variant, asked about states of a game with other strings: the network still answers."""
    tree = openspiel.compile_game("leduc_poker")
    foreign = pyspiel.load_game("leduc_poker(suit_isomorphism=true)")
    state = foreign.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    uniform = openspiel.TablePolicy(tree, exact.uniform(tree))
    renamed = {key: row for key, row in uniform._rows.items() if key[0] == 1}
    uniform._rows = renamed
    assert uniform.action_probabilities(state) == {1: 0.5, 2: 0.5}


def test_network_answers_where_the_tree_does_not(leduc, network):
    policy = openspiel.NetworkPolicy(leduc, *network)
    state = policies.witness_states(leduc)[5]
    looked_up = policy.action_probabilities(state)
    policy._rows = {}
    computed = policy.action_probabilities(state)
    assert computed == pytest.approx(looked_up, rel=1e-5)


def test_openspiel_reads_our_policies(leduc, table):
    game = pyspiel.load_game("leduc_poker")
    ours = openspiel.TablePolicy(leduc, table)
    tabular = ours.to_tabular()
    assert isinstance(tabular, openspiel_policy.TabularPolicy)
    expected = exact.nash_conv(leduc, table)
    cpp = python_policy.python_policy_to_pyspiel_policy(tabular)
    assert pyspiel.nash_conv(game, cpp) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["matrix_brps", "goofspiel(num_cards=3,imp_info=True)"])
def test_policies_of_simultaneous_games_are_read_where_players_move_in_turn(name):
    game = pyspiel.load_game(name)
    tree = openspiel.compile_game(game)
    tabular = openspiel_policy.TabularPolicy(game)
    rng = np.random.default_rng(0)
    weights = rng.exponential(size=tabular.action_probability_array.shape) * tabular.legal_actions_mask
    tabular.action_probability_array = weights / weights.sum(axis=1, keepdims=True)
    table = openspiel.table_of(tree, tabular)
    # Each player's expected return, by OpenSpiel's own recursion over joint moves.
    root = game.new_initial_state()
    expected = expected_game_score.policy_value(root, tabular)
    np.testing.assert_allclose(exact.expected_returns(tree, table), expected, atol=1e-9)
    uniform = openspiel.nash_conv(game, openspiel_policy.UniformRandomPolicy(game))
    assert uniform == pytest.approx(exact.nash_conv(tree, exact.uniform(tree)), abs=1e-12)
