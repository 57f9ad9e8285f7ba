"""Policies cross the boundary in both directions unchanged."""

import copy
import itertools

import jax
import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score, exploitability

from pohp_neurd import exact, neural, openspiel
from pohp_neurd import policy as policy_module
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
    row = leduc.information_state_strings.index(state.information_state_string())
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


def first_decision(game):
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    return state


def test_a_state_that_a_policy_does_not_know_is_named(leduc, table, network):
    """States of other games, and of the same one with other strings or actions: never an answer made up."""
    policy = openspiel.TablePolicy(leduc, table)
    for name in ("kuhn_poker", "leduc_poker(players=3)", "tic_tac_toe"):
        state = first_decision(pyspiel.load_game(name))
        with pytest.raises(
            ValueError, match=r"^the policy of leduc_poker\(\) does not know the state '.*player 0"
        ):
            policy.action_probabilities(state)
        with pytest.raises(ValueError, match="does not know the state"):
            openspiel.NetworkPolicy(leduc, *network).action_probabilities(state)
        with pytest.raises(ValueError, match="does not know the state"):
            openspiel.bot(policy, 0).step(state)
    with pytest.raises(ValueError, match="says nothing of information state"):
        openspiel.to_tabular_policy(leduc, table).action_probabilities(
            first_decision(pyspiel.load_game("kuhn_poker"))
        )
    # Kuhn poker for two and for three share strings, but not whose turn it is.
    kuhn = openspiel.compile_game("kuhn_poker")
    for_two = openspiel_policy.TabularPolicy(pyspiel.load_game("kuhn_poker"))
    with pytest.raises(ValueError, match="says nothing of information state"):
        openspiel.table_of(openspiel.compile_game("kuhn_poker(players=3)"), for_two)
    state = first_decision(pyspiel.load_game("kuhn_poker(players=3)")).child(0).child(0)
    with pytest.raises(ValueError, match="of player 2 in kuhn_poker"):
        openspiel.TablePolicy(kuhn, exact.uniform(kuhn)).action_probabilities(state)


def test_a_network_computes_only_where_its_inputs_fit(leduc, network):
    """With other legal actions it is computed; suit isomorphism makes tensors of another size."""
    policy = openspiel.NetworkPolicy(leduc, *network)
    state = first_decision(pyspiel.load_game("leduc_poker(action_mapping=true)"))
    assert state.legal_actions() == [0, 1, 2]
    tensor = np.array(state.information_state_tensor(), np.float32)
    expected = policy_module.table(network[0].apply, network[1], tensor[None], np.ones((1, 3), bool))[0]
    found = list(policy.action_probabilities(state).values())
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="does not know the state"):
        policy.action_probabilities(
            first_decision(pyspiel.load_game("leduc_poker(suit_isomorphism=true,action_mapping=true)"))
        )


def test_tables_that_are_none(leduc, table):
    for wrong, sentence in (
        (np.full_like(table, np.nan), "holds a number that is not finite"),
        (np.zeros_like(table), "does not sum to 1"),
        (table[:-1], "must have the shape"),
        (table[None], "must have the shape"),
    ):
        with pytest.raises(ValueError, match=sentence):
            openspiel.TablePolicy(leduc, wrong)


def test_openspiel_reads_our_policies(leduc, table):
    game = pyspiel.load_game("leduc_poker")
    ours = openspiel.TablePolicy(leduc, table)
    tabular = ours.to_tabular()
    assert isinstance(tabular, openspiel_policy.TabularPolicy)
    expected = exact.nash_conv(leduc, table)
    cpp = openspiel_policy.python_policy_to_pyspiel_policy(tabular)
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


SIMULTANEOUS = ["matrix_rps", "goofspiel(num_cards=3,imp_info=True)", "oshi_zumo(coins=4,size=1,min_bid=1)"]


def joint_decisions(game):
    """Every state at which players move at the same time."""
    stack = [game.new_initial_state()]
    while stack:
        state = stack.pop()
        if state.is_terminal():
            continue
        if state.is_chance_node():
            stack += [state.child(outcome) for outcome, _ in state.chance_outcomes()]
            continue
        yield state
        choices = [state.legal_actions(player) or [0] for player in range(game.num_players())]
        for actions in itertools.product(*choices):
            child = state.clone()
            child.apply_actions(list(actions))
            stack.append(child)


@pytest.mark.parametrize("name", SIMULTANEOUS)
def test_a_table_answers_where_players_move_at_the_same_time(name):
    """Random tables: the values of joint play are those of play in turns, and every row is met."""
    game = pyspiel.load_game(name)
    tree = openspiel.compile_game(game)
    weights = np.random.default_rng(1).exponential(size=tree.legal.shape) * tree.legal
    table = weights / weights.sum(axis=1, keepdims=True)
    ours, tabular = openspiel.TablePolicy(tree, table), openspiel.to_tabular_policy(tree, table)
    expected = exact.expected_returns(tree, table)
    met = set()
    for policy in (ours, tabular, copy.copy(tabular)):
        found = expected_game_score.policy_value(game.new_initial_state(), policy)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    for state in joint_decisions(game):
        for player in range(2):
            answer = ours.action_probabilities(state, player)
            assert answer == tabular.action_probabilities(state, player)
            if state.legal_actions(player):
                assert list(answer) == state.legal_actions(player)
                met.add(tuple(np.round(list(answer.values()), 12).tolist()))
                assert dict(openspiel.bot(ours, player).get_policy(state)) == pytest.approx(answer)
    rows = {tuple(np.round(row[legal], 12).tolist()) for row, legal in zip(table, tree.legal, strict=True)}
    assert met == rows
    assert exploitability.nash_conv(game, tabular) == pytest.approx(exact.nash_conv(tree, table), abs=1e-9)


def test_rock_stays_rock():
    tree = openspiel.compile_game("matrix_rps")
    rock = np.tile([1.0, 0.0, 0.0], (2, 1))
    policy = openspiel.TablePolicy(tree, rock)
    start = pyspiel.load_game("matrix_rps").new_initial_state()
    for player in (0, 1):
        assert policy.action_probabilities(start, player) == {0: 1.0, 1: 0.0, 2: 0.0}
        assert openspiel.bot(policy, player).step(start) == 0
    with pytest.raises(ValueError, match="say for which of them, with player_id"):
        policy.action_probabilities(start)
    with pytest.raises(ValueError, match=r"matrix_rps\(\)\) does not know states of matrix_brps\(\)"):
        policy.action_probabilities(pyspiel.load_game("matrix_brps").new_initial_state(), 0)
    with pytest.raises(ValueError, match="where C\\+\\+ policies do not answer"):
        openspiel.bot(openspiel.to_pyspiel_policy(tree, rock), 0).step(start)
