"""One update of the agent by hand: what its settings of rates, weights and entropy come to."""

import jax.numpy as jnp
import numpy as np
import openspiel_loops as loops
import pytest
from open_spiel.python import rl_environment

from pohp_neurd import neural, openspiel
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
    env = loops.environment(game, 0)
    keywords = {
        "magnet_strength": 0.0,
        "return_centre": 0.0,
        "return_scale": 1.0,
        "optimizer": "sgd",
        **keywords,
    }
    size = env.observation_spec()["info_state"][0]
    agent = openspiel.NeuRDCIX(0, size, 2, network=everywhere_the_same(), batch_size=1, **keywords)
    rewards = []

    def act(time_step):
        rewards.append(time_step.rewards)
        return [agent.step(time_step).action, 0]

    time_step, _ = loops.episode(env, act)
    rewards = [each[0] for each in (*rewards[1:], time_step.rewards)]
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


def test_a_step_of_a_table_by_hand():
    env = loops.environment("matrix_brps")
    agents = loops.agents_for(
        env,
        network="table",
        batch_size=1,
        pi_learning_rate=0.5,
        critic_learning_rate=0.25,
        exploration=0.1,
        magnet_strength=0.0,
        common_mode="paper",
        return_centre=0.0,
        return_scale=1.0,
    )
    (total,) = loops.play(env, agents)
    # π = 1/3 everywhere and V = 0, so that the direction is G / (1/3 + 0.1) (1{a = A} − 1/3).
    for agent, reward in zip(agents, total, strict=True):
        table = loops.parameters(agent)
        scale = 0.5 * reward / (1 / 3 + 0.1)
        moved = np.sort(table.logits[0])
        expected = np.sort(scale * np.array([2 / 3, -1 / 3, -1 / 3]))
        np.testing.assert_allclose(moved, expected, atol=1e-6)
        assert float(table.values[0]) == pytest.approx(0.25 * reward)


def test_values_are_kept_in_the_games_own_units():
    """The critic speaks of scaled returns, by 2 in Kuhn poker, from the first batch's mean on."""
    env = loops.environment()
    agent = loops.agent_for(env, None, batch_size=100, return_centre=0.0)
    loops.play(env, [agent, agent], 100)
    time_step = env.reset()
    agent.step(time_step)
    features = time_step.observations["info_state"][time_step.observations["current_player"]]
    model = neural.network(11, 2, torso=(8,), critic=True)
    said = model.apply(loops.parameters(agent), np.asarray(features, np.float32)).value
    assert abs(said) > 1e-4
    assert loops.under_way(agent)["value"] == pytest.approx(2 * float(said), abs=1e-6)


def test_a_return_above_the_stated_maximum():
    env = loops.environment()
    agent = loops.agent_for(env, None, max_return=0.5, batch_size=1)
    with pytest.raises(ValueError, match=r"^max_return is 0.5, but there was a return of"):
        loops.play(env, [agent, agent], 5)


@pytest.mark.thorough
def test_nothing_is_compiled_again(count_compilations):
    env = loops.environment("leduc_poker")
    agents = loops.agents_for(env, hidden_layers_sizes=[9])
    loops.play(env, agents, 9)
    with count_compilations() as seen:
        loops.play(env, agents, 40)  # episodes of 1 to 4 choices
        loops.play(
            env, loops.agents_for(env, hidden_layers_sizes=[9]), 9
        )  # other agents of the same settings
    assert seen.count == 0
    assert loops.updates(agents[0]) == 12


def capacity(agent):
    """How many choices the compiled update takes."""
    return loops.snapshot(agent)["counters"][2]


def test_batches_grow_with_long_episodes():
    env = loops.environment("catch(rows=10,columns=5)")
    agent = loops.agent_for(env, 0, batch_size=1)
    assert capacity(agent) == 4
    loops.play(env, [agent], 3)
    assert capacity(agent) == 16
    assert np.isfinite(agent.loss)


def test_divergence_is_told_and_the_agent_stays_as_it_was(tmp_path):
    env = loops.environment()
    agent = loops.agent_for(env, None, optimizer="sgd", pi_learning_rate=1e38, batch_size=2)
    sentence = (
        r"^learning diverged: .* after update \d+, which is not made; try a smaller pi_learning_rate \(it is "
        r"1e\+38\), a smaller critic_learning_rate \(it is 0\.03\) or a max_global_gradient_norm\.$"
    )
    with pytest.raises(FloatingPointError, match=sentence):
        loops.play(env, [agent, agent], 20)
    assert all(np.isfinite(weights).all() for weights in agent.get_weights())
    assert np.isfinite(agent.loss)
    agent.save(tmp_path)
    twin = loops.agent_for(env, None, optimizer="sgd", pi_learning_rate=1e38, batch_size=2, seed=1)
    twin.restore(tmp_path)
    loops.same_bits(loops.snapshot(twin), loops.snapshot(agent))


def test_adams_sums_are_watched_too():
    """A gradient of 1e20 is finite, and so is Adam's step, but its square is not: the weight would freeze."""
    env = loops.environment()
    agent = loops.agent_for(env, None, batch_size=1, return_scale=1e-25)
    with pytest.raises(FloatingPointError, match="optimizer's sums are not finite after update 1"):
        loops.play(env, [agent, agent])


def test_a_magnet_is_for_several_players():
    """By default there is none for one player; the reference stays, so that checkpoints have one form."""
    alone, kuhn = loops.environment("catch"), loops.environment()
    for env, strength in ((alone, 0.0), (kuhn, 0.2)):
        pulled = []
        for keywords in ({}, {"magnet_strength": strength}):
            agent = loops.agent_for(env, None, optimizer="sgd", **keywords)
            env.seed(3)
            loops.play(env, [agent] * env.num_players, 12)
            assert loops.updates(agent) == 3
            pulled.append(agent.get_weights())
        loops.same_bits(*pulled)


def test_learning_when_asked_and_shorter_steps():
    """PPO's hooks: `learn` does not wait for the batch, `anneal_learning_rate` scales every later step."""
    moved = []
    for annealed in (False, True):
        env = loops.environment()
        agent = loops.agent_for(env, None, batch_size=1000)
        agent.learn()  # nothing to learn from yet
        assert loops.updates(agent) == 0
        loops.play(env, [agent, agent], 5)
        if annealed:
            agent.anneal_learning_rate(3, 4)
        before = agent.get_weights()
        agent.learn(env.reset())
        assert (loops.updates(agent), len(loops.batch(agent)["action"])) == (1, 0)
        moved.append(
            np.concatenate([(a - b).ravel() for a, b in zip(agent.get_weights(), before, strict=True)])
        )
    assert np.abs(moved[0]).max() > 1e-3
    np.testing.assert_allclose(moved[1], moved[0] / 4, atol=1e-7)
    with pytest.raises(ValueError, match=r"^update must lie between 0 and num_total_updates, but is 5\.$"):
        agent.anneal_learning_rate(5, 4)


def test_the_critic_begins_at_the_mean_of_the_first_batch():
    """Returns that are all alike say nothing of any action; a second batch, of another return, does."""
    env = loops.environment("matrix_rps")
    agent = loops.agent_for(env, network="table", batch_size=1, return_scale=1.0, critic_learning_rate=0.25)

    def lived(reward):
        agent.step(env.reset())
        agent.step(env.step([0, 0])._replace(rewards=[reward, -reward]))
        return loops.parameters(agent)

    first = lived(200.0)
    assert float(first.values[0]) == 0.0
    np.testing.assert_array_equal(first.logits, 0.0)
    second = lived(200.8)
    assert float(second.values[0]) == pytest.approx(0.25 * 0.8, rel=1e-4)
    assert np.abs(second.logits).max() > 0
