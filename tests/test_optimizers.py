"""The fused Adam against optax's, and what it promises of idle parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from pohp_neurd import optimizers


@pytest.mark.parametrize("epsilon", [1e-8, 1e-2])
def test_it_is_optax_adam_without_momentum(epsilon):
    rng = np.random.default_rng(0)
    # optax itself mixes dtypes.
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        parameters = {"w": jnp.asarray(rng.normal(size=(3, 4))), "b": jnp.asarray(rng.normal(size=4))}
        ours = optimizers.adam_without_momentum(0.01, epsilon=epsilon)
        others = [
            optax.adam(0.01, b1=0.0, eps=epsilon),
            optax.chain(
                optax.scale_by_rms(decay=0.999, eps=epsilon, eps_in_sqrt=False, bias_correction=True),
                optax.scale(-0.01),
            ),
        ]
        state, states = ours.init(parameters), [other.init(parameters) for other in others]
        for _ in range(20):
            gradient = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), parameters)
            step, state = ours.update(gradient, state)
            for index, other in enumerate(others):
                expected, states[index] = other.update(gradient, states[index], parameters)
                jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), step, expected)


def test_the_first_step_is_one_learning_rate():
    """ν̂ = g² after one update, in float32 too, where 1 − 0.999 loses digits."""
    optimizer = optimizers.adam_without_momentum(0.5)
    step, _ = optimizer.update(jnp.array([3.0, -0.1]), optimizer.init(jnp.zeros(2)))
    np.testing.assert_allclose(step, [-0.5, 0.5], rtol=1e-5)


def test_idle_parameters_keep_still_and_their_moments_decay():
    optimizer = optimizers.adam_without_momentum(0.1, decay=0.9)
    _, state = optimizer.update(jnp.array([2.0]), optimizer.init(jnp.zeros(1)))
    before = state.second_moment
    for _ in range(7):
        step, state = optimizer.update(jnp.zeros(1), state)
        assert float(step[0]) == 0.0
    np.testing.assert_allclose(state.second_moment, 0.9**7 * before, rtol=1e-5)


def test_the_learning_rate_may_be_traced():
    @jax.jit
    def first_step(rate):
        optimizer = optimizers.adam_without_momentum(rate)
        return optimizer.update(jnp.ones(1), optimizer.init(jnp.zeros(1)))[0][0]

    np.testing.assert_allclose([first_step(0.1), first_step(0.3)], [-0.1, -0.3], rtol=1e-5)
    assert first_step._cache_size() == 1


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="learning_rate must be a finite number of at least 0, but is -1"):
        optimizers.adam_without_momentum(-1.0)
    with pytest.raises(ValueError, match=r"decay must lie in \[0, 1\], but is 2"):
        optimizers.adam_without_momentum(0.1, decay=2.0)
