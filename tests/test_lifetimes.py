"""Every draw of a life has a key of its own, and no number that leaves the finite ones goes unnoticed."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pohp_neurd.games import catch

from pohp_neurd.online import agent as online
from pohp_neurd.online import lifetimes

STEPS = 3


def data(key):
    return jax.random.key_data(key)


class Recorder:
    """A world whose history is the list of the keys that it was given: at first its birth's."""

    def __init__(self, *, ends):
        self.spec = SimpleNamespace(horizon=1 if ends else None)
        self.ends = ends

    def initial(self, *, key):
        return {"birth": data(key), "replies": jnp.zeros((STEPS, 2), jnp.uint32), "time": jnp.int32(0)}

    def apply(self, history, action, *, key):
        replies = history["replies"].at[history["time"]].set(data(key))
        return {**history, "replies": replies, "time": history["time"] + 1}

    def active_agent(self, history):
        return jnp.int32(0)

    def observation(self, history):
        return jnp.zeros(1)

    def legal_actions(self, history):
        return jnp.ones(2, bool)

    def reward(self, history):
        return jnp.zeros(1)

    def continuation(self, history):
        return jnp.where(self.ends & (history["time"] > 0), 0.0, 1.0)


def recording_agent():
    """An agent whose body is the list of the keys that it acted by, after the one that it was made with."""

    def init(moment, *, key):
        return online.State(jnp.zeros((STEPS + 1, 2), jnp.uint32).at[0].set(data(key)), (), jnp.int32(0))

    def act(state, moment, *, key):
        body = state.body.at[state.time + 1].set(data(key))
        return online.State(body, (), state.time + 1), jnp.int32(0)

    def learn(state):
        return state, online.Info(jnp.zeros(()), jnp.zeros(()))

    return online.Agent(init, act, learn, lambda state: ())


def lived(world, steps, seed=0):
    def both(key):
        life = lifetimes.begin(world, recording_agent(), world.observation, key=key)
        return lifetimes.live(world, recording_agent(), world.observation, life, steps, key=key)[0]

    return jax.jit(both)(jax.random.key(seed))


def test_every_draw_of_a_life_has_a_key_of_its_own():
    """The network, the first history, and of every step the action, the reply and the new beginning."""
    life = lived(Recorder(ends=False), STEPS)
    keys = [life.history["birth"], *life.history["replies"], *life.agent.body]
    for steps in range(1, STEPS + 1):
        keys.append(lived(Recorder(ends=True), steps).history["birth"])
    found = np.stack(keys)
    assert found.shape == (3 * STEPS + 2, 2)
    assert len(np.unique(found, axis=0)) == len(found)
    other = lived(Recorder(ends=False), STEPS, seed=1)
    both = np.concatenate([found, other.history["replies"], other.agent.body])
    assert len(np.unique(both, axis=0)) == len(both)


@pytest.mark.thorough
def test_an_optimizer_that_has_left_the_finite_numbers_is_told_of():
    """A gradient of 1e25 makes a second moment infinite; all that the agent says stays finite."""
    world = catch.Catch()
    runs = lifetimes.Runs(np.array([0], np.int32), np.array([1e-3], np.float32), np.ones(1, np.float32))
    for cost, diverged in ((1.0, False), (1e25, True)):
        options = online.Options(window=4, critic_cost=cost)
        lives = lifetimes.begin_all(world, options, runs, torso=(8, 8))
        lives, totals = lifetimes.live_all(world, options, runs, lives, 20, torso=(8, 8))
        assert bool(totals.diverged[0]) == diverged
        assert np.isfinite(totals.squared_error[0])
        assert np.isfinite(totals.entropy[0])
        assert bool(np.all(np.isfinite(lives.agent.body.weights)))
