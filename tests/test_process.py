"""The Spec and the conformance check."""

import itertools
from typing import NamedTuple

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import two_state_mdp

from pohp_neurd import process


class Count(NamedTuple):
    steps: jax.Array
    luck: jax.Array


class Counting:
    """A good process: three decisions, a lucky number, a cost of a half whenever action 1 was taken."""

    spec = process.Spec(1, 2, 2, reward_bound=1.0, horizon=3)

    def initial(self, *, key):
        return Count(jnp.zeros((), jnp.int32), jax.random.uniform(key))

    def active_agent(self, history):
        return jnp.zeros((), jnp.int32)

    def observation(self, history):
        return jnp.stack([history.steps.astype(history.luck.dtype), history.luck])

    def legal_actions(self, history):
        return jnp.array([True, True])

    def apply(self, history, action, *, key):
        following = Count(history.steps + 1, 0.5 * jax.random.uniform(key) + 0.5 * action.astype(float))
        ended = history.steps >= 3
        return jax.tree.map(lambda old, new: jnp.where(ended, old, new), history, following)

    def reward(self, history):
        return -jnp.where(history.luck > 0.5, 0.5, 0.0)[None]

    def continuation(self, history):
        return jnp.where(history.steps < 3, 1.0, 0.0)


def broken(**methods):
    return type("Broken", (Counting,), {name: staticmethod(method) for name, method in methods.items()})()


def forgetful():
    """Not a function of its key: it counts its calls."""
    calls = itertools.count()

    class Forgetful(Counting):
        def initial(self, *, key):
            return Count(jnp.zeros((), jnp.int32), jnp.asarray(0.01 * next(calls)))

    return Forgetful()


def two_faced(history):
    traced = isinstance(history.luck, jax.core.Tracer)
    return jnp.stack([history.steps.astype(jnp.float32), history.luck + (1.0 if traced else 0.0)])


class Restless(Counting):
    """Goes on after its end."""

    def apply(self, history, action, *, key):
        return Count(history.steps + 1, history.luck)


class Endless(Counting):
    """Keeps running past its horizon."""

    def continuation(self, history):
        return jnp.ones(())


BROKEN = {
    "active_agent has the shape () of the spec": broken(active_agent=lambda h: jnp.zeros(2, jnp.int32)),
    "observation has the shape (2,) of the spec": broken(observation=lambda h: jnp.zeros(3)),
    "legal has the shape (2,) of the spec": broken(legal_actions=lambda h: jnp.ones(3, bool)),
    "reward has the shape (1,) of the spec": broken(reward=lambda h: jnp.zeros(())),
    "continuation has the shape () of the spec": broken(continuation=lambda h: jnp.ones(1)),
    "legal is a mask of booleans": broken(legal_actions=lambda h: jnp.ones(2)),
    "histories keep their structure, shapes and dtypes": broken(
        apply=lambda h, action, *, key: Count(h.steps.astype(jnp.float32), h.luck)
    ),
    "active agents are in range": broken(active_agent=lambda h: jnp.ones((), jnp.int32)),
    "continuation is in [0, 1]": broken(continuation=lambda h: jnp.asarray(1.5)),
    "an active history has a legal action": broken(legal_actions=lambda h: jnp.zeros(2, bool)),
    "observations are finite": broken(observation=lambda h: jnp.full(2, jnp.nan)),
    "rewards are in [-1, 0]": broken(reward=lambda h: jnp.ones(1)),
    "the same key gives the same history": forgetful(),
    "jit and vmap give what plain calls give": broken(observation=two_faced),
    "terminal histories absorb": Restless(),
    "the horizon is 3 decisions": Endless(),
}


@pytest.mark.thorough
@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_process_is_told_the_rule(rule):
    with pytest.raises(ValueError, match=r".*") as error:
        conformance.check_process(BROKEN[rule], num_episodes=4, num_steps=6)
    assert f"the process breaks the rule that {rule}" in str(error.value)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("reward", [-1.5, pytest.param(np.nan, marks=pytest.mark.slow)])
def test_rewards_below_the_bound_and_nan_are_found(reward):
    bad = broken(reward=lambda h: jnp.full(1, reward))
    with pytest.raises(ValueError, match=r"rule that rewards are in \[-1, 0\], but found"):
        conformance.check_process(bad, num_episodes=4, num_steps=6)


@pytest.mark.parametrize("continuation", [-0.1, pytest.param(np.nan, marks=pytest.mark.slow)])
def test_bad_continuations_are_found(continuation):
    bad = broken(continuation=lambda h: jnp.asarray(continuation, jnp.float32))
    with pytest.raises(ValueError, match=r"rule that continuation is in \[0, 1\], but found"):
        conformance.check_process(bad, num_episodes=4, num_steps=6)


def test_a_broken_rule_late_in_an_episode_is_found():
    bad = broken(observation=lambda h: jnp.where(h.steps == 2, jnp.inf, jnp.zeros(2)))
    with pytest.raises(ValueError, match="rule that observations are finite"):
        conformance.check_process(bad, num_episodes=4, num_steps=6)


PROCESSES = {
    "counting": Counting(),
    "two states": two_state_mdp.TwoStateMDP(),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize(
    "x64", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["float32", "float64"]
)
def test_good_processes_pass(name, x64):
    with jax.enable_x64(x64):
        conformance.check_process(PROCESSES[name], num_episodes=4, num_steps=6)


def test_one_step_is_enough_to_check():
    conformance.check_process(Counting(), num_episodes=2, num_steps=1)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"num_agents": 0}, "num_agents must be at least 1, but is 0."),
        ({"num_actions": -2}, "num_actions must be at least 1, but is -2."),
        ({"observation_size": 0}, "observation_size must be at least 1, but is 0."),
        ({"reward_bound": -1.0}, "reward_bound must be a finite number of at least 0, but is -1."),
        ({"horizon": -1}, "horizon must be at least 0, or None, but is -1."),
    ],
)
def test_bad_specs_get_one_sentence(changes, sentence):
    good = {"num_agents": 1, "num_actions": 2, "observation_size": 1, "reward_bound": 1.0, "horizon": 3}
    with pytest.raises(ValueError, match=r".*") as error:
        process.Spec(**(good | changes))
    assert str(error.value) == sentence


def test_return_bound_defaults():
    assert process.Spec(1, 2, 1, reward_bound=2.0, horizon=3).return_bound == 6
    assert process.Spec(1, 2, 1, reward_bound=2.0, horizon=None).return_bound is None
    assert process.Spec(1, 2, 1, reward_bound=2.0, horizon=3, return_bound=4.0).return_bound == 4
