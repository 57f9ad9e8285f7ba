"""The Spec, the conformance check, continuation weights and the view of one agent."""

import dataclasses
import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import two_state_mdp
from pohp_neurd.games import matrix_game

from pohp_neurd import policy, process, returns
from pohp_neurd.finite import tree, tree_builder


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
        process.check_process(BROKEN[rule], num_episodes=4, num_steps=6)
    assert f"the process breaks the rule that {rule}" in str(error.value)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("reward", [-1.5, pytest.param(np.nan, marks=pytest.mark.slow)])
def test_rewards_below_the_bound_and_nan_are_found(reward):
    bad = broken(reward=lambda h: jnp.full(1, reward))
    with pytest.raises(ValueError, match=r"rule that rewards are in \[-1, 0\], but found"):
        process.check_process(bad, num_episodes=4, num_steps=6)


@pytest.mark.parametrize("continuation", [-0.1, pytest.param(np.nan, marks=pytest.mark.slow)])
def test_bad_continuations_are_found(continuation):
    bad = broken(continuation=lambda h: jnp.asarray(continuation, jnp.float32))
    with pytest.raises(ValueError, match=r"rule that continuation is in \[0, 1\], but found"):
        process.check_process(bad, num_episodes=4, num_steps=6)


def test_a_broken_rule_late_in_an_episode_is_found():
    bad = broken(observation=lambda h: jnp.where(h.steps == 2, jnp.inf, jnp.zeros(2)))
    with pytest.raises(ValueError, match="rule that observations are finite"):
        process.check_process(bad, num_episodes=4, num_steps=6)


PROCESSES = {
    "counting": Counting(),
    "rock paper scissors": matrix_game.zero_sum(matrix_game.ROCK_PAPER_SCISSORS),
    "bandit": matrix_game.bandit([0.2, 0.7, 0.5]),
    "two states": two_state_mdp.TwoStateMDP(),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize(
    "x64", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["float32", "float64"]
)
def test_good_processes_pass(name, x64):
    with jax.enable_x64(x64):
        process.check_process(PROCESSES[name], num_episodes=4, num_steps=6)


def test_one_step_is_enough_to_check():
    process.check_process(Counting(), num_episodes=2, num_steps=1)


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


# The view of one agent.


@functools.cache
def turn_taking():
    """Three agents, rewards on the way, no chance: agent 0 moves at depths 0 and 3, and not always twice."""

    def describe(path):
        depth = len(path)
        rewards = [0.1 * ((7 * sum((i + 1) * (a + 1) for i, a in enumerate(path)) + p) % 5) for p in range(3)]
        if depth == 5 or (depth >= 3 and path[2] == 1 and path[1] == 0):
            return tree_builder.Node(tree.TERMINAL, rewards)
        player = (0, 1, 2, 0, 1)[depth]
        seen = (player, path[:1], depth) if player != 0 else (player, path[:1] + path[2:3], depth)
        return tree_builder.Node(player, rewards if depth else [0.0] * 3, seen, (0, 1))

    return tree_builder.grow(
        (), describe, lambda path, action: (*path, action), num_agents=3, num_actions=2, name="turns"
    )


@dataclasses.dataclass(frozen=True)
class Discounted:
    """A tree whose histories go on with a probability below 1."""

    inner: tree.Tree
    discount: float

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def continuation(self, history):
        return self.inner.continuation(history) * self.discount


def random_policy(world, seed):
    rng = np.random.default_rng(seed)
    weights = np.where(world.legal, rng.random(world.legal.shape) + 0.1, 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def follow(world, table):
    device = jnp.asarray(table, jnp.float32)
    return lambda history: device[world.information_state_of(history)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("agent", "discount"),
    [(2, 0.7), *[pytest.param(*pair, marks=pytest.mark.slow) for pair in ((0, 1.0), (1, 1.0), (0, 0.7))]],
)
def test_agent_view_is_the_process_with_the_others_folded_in(agent, discount):
    """Exact: under pure policies of all agents a view is without chance; each has its probability."""
    world = turn_taking()
    played = Discounted(world, discount)
    table = random_policy(world, agent)
    key = jax.random.key(0)
    expected = oracles.expected_return(played, follow(world, table), played.initial(key=key), agent)

    def lifetime(pure):
        def choices(history):
            return pure[world.information_state_of(history)]

        view = process.agent_view(played, agent, choices)

        def step(history, _):
            following = view.apply(history, jnp.argmax(choices(history.inner)), key=key)
            return following, (view.reward(following)[0], view.continuation(following))

        first = view.initial(key=key)
        rewards, continuations = jax.lax.scan(step, first, length=3)[1]
        later = returns.lambda_returns(rewards, continuations, jnp.zeros_like(rewards), lambda_=1.0)[0]
        return view.reward(first)[0] + view.continuation(first) * later

    pures = np.stack(list(oracles.pure_policies(world.legal)))
    weights = np.prod(np.sum(pures * table, axis=2), axis=1)
    np.testing.assert_allclose(weights.sum(), 1.0)
    values = jax.jit(jax.vmap(lifetime))(jnp.asarray(pures, jnp.float32))
    np.testing.assert_allclose(weights @ np.asarray(values, np.float64), expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("agent", [1])
def test_agent_view_conforms(agent):
    world = turn_taking()
    view = process.agent_view(world, agent, follow(world, random_policy(world, 0)))
    assert view.spec.num_agents == 1
    process.check_process(view, num_episodes=4, num_steps=3)


@pytest.mark.thorough
def test_agent_view_samples_the_others():
    # 20,000 episodes, 5 standard errors: the mean reward of each action against a mixed opponent.
    payoffs = matrix_game.ROCK_PAPER_SCISSORS
    world = matrix_game.zero_sum(payoffs)
    table = np.array([[1.0, 0, 0], [0.5, 0.3, 0.2]])
    view = process.agent_view(world, 0, follow(world, table))

    def episode(key, action):
        first, second = jax.random.split(key)
        return view.reward(view.apply(view.initial(key=first), action, key=second))[0]

    keys = jax.random.split(jax.random.key(0), 20_000)
    play = jax.jit(jax.vmap(episode, in_axes=(0, None)))
    for action in range(3):
        rewards = np.asarray(play(keys, jnp.asarray(action, jnp.int32)), np.float64)
        expected = payoffs[action] @ table[1] - 1  # shifted by the largest payoff
        assert abs(rewards.mean() - expected) <= 5 * rewards.std() / np.sqrt(len(rewards))


def test_bad_views_get_one_sentence():
    world = matrix_game.zero_sum(matrix_game.ROCK_PAPER_SCISSORS)
    anything = follow(world, random_policy(world, 0))
    with pytest.raises(ValueError, match=r"^agent must be one of 0 to 1, but is 2\.$"):
        process.agent_view(world, 2, anything)
    continuing = two_state_mdp.TwoStateMDP()
    with pytest.raises(ValueError, match=r"^a continuing process has no return bound: give agent_view"):
        process.agent_view(continuing, 0, lambda history: jnp.ones(2) / 2)
    view = process.agent_view(continuing, 0, lambda history: jnp.ones(2) / 2, reward_bound=3.0)
    assert view.spec.reward_bound == 3


def test_nobody_recompiles():
    world = turn_taking()
    view = process.agent_view(world, 0, follow(world, random_policy(world, 0)))
    traces = 0

    @jax.jit
    def play(key):
        nonlocal traces
        traces += 1
        history = view.initial(key=key)
        action = policy.sample(jnp.array([0.5, 0.5]), key=key)
        return view.apply(history, action, key=key)

    for seed in range(3):
        play(jax.random.key(seed))
    assert traces == 1
