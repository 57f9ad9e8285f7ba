"""The same agent in one real environment of each library, against the agent inside jit."""

import dm_env
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bsuite.environments import catch as bsuite_catch
from pohp_neurd.games import cart_pole, catch

from pohp_neurd import host, lifetimes, online

OPTIONS = online.Options("neurd_cix", common_mode="dropped", window=4)
SETTINGS = {"learning_rate": 1e-3, "exploration": 0.5, "torso": (8, 8)}


@pytest.mark.thorough
def test_bsuite_catch_is_played_as_our_own_catch():
    """Bsuite's balls, dropped again in our catch under the same actions, give the same rewards."""
    environment = bsuite_catch.Catch(seed=3)
    columns = []
    reset = environment._reset

    def watched():
        moment = reset()
        columns.append(environment._ball_x)
        return moment

    environment._reset = watched
    world = host.DmEnv(environment, reward=lambda reward: min(reward, 0.0), continuing=True)
    played = host.train(world, OPTIONS, 90, **SETTINGS)
    expected, board, balls = [], catch.drop(columns[0], 5, xp=np), iter(columns[1:])
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
