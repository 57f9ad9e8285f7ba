"""One update of the agent by hand: what its settings of rates, weights and entropy come to."""

import jax.numpy as jnp
import numpy as np
import pytest
from open_spiel.python import rl_environment

from pohp_neurd import openspiel
from pohp_neurd import policy as policies

TWICE = "repeated_game(stage_game=matrix_pd(),num_repetitions=2)"
FIRST_LOGITS = (1.0, -1.0)


def everywhere_the_same():
    """Two logits and a value, the same in every state."""

    def init(*, key):
        return {"logits": jnp.array(FIRST_LOGITS), "value": jnp.zeros(())}

    def apply(parameters, agent_state):
        return policies.Output(parameters["logits"], parameters["value"])

    return policies.Model(init, apply)


def after_one_update(game, **keywords):
    """Logits and value after one episode against a player who always cooperates, and the rewards in it."""
    env = rl_environment.Environment(game)
    env.seed(0)
    keywords = {
        "magnet_strength": 0.0,
        "return_centre": 0.0,
        "return_scale": 1.0,
        "optimizer": "sgd",
        **keywords,
    }
    size = env.observation_spec()["info_state"][0]
    agent = openspiel.NeuRDCIX(0, size, 2, network=everywhere_the_same(), batch_size=1, **keywords)
    time_step, rewards = env.reset(), []
    while not time_step.last():
        time_step = env.step([agent.step(time_step).action, 0])
        rewards.append(time_step.rewards[0])
    agent.step(time_step)
    logits, value = sorted(agent.get_weights(), key=np.ndim, reverse=True)
    return logits, float(value), np.array(rewards)


@pytest.mark.parametrize("pi_learning_rate", [0.1, 0.5])
def test_the_critic_moves_at_its_own_rate(pi_learning_rate):
    """One decision of return G, from a value of 0: V = rate · G, whatever the policy's own rate is."""
    rates = {"pi_learning_rate": pi_learning_rate, "critic_learning_rate": 0.25}
    _, value, rewards = after_one_update("matrix_pd", **rates)
    assert value == pytest.approx(0.25 * rewards[0], rel=1e-5)


def test_an_update_is_a_mean_over_decisions():
    """Two decisions of returns G₀ and G₁: a longer episode makes no larger step."""
    _, value, rewards = after_one_update(TWICE, pi_learning_rate=0.5, critic_learning_rate=0.25)
    returns = np.array([rewards.sum(), rewards[1]])
    assert value == pytest.approx(0.25 * returns.mean(), rel=1e-5)


def test_entropy_is_sought():
    """The cost moves logits by rate · cost · (surprise − mean surprise): to the uniform policy."""
    keywords = {"pi_learning_rate": 0.5, "critic_learning_rate": 1e-9, "max_return": 10.0, "exploration": 1.0}
    with_cost, *_ = after_one_update("matrix_pd", entropy_cost=0.3, **keywords)
    without, *_ = after_one_update("matrix_pd", **keywords)
    first = np.array(FIRST_LOGITS)
    np.testing.assert_allclose(with_cost - without, 0.5 * 0.3 * (first.mean() - first), rtol=1e-4)


def shown(step_type, rewards):
    """A time step of a game of one player, at its turn."""
    observations = {"info_state": [[0.0]], "legal_actions": [[0, 1]], "current_player": 0}
    discounts = None if rewards is None else [1.0]
    return rl_environment.TimeStep(observations, rewards, discounts, step_type)


def test_a_reward_that_is_posted_and_shown_counts_once():
    """Rewards −1 and −2 after two choices: returns −3 and −2, however they come to be known."""
    kind = rl_environment.StepType
    steps = [shown(kind.FIRST, None), shown(kind.MID, [-1.0]), shown(kind.LAST, [-2.0])]
    values = []
    for told in (False, True):
        agent = openspiel.NeuRDCIX(
            0,
            1,
            2,
            network=everywhere_the_same(),
            batch_size=1,
            optimizer="sgd",
            pi_learning_rate=0.5,
            critic_learning_rate=0.25,
            magnet_strength=0.0,
            return_centre=0.0,
            return_scale=1.0,
        )
        for number, step in enumerate(steps):
            if told and number == 2:
                break  # the end has been posted, and what is shown next is another episode's
            agent.step([step])
            if told:
                agent.post_step([steps[number + 1].rewards[0]], [number == 1])
        values.append(float(min(agent.get_weights(), key=np.ndim)))
    assert values[0] < 0
    assert values[1] == pytest.approx(values[0], rel=1e-6)


def test_a_table_knows_nothing_of_a_state_that_it_never_met():
    """One row, taken by the state that was met: any other state is uniform still."""
    agent = openspiel.NeuRDCIX(0, 1, 2, network="table", max_states=1, batch_size=1, return_centre=0.0)
    kind = rl_environment.StepType
    agent.step(shown(kind.FIRST, None))
    agent.step(shown(kind.LAST, [-2.0]))
    met, other = agent.probabilities([[0.0], [1.0]], np.ones((2, 2), bool))
    assert abs(met[0] - 0.5) > 0.01
    np.testing.assert_allclose(other, 0.5)
