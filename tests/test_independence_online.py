"""An online run draws network, histories, actions and replies independently, and so do runs of two seeds.

The keys are recorded by a world and an agent that write down what they are given.
"""

import functools

import independence
import jax
import jax.numpy as jnp
import numpy as np
from pohp_neurd.games import catch

from pohp_neurd import process
from pohp_neurd.online import agent as online
from pohp_neurd.online import host, lifetimes


class KeyWorld:
    """A world whose history is the key that it was drawn from; its lives end at once, or never."""

    def __init__(self, ends):
        self._going = 0.0 if ends else 1.0
        self.spec = process.Spec(1, 2, 2, reward_bound=1.0, horizon=1, return_bound=1.0)

    def initial(self, *, key):
        return jax.random.key_data(key)

    def apply(self, history, action, *, key):
        return jax.random.key_data(key)

    def active_agent(self, history):
        return jnp.zeros((), jnp.int32)

    def observation(self, history):
        return jnp.zeros(2)

    def legal_actions(self, history):
        return jnp.ones(2, bool)

    def reward(self, history):
        return jnp.zeros(1)

    def continuation(self, history):
        return jnp.asarray(self._going)


def key_agent(num_steps):
    """An agent that remembers the key of its network, and at every step its own key and the world's."""

    def init(moment, *, key):
        body = {"network": jax.random.key_data(key), "log": jnp.zeros((num_steps, 2, 2), jnp.uint32)}
        return online.State(body, None, jnp.zeros((), jnp.int32))

    def act(state, moment, *, key):
        row = jnp.stack([jax.random.key_data(key), moment.agent_state])
        body = {**state.body, "log": state.body["log"].at[state.time].set(row)}
        return online.State(body, None, state.time + 1), jnp.zeros((), jnp.int32)

    def learn(state):
        return state, online.Info(jnp.zeros(()), jnp.zeros(()))

    return online.Agent(init, act, learn, lambda state: state.body)


def keys_of_a_life(seed, *, ends, steps=24):
    world, alive = KeyWorld(ends), key_agent(steps)
    key = jax.random.key(seed)
    life = lifetimes.begin(world, alive, lambda history: history, key=key)
    # In two calls: the second must not begin with the keys of the first.
    for count in (steps // 2, steps - steps // 2):
        life, _ = lifetimes.live(world, alive, lambda history: history, life, count, key=key)
    log = np.asarray(life.agent.body["log"])
    name = "new beginnings" if ends else "replies"
    return {
        "network": life.agent.body["network"],
        "first history": log[0, 1],
        "actions": log[:, 0],
        name: log[1:, 1],
    }


def test_a_life_draws_everything_from_a_key_of_its_own():
    """Network, first history, and 24 steps' actions, replies and new beginnings; of two seeds in a row."""
    found = {}
    for seed in (0, 1):
        for ends in (False, True):
            found |= {
                f"{name} of seed {seed}": keys for name, keys in keys_of_a_life(seed, ends=ends).items()
            }
    independence.check_keys(found)


STEPS = 1_025


@functools.lru_cache(maxsize=1)
def lives_in_catch():
    """Columns and actions [2, 1025] of two seeds' steps, as the paper's agent keeps them in its window."""
    world = catch.Catch(rows=2, columns=3)  # every step a ball lands and another is dropped
    options = online.Options(window=STEPS - 1)
    runs = lifetimes.Runs(np.arange(2), np.zeros(2, np.float32), np.ones(2, np.float32))
    lives = lifetimes.begin_all(world, options, runs, torso=(4, 4))
    lives, _ = lifetimes.live_all(world, options, runs, lives, STEPS, torso=(4, 4))
    window = lives.agent.window
    return np.asarray(window.agent_state)[:, :, 0], np.asarray(window.action)


def test_a_life_in_catch():
    columns, actions = lives_in_catch()
    independence.check_all({"columns of seed 0": columns[0], "columns of seed 1": columns[1]})
    independence.check_all({"actions of seed 0": actions[0], "actions of seed 1": actions[1]})
    for seed in range(2):
        independence.check_stream(columns[seed], f"columns of seed {seed}")
        # The reply to an action is the column after it.
        independence.check(actions[seed][:-1], columns[seed][1:], f"actions and replies of seed {seed}")


class Idle:
    """A host's environment with nothing to see and nothing to win."""

    num_actions, observation_size = 4, 1

    def reset(self):
        return host.Arrival(np.ones(1, np.float32), 0.0, 1.0)

    def step(self, action):
        return host.Arrival(np.ones(1, np.float32), 0.0, 1.0)


def test_training_on_the_host():
    """1,024 actions of two seeds, under a policy that a learning rate of 0 leaves alone."""
    actions = {}
    for seed in (0, 1):
        made = host.train(Idle(), online.Options(window=2), 1_024, learning_rate=0.0, seed=seed, torso=(4, 4))
        actions[f"seed {seed}"] = made.actions
        independence.check_stream(made.actions, f"actions of seed {seed}")
    independence.check_all(actions)
