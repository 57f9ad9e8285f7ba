"""The joint policy of agents in OpenSpiel's algorithms, and the agent as PSRO's oracle."""

import importlib
import sys

import numpy as np
import openspiel_loops as loops
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import exploitability, get_all_states, policy_aggregator
from open_spiel.python.bots import policy as policy_bots

from pohp_neurd import openspiel

GOOFSPIEL = "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=4,points_order=descending))"
GAMES = ("kuhn_poker", "leduc_poker", GOOFSPIEL)


def trained(name, episodes=20, observation_type=None, **keywords):
    game = pyspiel.load_game(name)
    env = loops.environment(game, 1, observation_type=observation_type)
    agents = loops.agents_for(env, **keywords)
    loops.play(env, agents, episodes)
    return game, agents


@pytest.mark.thorough
@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("network", ["mlp", "table"])
def test_openspiels_conventions_of_policies(name, network):
    """OpenSpiel's policy_test.test_policy_on_game, and its sampler at every state."""
    game, agents = trained(name, network=network)
    joint = openspiel.JointPolicy(game, agents)
    states = get_all_states.get_all_states(
        game,
        depth_limit=-1,
        include_terminals=False,
        include_chance_states=False,
        to_string=lambda state: state.information_state_string(),
    )
    for state in states.values():
        answer = joint.action_probabilities(state)
        assert answer == joint.action_probabilities(state, state.current_player()) == joint(state)
        assert list(answer) == state.legal_actions()
        assert sum(answer.values()) == pytest.approx(1, abs=1e-14)
        assert min(answer.values()) >= 0
        assert all(type(probability) is float for probability in answer.values())
        assert joint.sample_action(state) in answer


@pytest.mark.thorough
@pytest.mark.parametrize("name", GAMES)
def test_tabular_form_and_every_nash_conv(name):
    game, agents = trained(name)
    joint = openspiel.JointPolicy(game, agents)
    tabular = joint.to_tabular()
    ours = openspiel.nash_conv(game, tabular)
    assert pyspiel.nash_conv(
        game, openspiel_policy.python_policy_to_pyspiel_policy(tabular)
    ) == pytest.approx(ours)
    if name != "leduc_poker":  # state by state, which takes its time
        slow = openspiel_policy.Policy.to_tabular(joint)
        np.testing.assert_allclose(tabular.action_probability_array, slow.action_probability_array, atol=1e-7)
        assert tabular.state_lookup == slow.state_lookup
        assert openspiel.nash_conv(game, joint) == pytest.approx(ours, abs=1e-6)
        assert exploitability.nash_conv(game, joint) == pytest.approx(ours, abs=1e-6)


def test_other_algorithms_take_it():
    game, agents = trained("kuhn_poker")
    joint = openspiel.JointPolicy(game, agents)
    aggregated = policy_aggregator.PolicyAggregator(game).aggregate(
        [0, 1], [[joint], [joint]], [[1.0], [1.0]]
    )
    assert openspiel.nash_conv(game, aggregated) == pytest.approx(openspiel.nash_conv(game, joint), abs=1e-6)
    state = game.new_initial_state()
    state.apply_action(0)
    state.apply_action(1)
    bot = policy_bots.PolicyBot(0, np.random.RandomState(0), joint)
    assert {bot.step(state) for _ in range(50)} == {0, 1}


def test_one_agent_for_all_seats():
    game, (agent, _) = trained("kuhn_poker")
    state = game.new_initial_state()
    state.apply_action(2)
    state.apply_action(0)
    one, seats = openspiel.JointPolicy(game, agent), openspiel.JointPolicy(game, agent.seats(2))
    assert one.player_ids == seats.player_ids == [0, 1]
    assert one.action_probabilities(state) == seats.action_probabilities(state)
    state.apply_action(1)
    assert one.action_probabilities(state) == seats.action_probabilities(state)


@pytest.mark.thorough
def test_simultaneous_moves_need_a_player():
    game = pyspiel.load_game("matrix_brps")
    env = rl_environment.Environment(game)
    agent = openspiel.NeuRDCIX(None, env.observation_spec()["info_state"][0], 3)
    joint = openspiel.JointPolicy(game, agent)
    state = game.new_initial_state()
    assert sum(joint.action_probabilities(state, 1).values()) == pytest.approx(1)
    assert 5 < openspiel.nash_conv(game, joint) < 25  # near uniform, where it is 16.7
    with pytest.raises(ValueError, match="say for which of them, with player_id"):
        joint.action_probabilities(state)
    with pytest.raises(ValueError, match="train on turn_based_simultaneous_game instead"):
        joint.to_tabular()


def test_bad_questions():
    game, agents = trained("kuhn_poker", episodes=1)
    state = game.new_initial_state()
    state.apply_action(0)
    state.apply_action(1)
    with pytest.raises(ValueError, match=r"player 1 is none of \[0\], or has no legal action here"):
        openspiel.JointPolicy(game, {0: agents[0]}).action_probabilities(state, 1)
    with pytest.raises(ValueError, match=r"given for players 0 to 1, but are given for \[0, 1, 2\]"):
        openspiel.JointPolicy(game, [*agents, agents[0]])


def test_an_iteration_of_psro():
    # Not at the top: it imports cvxpy, for one of the meta-strategies, and that takes seconds.
    psro_v2 = importlib.import_module("open_spiel.python.algorithms.psro_v2.psro_v2")
    rl_oracle = importlib.import_module("open_spiel.python.algorithms.psro_v2.rl_oracle")
    game = pyspiel.load_game("kuhn_poker")
    env = rl_environment.Environment(game)
    keywords = {"hidden_layers_sizes": [8], "batch_size": 4, "seed": 2}
    oracle = rl_oracle.RLOracle(env, openspiel.OraclePolicy, keywords, number_training_episodes=8, sigma=0.1)
    start = [openspiel.OraclePolicy(env, player, **keywords) for player in range(2)]
    for policy in start:
        policy.freeze()
    solver = psro_v2.PSROSolver(
        game,
        oracle,
        initial_policies=start,
        sims_per_entry=5,
        meta_strategy_method="uniform",
        training_strategy_selector="probabilistic",
        sample_from_marginals=True,
    )
    solver.iteration()
    populations = solver.get_policies()
    assert [len(population) for population in populations] == [2, 2]
    for player, (old, new) in enumerate(populations):
        assert old.is_frozen()
        assert new.is_frozen()
        assert new.player_ids == [player]
        assert any(
            not np.array_equal(*pair) for pair in zip(old.get_weights(), new.get_weights(), strict=True)
        )
    solver.iteration()
    # OpenSpiel's own wrapper would have brought its own agents, and what they need.
    assert not {"rlax", "chex", "flax"} & set(sys.modules)


def test_copies_and_keywords():
    _, (agent, _) = trained("kuhn_poker")
    keywords = agent.__getstate__()["keywords"]
    assert type(agent)(**keywords).__getstate__()["keywords"] == keywords
    exact, noisy = agent.copy_with_noise(), agent.copy_with_noise(sigma=0.5)
    for mine, same, other in zip(agent.get_weights(), exact.get_weights(), noisy.get_weights(), strict=True):
        assert np.array_equal(mine, same)
        assert not np.array_equal(mine, other)
    differences = np.concatenate(
        [(a - b).ravel() for a, b in zip(noisy.get_weights(), agent.get_weights(), strict=True)]
    )
    # The deviation of n draws is within 5 sigma = 5 * 0.5 / sqrt(2 n) of 0.5.
    assert abs(differences.std() - 0.5) < 5 * 0.5 / np.sqrt(2 * differences.size)
    weights = agent.get_weights()
    weights[0][:] = 7.0
    assert not np.array_equal(agent.get_weights()[0], weights[0])
    assert exact.episode_counter == 0
    assert not np.array_equal(loops.snapshot(exact)["seed"], loops.snapshot(noisy)["seed"])
    with pytest.raises(ValueError, match="sigma must be at least 0, but is -1"):
        agent.copy_with_noise(-1.0)


OBSERVED = rl_environment.ObservationType.OBSERVATION


def test_tables_that_saw_observations_are_asked_with_observations():
    game, agents = trained("kuhn_poker", 200, network="table", observation_type=OBSERVED)
    by_default = openspiel.JointPolicy(game, agents).to_tabular()
    said = openspiel.JointPolicy(game, agents, use_observation=True).to_tabular()
    np.testing.assert_array_equal(by_default.action_probability_array, said.action_probability_array)
    # Every observation has been met and learnt from: no row is the uniform one of an unknown state.
    assert np.all(np.abs(said.action_probability_array - 0.5).max(axis=1) > 1e-4)
    with pytest.raises(ValueError, match=r"^the agents take tensors of 7 numbers, but .* states of 11\.$"):
        openspiel.JointPolicy(game, agents, use_observation=False)
    with pytest.raises(
        ValueError, match=r"tensors of 7 numbers, but leduc_poker\(\) has .* observations of 16"
    ):
        openspiel.JointPolicy(pyspiel.load_game("leduc_poker"), agents)


def test_where_the_two_kinds_of_tensors_are_of_one_length_it_must_be_said():
    """Liar's dice: both have 21 numbers, but not the same ones."""
    game, agents = trained("liars_dice", 30, network="table", observation_type=OBSERVED)
    with pytest.raises(ValueError, match=r"both of 21 numbers: say with use_observation=True or False"):
        openspiel.JointPolicy(game, agents)
    state = game.new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    right = openspiel.JointPolicy(game, agents, use_observation=True)
    assert sum(right.action_probabilities(state).values()) == pytest.approx(1)
    # In matrix games the two are the same, and nothing needs to be said.
    matrix = pyspiel.load_game("matrix_rps")
    openspiel.JointPolicy(matrix, openspiel.NeuRDCIX(None, 1, 3))


def test_a_table_that_knows_no_state_of_the_game_is_told_and_one_that_knows_some_is_not():
    game, agents = trained("leduc_poker", 3, network="table")
    joint = openspiel.JointPolicy(game, agents)
    rows = joint.to_tabular().action_probability_array  # most states are new, and that is as it should be
    assert np.all(rows.sum(axis=1) == pytest.approx(1))
    fresh = [openspiel.NeuRDCIX(player, 30, 3, network="table") for player in range(2)]
    openspiel.JointPolicy(game, fresh).to_tabular()  # uniform by right: nothing has been learnt
    state = agents[0].__getstate__()
    other = {**state["snapshot"], "rows": state["snapshot"]["rows"][:, ::-1] + 1.0}  # of some other game
    agents[0].__setstate__({**state, "snapshot": other})
    sentence = r"^player 0's table has \d+ rows, but none for information states of leduc_poker\(\): train it"
    with pytest.raises(ValueError, match=sentence):
        joint.to_tabular()
    state = game.new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    with pytest.raises(ValueError, match=sentence):
        openspiel.JointPolicy(game, agents).action_probabilities(state)
