"""The agent learns: OpenSpiel's own bars, Kuhn poker, biased rock-paper-scissors without a collapse."""

import numpy as np
import openspiel_loops as loops
import pyspiel
import pytest
from open_spiel.python import rl_environment, vector_env

from pohp_neurd import openspiel

pytestmark = pytest.mark.thorough

SIMPLE = """
  EFG 2 R "Simple single-agent problem" { "Player 1" } ""
  p "ROOT" 1 1 "ROOT" { "L" "R" } 0
    t "L" 1 "Outcome L" { -1.0 }
    t "R" 2 "Outcome R" { 1.0 }
"""
EQUILIBRIUM = np.array([1, 10, 5]) / 16


def agents_for(env, seed, **keywords):
    sizes = env.observation_spec()["info_state"][0], env.action_spec()["num_actions"]
    return [
        openspiel.NeuRDCIX(player, *sizes, seed=env.num_players * seed + player, **keywords)
        for player in range(env.num_players)
    ]


@pytest.mark.parametrize("network", ["mlp", "table"])
@pytest.mark.parametrize("learner", ["neurd_cix", "neurd", "spg"])
@pytest.mark.parametrize("seed", range(3))
def test_openspiels_bar_for_ppo_on_a_simple_game(network, learner, seed):
    """The loop of OpenSpiel's ppo_pytorch_test: `learn` after every 8 of 1,000 steps, then 1,000 games."""
    env = rl_environment.Environment(pyspiel.load_efg_game(SIMPLE))
    envs = vector_env.SyncVectorEnv([env])
    shape = tuple(np.array(env.observation_spec()["info_state"]).flatten())
    agent = openspiel.NeuRDCIX(0, shape, 2, network=network, learner=learner, seed=seed)
    time_step = envs.reset()
    for update in range(125):
        for _ in range(8):
            time_step, reward, done, _ = envs.step(agent.step(time_step), reset_if_done=True)
            agent.post_step(reward, done)
        agent.anneal_learning_rate(update, 125)
        agent.learn(time_step)
    total = 0
    time_step = envs.reset()
    for _ in range(1000):
        output = agent.step(time_step, is_evaluation=True)
        time_step, reward, done, _ = envs.step(output, reset_if_done=True)
        total += reward[0][0]
    assert total >= 900


def test_openspiels_bar_for_dqn_on_tic_tac_toe():
    """The loop of OpenSpiel's dqn_jax_test: one game of training, then 1,000 that must all end alike.

    Its agents evaluate greedily, so that every game is the same one, and one side wins it.
    """
    env = rl_environment.Environment("tic_tac_toe")
    sizes = env.observation_spec()["info_state"][0], env.action_spec()["num_actions"]
    agents = [openspiel.NeuRDCIX(player, *sizes, greedy=True) for player in range(2)]
    loops.play(env, agents, 1)
    total = sum(returns[0] for returns in loops.play(env, agents, 1000, is_evaluation=True))
    assert abs(total) >= 1000


@pytest.mark.parametrize("network", ["mlp", "table"])
def test_openspiels_game_for_wolf(network):
    """Rock-paper-scissors for 1,000 episodes, defaults and one seed: the policies stay about the equilibrium.

    OpenSpiel's wolf_phc_test asks for the uniform policy to four digits, where its agent begins and where
    it stays. An agent that learns from samples moves: here the bar is a total variation of 0.15.
    """
    env = rl_environment.Environment("matrix_rps")
    agents = [openspiel.NeuRDCIX(player, 1, 3, network=network) for player in range(2)]
    loops.play(env, agents, 1000)
    for agent in agents:
        policy = agent.step(env.reset(), is_evaluation=True).probs
        assert np.abs(policy - 1 / 3).sum() / 2 < 0.15, policy


@pytest.mark.slow
@pytest.mark.parametrize("network", ["mlp", "table"])
def test_kuhn_poker_out_of_the_box(network):
    game, reached = pyspiel.load_game("kuhn_poker"), []
    for seed in range(3):
        env = rl_environment.Environment(game)
        env.seed(seed)
        agents = agents_for(env, seed, network=network)
        loops.play(env, agents, 20_000)
        reached.append(openspiel.nash_conv(game, openspiel.JointPolicy(game, agents).to_tabular()))
    assert np.median(reached) < 0.2, reached


@pytest.mark.slow
@pytest.mark.parametrize("network", ["mlp", "table"])
def test_biased_rock_paper_scissors_does_not_collapse(network):
    env = rl_environment.Environment("matrix_brps")
    agents = agents_for(env, 0, network=network)
    joint = openspiel.JointPolicy(env.game, agents)
    distances = []
    for _ in range(8):
        loops.play(env, agents, 2_500)
        state = env.game.new_initial_state()
        policies = [np.array(list(joint.action_probabilities(state, player).values())) for player in range(2)]
        assert min(policy.min() for policy in policies) > 0.005
        distances.append(max(np.abs(policy - EQUILIBRIUM).sum() / 2 for policy in policies))
    uniform = np.abs(1 / 3 - EQUILIBRIUM).sum() / 2
    assert max(distances[1:]) < 0.75 * uniform, distances
