"""Stacking and padding of trajectories."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import returns, trajectory


def step(index):
    return trajectory.Step(
        agent_state={"features": jnp.full(2, float(index)), "row": jnp.asarray(index)},
        legal=jnp.array([True, index > 0, True]),
        action=jnp.asarray(index % 3),
        probability=jnp.asarray(0.5),
        reward=jnp.asarray(-1.0 - index),
        continuation=jnp.asarray(1.0),
        valid=jnp.asarray(True),
    )


def test_stack_keeps_order_and_leaves():
    stacked = trajectory.stack([step(i) for i in range(4)])
    np.testing.assert_array_equal(stacked.reward, [-1, -2, -3, -4])
    np.testing.assert_array_equal(stacked.agent_state["features"], [[i, i] for i in range(4)])
    np.testing.assert_array_equal(stacked.legal[:, 1], [False, True, True, True])


def test_pad_adds_invalid_zeros():
    stacked = trajectory.stack([step(i) for i in range(3)])
    padded = trajectory.pad(stacked, 5)
    np.testing.assert_array_equal(padded.valid, [True, True, True, False, False])
    for before, after in zip(jax.tree.leaves(stacked), jax.tree.leaves(padded), strict=True):
        assert after.shape == (5, *before.shape[1:])
        assert after.dtype == before.dtype
        np.testing.assert_array_equal(after[:3], before)
        np.testing.assert_array_equal(after[3:], np.zeros_like(after[3:]))
    assert trajectory.pad(stacked, 3).action.shape == (3,)


def test_padding_changes_no_return():
    stacked = trajectory.stack([step(i) for i in range(3)])
    padded = trajectory.pad(stacked, 7)
    before = returns.monte_carlo(stacked.reward, stacked.continuation)
    after = returns.monte_carlo(padded.reward, padded.continuation)
    np.testing.assert_array_equal(after, [*before, 0, 0, 0, 0])


def test_bad_input_gets_one_sentence():
    with pytest.raises(ValueError, match=r"^a trajectory needs at least one step\.$"):
        trajectory.stack([])
    with pytest.raises(ValueError, match=r"^a trajectory of 2 steps does not fit into 1\.$"):
        trajectory.pad(trajectory.stack([step(0), step(1)]), 1)
