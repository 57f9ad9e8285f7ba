"""The tabular model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import policy, tabular


def test_first_policy_is_uniform_and_rows_are_states():
    model = tabular.table(3, 4, critic=True)
    parameters = model.init(key=jax.random.key(0))
    output = model.apply(parameters, 1)
    np.testing.assert_array_equal(policy.probabilities(output.logits, jnp.ones(4, bool)), [0.25] * 4)
    assert float(output.value) == 0
    moved = parameters._replace(logits=parameters.logits.at[1, 2].set(5.0), values=jnp.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(model.apply(moved, 1).logits, [0, 0, 5, 0])
    assert float(model.apply(moved, 2).value) == 3
    assert tabular.table(3, 4).init().values is None


def test_dtype_is_the_one_asked_for():
    assert tabular.table(2, 2).init().logits.dtype == jnp.float32
    with jax.enable_x64(True):
        assert tabular.table(2, 2).init().logits.dtype == jnp.float64
        assert tabular.table(2, 2, dtype=jnp.float32).init().logits.dtype == jnp.float32


@pytest.mark.parametrize("batch", [1, 3])
def test_only_legal_actions_of_visited_rows_get_gradient(batch):
    model = tabular.table(5, 4)
    states = jnp.arange(batch)
    legal = jnp.tile(jnp.array([True, False, True, False]), (batch, 1))

    def loss(parameters):
        def one(state, legal):
            logits = model.apply(parameters, state).logits
            return policy.probabilities(logits, legal)[0] ** 2 + policy.entropy(logits, legal)

        return jnp.sum(jax.vmap(one)(states, legal))

    start = model.init()._replace(logits=jax.random.normal(jax.random.key(1), (5, 4)))
    gradient = np.asarray(jax.jit(jax.grad(loss))(start).logits)
    np.testing.assert_array_equal(gradient[:, [1, 3]], 0.0)
    np.testing.assert_array_equal(gradient[batch:], 0.0)
    assert np.all(gradient[:batch, [0, 2]] != 0)


def test_bad_sizes_get_one_sentence():
    with pytest.raises(ValueError, match=r"^num_states must be at least 1, but is 0\.$"):
        tabular.table(0, 3)
    with pytest.raises(ValueError, match=r"^num_actions must be at least 1, but is -1\.$"):
        tabular.table(3, -1)
