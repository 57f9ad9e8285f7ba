"""Update functions, memories during play, and what a memory is worth on a finite process."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import two_state_mdp

from pohp_neurd import agent_state
from pohp_neurd.finite import tree, tree_builder


def end(*rewards):
    return tree_builder.Node(tree.TERMINAL, rewards)


@functools.cache
def driver():
    """The absent-minded driver: two crossings that look alike; action 0 goes on, action 1 exits."""

    def describe(path):
        if path == (0, 0):
            return end(1.0)
        if path and path[-1] == 1:
            return end(0.0 if len(path) == 1 else 4.0)
        return tree_builder.Node(0, [0.0], "crossing", (0, 1))

    return tree_builder.grow((), describe, lambda p, a: (*p, a), num_agents=1, num_actions=2, name="driver")


@functools.cache
def forgetting():
    """Imperfect recall: the agent acts, forgets what it did, and acts again."""

    def describe(path):
        if len(path) == 2:
            return end(-float(path[0] != path[1]))
        return tree_builder.Node(0, [0.0], f"turn {len(path)}", (0, 1))

    return tree_builder.grow((), describe, lambda p, a: (*p, a), num_agents=1, num_actions=2, name="forgets")


@functools.cache
def remembering():
    """Perfect recall: two agents in turn, twice; each knows its own past and sees the other's last move."""

    def describe(path):
        if len(path) == 4:
            return end(-float(path[0]), -float(path[3]))
        if len(path) == 2 and path[1] == 1:
            return tree_builder.Node(0, [0.0, 0.0], path, (0, 1, 2))
        return tree_builder.Node(len(path) % 2, [0.0, 0.0], path, (0, 1))

    return tree_builder.grow((), describe, lambda p, a: (*p, a), num_agents=2, num_actions=3, name="recalls")


def blurred(world, groups):
    """The tree with the features of some information states made equal."""
    return dataclasses.replace(world, features=np.eye(max(groups) + 1, dtype=np.float32)[groups])


def rows_named(world, name):
    state = world.information_state_strings.index(str(name))
    return set(np.flatnonzero(world.information_state == state).tolist())


# Verdicts.


def test_the_absent_minded_driver():
    world = driver()
    memory = agent_state.information_state(world)
    verdict = agent_state.is_absent_minded(world, memory)
    assert verdict
    assert set(verdict.histories) == rows_named(world, "crossing")
    assert verdict.reason == "histories 0 and 1 lie on one path and share agent state 0"
    timed = agent_state.is_timed(world, memory)
    assert not timed
    assert set(timed.histories) == rows_named(world, "crossing")
    assert not agent_state.has_perfect_recall(world, memory)


@pytest.mark.parametrize("make", [driver, forgetting, remembering])
def test_counting_own_actions_cures_absent_mindedness(make):
    world = make()
    memory = agent_state.timed(agent_state.information_state(world))
    assert agent_state.is_timed(world, memory)
    verdict = agent_state.is_absent_minded(world, memory)
    assert not verdict
    assert verdict.histories is None


def test_imperfect_recall_names_the_pair():
    world = forgetting()
    memory = agent_state.information_state(world)
    assert agent_state.is_timed(world, memory)
    assert not agent_state.is_absent_minded(world, memory)
    verdict = agent_state.has_perfect_recall(world, memory)
    assert not verdict
    assert set(verdict.histories) == rows_named(world, "turn 1")
    assert "histories 1 and 2 share agent state 1" in verdict.reason


def test_a_window_recalls_what_the_information_state_forgets():
    world = forgetting()
    assert agent_state.has_perfect_recall(world, agent_state.window(world, 1))
    assert not agent_state.has_perfect_recall(world, agent_state.last_observation(world))


@pytest.mark.thorough
def test_perfect_recall_holds_for_full_observations():
    world = remembering()
    for memory in (agent_state.information_state(world), agent_state.last_observation(world)):
        assert agent_state.has_perfect_recall(world, memory)
        assert agent_state.legal_actions_agree(world, memory)
        assert agent_state.is_timed(world, memory)
    verdict = agent_state.has_perfect_recall(world, agent_state.information_state(world))
    assert verdict.histories is None


def test_disagreeing_legal_actions_under_last_observation():
    # All information states look alike: some have two actions and some three.
    world = remembering()
    world = blurred(world, [0] * world.num_information_states)
    verdict = agent_state.legal_actions_agree(world, agent_state.last_observation(world))
    assert not verdict
    counts = {int(world.legal[world.information_state[row]].sum()) for row in verdict.histories}
    assert counts == {2, 3}
    assert all(world.player[row] == 0 for row in verdict.histories)
    assert "have different legal actions" in verdict.reason
    assert agent_state.legal_actions_agree(world, agent_state.information_state(world))


# Numbering.


def test_index_numbers_agent_states_agent_by_agent():
    world = remembering()
    numbered = agent_state.index(world, agent_state.information_state(world))
    assert numbered.num_states == world.num_information_states
    decisions = world.player >= 0
    np.testing.assert_array_equal(numbered.state[~decisions], -1)
    # A renaming of the information states, and none of them split or joined.
    pairs = set(zip(numbered.state[decisions], world.information_state[decisions], strict=True))
    assert len(pairs) == world.num_information_states
    for row in np.flatnonzero(decisions):
        assert numbered.player[numbered.state[row]] == world.player[row]
        np.testing.assert_array_equal(
            numbered.legal[numbered.state[row]], world.legal[world.information_state[row]]
        )
    assert np.all(np.diff(numbered.player) >= 0)


def slow_windows(world, length):
    """The last-k window of every decision, by walking back from it."""
    found = {}
    for row in np.flatnonzero(world.player >= 0):
        agent, pairs, here, after = world.player[row], [], row, None
        while here >= 0 and len(pairs) < length:
            if world.player[here] == agent:
                before = world.previous_action[here, agent]
                pairs.append((int(before), tuple(world.features[world.information_state[here]])))
                after = world.previous_decision[here, agent]
                here = after
            else:
                here = world.parent[here]
        found[int(row)] = (int(agent), tuple(pairs))
    return found


@pytest.mark.parametrize("length", [1, 2, 3])
def test_windows_match_a_walk_back(length):
    world = remembering()
    world = blurred(world, [i % 2 for i in range(world.num_information_states)])
    numbered = agent_state.index(world, agent_state.window(world, length))
    slow = slow_windows(world, length)
    for one in slow:
        for other in slow:
            assert (slow[one] == slow[other]) == (numbered.state[one] == numbered.state[other]), (one, other)


def test_minus_zero_is_zero():
    world = forgetting()
    signed = dataclasses.replace(world, features=np.array([[0.0], [-0.0]], np.float32))
    assert agent_state.index(signed, agent_state.last_observation(signed)).num_states == 1


# Update functions.


def test_window_by_hand():
    world = two_state_mdp.TwoStateMDP()
    memory = agent_state.window(world, 2)
    good = two_state_mdp.Place(jnp.asarray(0, jnp.int32), jnp.asarray(False))
    bad = two_state_mdp.Place(jnp.asarray(1, jnp.int32), jnp.asarray(True))
    state = memory.init(good)
    np.testing.assert_array_equal(state.actions, [-1, -1])
    np.testing.assert_array_equal(state.observations, [[0, 0], [1, 0]])
    state = memory.update(state, 1, bad)
    np.testing.assert_array_equal(state.actions, [-1, 1])
    np.testing.assert_array_equal(state.observations, [[1, 0], [0, 1]])
    state = memory.update(state, 0, good)
    np.testing.assert_array_equal(state.actions, [1, 0])
    np.testing.assert_array_equal(state.observations, [[0, 1], [1, 0]])


def test_timed_counts():
    world = two_state_mdp.TwoStateMDP()
    memory = agent_state.timed(agent_state.last_observation(world))
    history = world.initial(key=jax.random.key(0))
    state = memory.init(history)
    for count in range(3):
        assert int(state.time) == count
        np.testing.assert_array_equal(state.state, [1, 0])
        state = memory.update(state, 0, history)


def test_bad_memories_get_one_sentence():
    with pytest.raises(ValueError, match=r"^a window must have a length of at least 1, but has 0\.$"):
        agent_state.window(driver(), 0)
    with pytest.raises(ValueError, match=r"^object does not number its information states: use last_"):
        agent_state.information_state(object())
