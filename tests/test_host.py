"""The same agent in one real environment of each library, against the agent inside jit."""

import dataclasses

import dm_env
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bsuite.environments import catch as bsuite_catch
from pohp_neurd.games import cart_pole, catch

from pohp_neurd import checks, directions, neural
from pohp_neurd.online import actor_critic, by_rows, host, lifetimes
from pohp_neurd.online import agent as online

OPTIONS = online.Options("neurd_cix", common_mode="dropped", window=4)
SETTINGS = {"learning_rate": 1e-3, "exploration": 0.5, "torso": (8, 8)}


class Watched(dm_env.Environment):
    """Bsuite's catch, and the columns in which its balls began."""

    def __init__(self, environment):
        self.environment, self.columns = environment, []

    def reset(self):
        return self.seen(self.environment.reset())

    def step(self, action):
        return self.seen(self.environment.step(action))

    def seen(self, moment):
        if moment.first():
            self.columns.append(int(np.argmax(moment.observation[0])))
        return moment

    def observation_spec(self):
        return self.environment.observation_spec()

    def action_spec(self):
        return self.environment.action_spec()


@pytest.mark.thorough
def test_bsuite_catch_is_played_as_our_own_catch():
    """Bsuite's balls, dropped again in our catch under the same actions, give the same rewards."""
    environment = Watched(bsuite_catch.Catch(seed=3))
    world = host.DmEnv(environment, reward=lambda reward: min(reward, 0.0), continuing=True)
    played = host.train(world, OPTIONS, 90, **SETTINGS)
    balls = iter(environment.columns)
    expected, board = [], catch.drop(next(balls), 5, xp=np)
    for action in played.actions:
        board = catch.advance(board, action, 5, xp=np)
        expected.append(-float(catch.is_missed(board, 10)))
        if catch.has_landed(board, 10):
            board = catch.drop(next(balls), 5, xp=np)
    np.testing.assert_array_equal(played.rewards, expected)
    assert int(played.agent.time) == 90


@pytest.mark.slow
def test_gymnasium_cart_pole_is_played_and_learnt_from():
    environment = gymnasium.make("CartPole-v1", sutton_barto_reward=True)
    world = host.Gymnasium(environment, seed=1)
    assert (world.num_actions, world.observation_size) == (2, 4)
    played = host.train(world, OPTIONS, 150, **SETTINGS)
    falls = int(-played.rewards.sum())
    assert falls >= 1
    # Nothing but the falls ended an episode: the window shows them where they are recent.
    ended = np.asarray(played.agent.window.continuation) == 0
    np.testing.assert_array_equal(ended, np.asarray(played.agent.window.reward) == -1)
    again = host.train(host.Gymnasium(environment, seed=1), OPTIONS, 150, **SETTINGS)
    np.testing.assert_array_equal(played.actions, again.actions)


@pytest.mark.slow
def test_the_host_loop_and_the_scan_are_one_agent():
    """Cart pole stepped on the host, with the keys of the life inside jit: same actions, same parameters."""
    world = cart_pole.CartPole()
    agent = lifetimes.paper_agent(world, OPTIONS, **SETTINGS)
    key = jax.random.key(0)
    steps = 60

    class OnHost:
        num_actions, observation_size = 2, 4

        def reset(self):
            self.history = world.initial(key=lifetimes.birth_keys(key)[1])
            self.time = 0
            return self.arrival(0.0)

        def step(self, action):
            reply_key = lifetimes.step_keys(key, self.time)[1]
            self.history = world.apply(self.history, jnp.int32(action), key=reply_key)
            self.time += 1
            return self.arrival(float(world.reward(self.history)[0]))

        def arrival(self, reward):
            return host.Arrival(np.asarray(world.observation(self.history)), reward, 1.0)

    life = lifetimes.begin(world, agent, world.observation, key=key)
    life, totals = jax.jit(
        lambda life: lifetimes.live(world, agent, world.observation, life, steps, key=key)
    )(life)
    played = host.train(OnHost(), OPTIONS, steps, **SETTINGS)
    assert float(totals.reward) == played.rewards.sum()
    np.testing.assert_array_equal(life.agent.window.action, played.actions[-len(life.agent.window.action) :])
    for left, right in zip(jax.tree.leaves(life.agent), jax.tree.leaves(played.agent), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["gymnasium", "dm_env"])
def test_positive_rewards_are_refused(kind):
    if kind == "gymnasium":
        world = host.Gymnasium(gymnasium.make("CartPole-v1"), seed=0)
    else:
        world = host.DmEnv(bsuite_catch.Catch(seed=0), reward=lambda reward: 1.0)
    world.reset()
    with pytest.raises(ValueError, match="rewards must not be positive, but the environment gave 1"):
        world.step(0)


def test_continuous_actions_are_refused():
    with pytest.raises(ValueError, match="needs a Discrete action space"):
        host.Gymnasium(gymnasium.make("MountainCarContinuous-v0"), seed=0)

    class Continuous(bsuite_catch.Catch):
        def action_spec(self):
            return dm_env.specs.BoundedArray((1,), np.float32, -1, 1)

    with pytest.raises(ValueError, match="needs a DiscreteArray of actions"):
        host.DmEnv(Continuous())


class Still:
    """Nothing to see and nothing to win: every step costs 1."""

    num_actions, observation_size = 2, 3

    def reset(self):
        return host.Arrival(np.ones(3, np.float32), 0.0, 1.0)

    def step(self, action):
        return host.Arrival(np.ones(3, np.float32), -1.0 - action, 1.0)


@pytest.mark.thorough
def test_exploration_decays_on_the_host_as_it_does_inside_jit():
    """The same steps by the agent's own functions, with the schedule written out."""
    # With a large ε Adam does not divide the size of a gradient out, and with it the exploration.
    options = dataclasses.replace(OPTIONS, exploration_decay=2.0, decay_start=2, window=2, epsilon=1.0)
    steps, key = 12, jax.random.key(0)
    played = host.train(Still(), options, steps, learning_rate=0.1, exploration=1.0, torso=(4, 4))
    body = actor_critic.dense(
        neural.network(3, 2, torso=(4, 4), critic=True),
        directions.neurd_cix(lambda count: (1.0 + count.astype(jnp.float32) / 2.0) ** -2.0),
        actor_critic.Adam(0.1, options.decay, options.epsilon),
        common_mode=options.common_mode,
    )
    agent = online.agent(body, options)

    @jax.jit
    def step(state, reward):
        moment = online.Moment(jnp.ones(3), jnp.ones(2, bool), reward, jnp.float32(1.0))
        state, action = agent.act(state, moment, key=lifetimes.step_keys(key, state.time)[0])
        return agent.learn(state)[0], -1.0 - action.astype(jnp.float32)

    first = online.Moment(jnp.ones(3), jnp.ones(2, bool), jnp.float32(0.0), jnp.float32(1.0))
    state, reward = agent.init(first, key=lifetimes.birth_keys(key)[0]), jnp.float32(0.0)
    for _ in range(steps):
        state, reward = step(state, reward)
    rows = played.agent.body.weights
    np.testing.assert_allclose(by_rows.split(agent.parameters(state)), rows, rtol=1e-4, atol=1e-5)
    constant = dataclasses.replace(options, exploration_decay=0.0)
    other = host.train(Still(), constant, steps, learning_rate=0.1, exploration=1.0, torso=(4, 4))
    actor = slice(-4, -2)  # two actions, before the value and the biases
    assert not np.allclose(other.agent.body.weights[actor], rows[actor], atol=1e-3)


@pytest.mark.thorough
def test_a_frozen_optimizer_is_told_of_on_the_host():
    options = dataclasses.replace(OPTIONS, critic_cost=1e25)
    with pytest.raises(checks.Diverged, match=r"not finite after 12 steps\. Try a smaller learning_rate"):
        host.train(Still(), options, 12, learning_rate=1e-3, torso=(4, 4))
