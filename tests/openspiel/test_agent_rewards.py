"""Rewards and ends of episodes: what the agent sees of them, and what it says if it cannot."""

import math

import numpy as np
import openspiel_loops as loops
import pyspiel
import pytest


def repeated_game():
    """Biased rock-paper-scissors three times over: rewards on the way, players in turn."""
    repeated = "repeated_game(stage_game=matrix_brps(),num_repetitions=3)"
    return pyspiel.load_game(f"turn_based_simultaneous_game(game={repeated})")


def returns_to_go(env, agents, **style):
    """First returns that the agents work with, beside the environment's."""
    truth = loops.play(env, agents, 5, **style)
    for player, agent in enumerate(agents):
        returns = loops.batch(agent)["return_"]
        assert len(returns) == 15
        np.testing.assert_allclose(returns[::3], [total[player] for total in truth], atol=1e-6)


@pytest.mark.thorough
def test_intermediate_rewards_when_everyone_is_stepped():
    env = loops.environment(repeated_game())
    assert sum(abs(total).sum() for total in loops.play(env, loops.agents_for(env), 5, everyone=True)) > 0
    returns_to_go(env, loops.agents_for(env, batch_size=100), everyone=True)


def test_intermediate_rewards_with_the_full_state():
    env = loops.environment(repeated_game(), include_full_state=True)
    returns_to_go(env, loops.agents_for(env, batch_size=100), everyone=False)
    returns_to_go(env, loops.agents_for(env, batch_size=100), everyone=True)


def test_intermediate_rewards_with_one_agent_for_all_seats():
    env = loops.environment(repeated_game())
    shared = loops.agent_for(env, None, batch_size=100)
    truth = loops.play(env, [shared, shared], 5)
    np.testing.assert_allclose(loops.batch(shared)["return_"][::3], np.ravel(truth), atol=1e-6)


def test_rewards_that_cannot_be_seen_are_said_to_be_lost():
    env = loops.environment(repeated_game())
    with pytest.warns(UserWarning, match="step every agent at every time step, or build the environment"):
        loops.play(env, loops.agents_for(env, batch_size=100), 5)


def test_an_episode_whose_end_was_not_shown_is_forgotten():
    env = loops.environment()
    agent = loops.agent_for(env)
    agent.step(env.reset())
    with pytest.warns(UserWarning, match="step the agent with the last time step of every episode"):
        agent.step(env.reset())
    assert len(loops.under_way(agent)["action"]) == 1


def test_discounts_count_for_what_comes_after():
    env = loops.environment(pyspiel.load_game("catch(rows=4,columns=3)"), discount=0.5)
    agent = loops.agent_for(env, batch_size=100)
    (total,) = loops.play(env, [agent])
    returns = loops.batch(agent)["return_"]
    np.testing.assert_allclose(returns, total[0] * 0.5 ** np.arange(len(returns))[::-1])


def only_its_turns(env, agent, player, episodes):
    """Steps `agent` at its turns only, and never at the end; all others play their first legal action."""

    def act(time_step):
        current = time_step.observations["current_player"]
        action = time_step.observations["legal_actions"][current][0]
        return [agent.step(time_step).action if current == player else action]

    for _ in range(episodes):
        loops.episode(env, act)


def test_a_second_mover_who_is_never_shown_an_end_is_told():
    env = loops.environment()
    agent = loops.agent_for(env, 1)
    only_its_turns(env, agent, 1, 127)
    sentence = r"has made 128 choices, at 3 information .* last time step of every episode\.$"
    with pytest.warns(UserWarning, match=sentence):
        only_its_turns(env, agent, 1, 1)
    only_its_turns(env, agent, 1, 200)  # said once
    assert agent.episode_counter == 0


def test_long_episodes_are_no_reason_to_worry():
    """A second mover in a game of more than 128 own turns, and a first mover whose observations repeat."""
    env = loops.environment("go")
    agent = loops.agent_for(env, 1, batch_size=1000)
    time_step, random = env.reset(), np.random.default_rng(0)
    while agent.step_counter < 260:
        current = time_step.observations["current_player"]
        if current == 1:
            agent.step(time_step)
        time_step = env.step([int(random.choice(time_step.observations["legal_actions"][current]))])
    env = loops.environment("pathfinding", horizon=2000)
    (alone,) = loops.agents_for(env, batch_size=1000)
    time_step = env.reset()
    while not time_step.last() and alone.step_counter < 600:
        alone.step(time_step)
        time_step = env.step([4])  # stays where it is


def test_rewards_that_are_not_finite_are_told():
    env = loops.environment()
    agent = loops.agent_for(env, None, batch_size=1)
    time_step, _ = loops.episode(env, loops.acting([agent, agent]))
    with pytest.raises(ValueError, match=r"^a return is not a finite number"):
        agent.step(time_step._replace(rewards=[math.nan, 0.0]))
