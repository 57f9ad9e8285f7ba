"""Update functions, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import two_state_mdp

from pohp_neurd import agent_state


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
        agent_state.window(two_state_mdp.TwoStateMDP(), 0)
