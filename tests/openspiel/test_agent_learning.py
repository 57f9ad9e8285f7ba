"""The agent learns: OpenSpiel's bar for PPO, Kuhn poker, biased rock-paper-scissors without a collapse."""

import numpy as np
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


def train(env, agents, episodes):
    for _ in range(episodes):
        time_step = env.reset()
        while not time_step.last():
            if time_step.is_simultaneous_move():
                actions = [agent.step(time_step).action for agent in agents]
            else:
                actions = [agents[time_step.observations["current_player"]].step(time_step).action]
            time_step = env.step(actions)
        for agent in agents:
            agent.step(time_step)


@pytest.mark.parametrize("network", ["mlp", "table"])
@pytest.mark.parametrize("learner", ["neurd_cix", "neurd"])
def test_openspiels_bar_for_ppo_on_a_simple_game(network, learner):
    """The loop of OpenSpiel's ppo_pytorch_test: 1,000 steps of training, 8 an update, then 1,000 games."""
    env = rl_environment.Environment(pyspiel.load_efg_game(SIMPLE))
    envs = vector_env.SyncVectorEnv([env])
    (agent,) = agents_for(env, 24261711, network=network, learner=learner, batch_size=8)
    time_step = envs.reset()
    for _ in range(1000):
        time_step, reward, done, _ = envs.step(agent.step(time_step), reset_if_done=True)
        agent.post_step(reward, done)
    total = 0
    time_step = envs.reset()
    for _ in range(1000):
        output = agent.step(time_step, is_evaluation=True)
        time_step, reward, done, _ = envs.step(output, reset_if_done=True)
        total += reward[0][0]
    assert total >= 900


@pytest.mark.slow
@pytest.mark.parametrize("network", ["mlp", "table"])
def test_kuhn_poker_out_of_the_box(network):
    game, reached = pyspiel.load_game("kuhn_poker"), []
    for seed in range(3):
        env = rl_environment.Environment(game)
        env.seed(seed)
        agents = agents_for(env, seed, network=network)
        train(env, agents, 20_000)
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
        train(env, agents, 2_500)
        state = env.game.new_initial_state()
        policies = [np.array(list(joint.action_probabilities(state, player).values())) for player in range(2)]
        assert min(policy.min() for policy in policies) > 0.005
        distances.append(max(np.abs(policy - EQUILIBRIUM).sum() / 2 for policy in policies))
    uniform = np.abs(1 / 3 - EQUILIBRIUM).sum() / 2
    assert max(distances[1:]) < 0.75 * uniform, distances
