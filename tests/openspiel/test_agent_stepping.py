"""The agent in every way that an environment can step it: same experience, same parameters."""

import numpy as np
import openspiel_loops as loops
import pyspiel
import pytest
from open_spiel.python import rl_environment, vector_env

from pohp_neurd import openspiel

LEARNERS = ("neurd_cix", "neurd", "spg")
NO_TURN = """
  EFG 2 R "The second player may have no turn" { "One" "Two" } ""
  p "ROOT" 1 1 "ROOT" { "L" "R" } 0
    t "L" 1 "Outcome L" { 1.0 -1.0 }
    p "SECOND" 2 1 "SECOND" { "l" "r" } 0
      t "RL" 2 "Outcome RL" { -1.0 1.0 }
      t "RR" 3 "Outcome RR" { 2.0 -2.0 }
"""


def without_steps(agent):
    """What must not depend on how often the agent was shown time steps at which it had nothing to do."""
    taken = loops.snapshot(agent)
    taken["experience"]["counters"] = taken["experience"]["counters"][1:]
    return taken


@pytest.mark.thorough
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
def test_openspiels_own_test_of_policy_gradient_agents(learner, game):
    env = loops.environment(game, 24984617)
    agents = loops.agents_for(
        env,
        learner=learner,
        hidden_layers_sizes=[32, 32],
        entropy_cost=0.001,
        critic_learning_rate=0.01,
        pi_learning_rate=0.01,
        batch_size=1,
        seed=24984617,
    )
    loops.play(env, agents, 2)
    loops.play(env, agents, 2, everyone=True)
    assert [agent.episode_counter for agent in agents] == [4, 4]
    assert all(np.isfinite(agent.loss) for agent in agents)


@pytest.mark.thorough
def test_openspiels_own_test_on_hanabi():
    settings = {
        "players": 3,
        "max_life_tokens": 1,
        "colors": 2,
        "ranks": 3,
        "hand_size": 2,
        "max_information_tokens": 3,
        "discount": 0.99,
    }
    env = loops.environment("hanabi", 24984617, **settings)
    agents = loops.agents_for(env, hidden_layers_sizes=[8, 8], batch_size=1, seed=24984617)
    loops.play(env, agents, 2, everyone=True)
    assert all(agent.loss is not None for agent in agents)


@pytest.mark.thorough
@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "tiny_hanabi"])
@pytest.mark.parametrize("network", ["mlp", "table"])
def test_only_the_actor_or_everyone_makes_no_difference(game, network):
    results = []
    for everyone in (False, True):
        env = loops.environment(game)
        agents = loops.agents_for(env, network=network)
        loops.play(env, agents, 10, everyone=everyone)
        results.append([without_steps(agent) for agent in agents])
    loops.same_bits(*results)
    assert int(results[0][0]["learner"].updates) == 2


@pytest.mark.thorough
def test_a_player_without_a_turn_learns_nothing_from_that_episode():
    env = loops.environment(pyspiel.load_efg_game(NO_TURN))
    for everyone in (False, True):
        first, second = loops.agents_for(env, batch_size=1000)
        loops.play(env, [first, second], 40, everyone=everyone)
        assert first.episode_counter == second.episode_counter == 40
        actions, returns = loops.batch(first)["action"], loops.batch(second)["return_"]
        assert len(actions) == 40
        assert 0 < len(returns) == np.sum(actions == 1) < 40
        assert set(returns) <= {1.0, -2.0}
    second = loops.agents_for(env, batch_size=1)[1]
    before = loops.snapshot(second)["learner"]
    left = env.reset()
    assert second.step(left).action is None
    second.step(env.step([0]))  # the game is over before the second player's turn
    loops.same_bits(loops.snapshot(second)["learner"], before)


def test_simultaneous_moves():
    env = loops.environment("goofspiel", players=2, num_cards=4, points_order="descending", imp_info=True)
    agents = loops.agents_for(env)
    returns = loops.play(env, agents, 6)
    for player, agent in enumerate(agents):
        assert (agent.episode_counter, loops.updates(agent)) == (6, 1)
        # The last card is forced, and OpenSpiel plays it without asking.
        expected = [total[player] for total in returns[4:] for _ in range(3)]
        assert loops.batch(agent)["return_"].tolist() == expected


def test_evaluation_leaves_no_trace():
    env = loops.environment("leduc_poker")
    agents = loops.agents_for(env, network="table")
    loops.play(env, agents, 5)

    def look(time_step):
        for agent in agents:
            before = loops.snapshot(agent)
            for _ in range(3):
                agent.step(time_step, is_evaluation=True)
                agent.step([time_step, time_step], is_evaluation=True)
            loops.same_bits(loops.snapshot(agent), before)

    time_step, _ = loops.episode(env, loops.acting(agents), look)
    before = loops.snapshot(agents[0])
    assert agents[0].step(time_step, is_evaluation=True).action is None
    loops.same_bits(loops.snapshot(agents[0]), before)
    # And the next training step is the same with and without evaluations in between.
    twins = []
    for evaluations in (0, 5):
        env = loops.environment()
        agent = loops.agent_for(env, None)
        evaluated = loops.acting([agent, agent], is_evaluation=True)
        for _ in range(9):
            time_step, _ = loops.episode(
                env,
                loops.acting([agent, agent]),
                lambda shown, count=evaluations, act=evaluated: [act(shown) for _ in range(count)],
            )
            agent.step(time_step)
        twins.append(loops.snapshot(agent))
    loops.same_bits(*twins)


@pytest.mark.thorough
def test_observations_instead_of_information_states():
    env = loops.environment(observation_type=rl_environment.ObservationType.OBSERVATION)
    agents = loops.agents_for(env)
    loops.play(env, agents, 9)
    joint = openspiel.JointPolicy(env.game, agents, use_observation=True)
    state = env.game.new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    seen = agents[0].probabilities([state.observation_tensor(0)], [[1, 1]])[0]
    assert joint.action_probabilities(state) == dict(enumerate(seen.tolist()))


def test_a_vector_of_one_environment_is_that_environment():
    plain, vector = loops.environment(), vector_env.SyncVectorEnv([loops.environment()])
    one, other = loops.agent_for(plain, None), loops.agent_for(plain, None)
    loops.play(plain, [one, one], 9)
    time_steps = vector.reset()
    while other.episode_counter < 9:
        # An environment that is over ignores the action and starts again.
        time_steps = vector.step(other.step(time_steps))[0]
    loops.same_bits(loops.snapshot(one), loops.snapshot(other))


def test_vectors_of_environments_that_restart_by_themselves():
    vector = vector_env.SyncVectorEnv([loops.environment(seed=seed) for seed in range(5)])
    agent = loops.agent_for(vector.envs[0], None, batch_size=1000)
    time_steps, truth = vector.reset(), []
    for _ in range(40):
        outputs = agent.step(time_steps)
        assert len(outputs) == 5
        time_steps, reward, done, _ = vector.step(outputs, reset_if_done=True)
        truth += [abs(rewards[0]) for rewards, over in zip(reward, done, strict=True) if over]
        agent.post_step(reward, done)
    assert agent.episode_counter == len(truth)
    assert set(np.abs(loops.batch(agent)["return_"])) == {1.0, 2.0}
    # Every player has a turn in Kuhn poker.
    assert len(loops.batch(agent)["return_"]) >= 2 * len(truth)
    time_steps = vector.reset()
    with pytest.warns(UserWarning, match="last time step of every episode"):
        agent.step(time_steps)  # some were in the middle of a game


def test_two_agents_in_a_vector_of_environments():
    vector = vector_env.SyncVectorEnv([loops.environment(seed=seed) for seed in range(3)])
    agents = loops.agents_for(vector.envs[0])
    time_steps = vector.reset()
    for _ in range(60):
        outputs = [agent.step(time_steps) for agent in agents]
        turns = [max(0, time_step.observations["current_player"]) for time_step in time_steps]
        time_steps = vector.step([outputs[turn][index] for index, turn in enumerate(turns)])[0]
    assert all(agent.loss is not None for agent in agents)


def test_one_object_for_all_seats_and_its_seats_agree():
    results = []
    for style in ("object", "object, everyone", "seats", "seats, everyone"):
        env = loops.environment()
        shared = loops.agent_for(env, None)
        agents = [shared, shared] if style.startswith("object") else shared.seats(2)
        loops.play(env, agents, 9, everyone=style.endswith("everyone"))
        assert shared.episode_counter == 9
        results.append(loops.snapshot(shared))
    for other in results[1:]:
        loops.same_bits(results[0], other)


def test_seats_of_one_agent_in_simultaneous_moves():
    env = loops.environment("matrix_brps")
    shared = loops.agent_for(env, None, batch_size=100)
    truth = loops.play(env, shared.seats(2), 5)
    assert loops.batch(shared)["return_"].tolist() == np.ravel(truth).tolist()
    with pytest.raises(ValueError, match=r"step what `agent.seats\(num_players\)` gives"):
        shared.step(env.reset())
