"""The network model."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from pohp_neurd import neural, policy


def test_paper_torso_sizes():
    parameters = jax.eval_shape(neural.network(50, 3, critic=True).init, key=jax.random.key(0))
    shapes = {module: leaves["w"].shape for module, leaves in parameters.items()}
    # The skip connection: the second layer sees the 256 ReLUs and the input beside them.
    assert shapes == {"torso_0": (50, 256), "torso_1": (306, 256), "actor": (256, 3), "critic": (256, 1)}


@pytest.mark.thorough
@pytest.mark.parametrize("torso", [(), (4,), (4, 3), (5, 4, 3)])
def test_output_matches_a_loop(torso):
    with jax.enable_x64(True):
        model = neural.network(6, 2, torso=torso, critic=True)
        parameters = jax.jit(model.init)(key=jax.random.key(3))
        features = np.random.default_rng(0).normal(size=6)
        output = jax.jit(model.apply)(parameters, jnp.asarray(features))
        hidden = features
        for index in range(len(torso)):
            layer = parameters[f"torso_{index}"]
            units = np.maximum(0, hidden @ np.asarray(layer["w"]) + np.asarray(layer["b"]))
            hidden = units if index == len(torso) - 1 else np.concatenate([units, hidden])
        heads = {name: hidden @ np.asarray(parameters[name]["w"]) for name in ("actor", "critic")}
        np.testing.assert_allclose(output.logits, heads["actor"], rtol=1e-12)
        np.testing.assert_allclose(output.value, heads["critic"][0], rtol=1e-12)
        assert output.logits.dtype == jnp.float64


def test_no_critic_no_value_and_float32_by_default():
    model = neural.network(3, 2, torso=(4,))
    output = model.apply(model.init(key=jax.random.key(0)), jnp.ones(3))
    assert output.value is None
    assert output.logits.dtype == jnp.float32


@pytest.mark.thorough
@pytest.mark.parametrize("batch", [1, 4])
def test_illegal_actions_get_no_gradient(batch):
    model = neural.network(3, 4, torso=(5, 4))
    parameters = jax.jit(model.init)(key=jax.random.key(0))
    features = jax.random.normal(jax.random.key(1), (batch, 3))
    legal = jnp.tile(jnp.array([True, False, True, False]), (batch, 1))

    def loss(parameters):
        def one(features, legal):
            logits = model.apply(parameters, features).logits
            return policy.probabilities(logits, legal)[0] + policy.entropy(logits, legal)

        return jnp.sum(jax.vmap(one)(features, legal))

    actor = jax.jit(jax.grad(loss))(parameters)["actor"]
    np.testing.assert_array_equal(np.asarray(actor["w"])[:, [1, 3]], 0.0)
    np.testing.assert_array_equal(np.asarray(actor["b"])[[1, 3]], 0.0)
    assert np.any(np.asarray(actor["b"])[[0, 2]] != 0)


def test_gradient_matches_finite_differences():
    with jax.enable_x64(True):
        model = neural.network(3, 2, torso=(4, 3), critic=True)
        parameters = jax.jit(model.init)(key=jax.random.key(2))
        features = jnp.array([0.3, -0.7, 1.1])

        def loss(kernel):
            changed = {**parameters, "torso_0": {**parameters["torso_0"], "w": jnp.asarray(kernel)}}
            output = model.apply(changed, features)
            return jnp.sum(output.logits**2) + output.value

        kernel = parameters["torso_0"]["w"]
        numeric = oracles.finite_differences(jax.jit(loss), kernel)
        np.testing.assert_allclose(jax.jit(jax.grad(loss))(kernel), numeric, atol=1e-8)


def test_same_key_same_parameters():
    model = neural.network(3, 2, torso=(4,))
    one, same, other = (model.init(key=jax.random.key(seed)) for seed in (0, 0, 1))
    assert jax.tree.all(jax.tree.map(lambda x, y: bool(jnp.all(x == y)), one, same))
    assert not bool(jnp.all(one["actor"]["w"] == other["actor"]["w"]))


def test_bad_sizes_get_one_sentence():
    with pytest.raises(ValueError, match=r"^torso layer 1 must be at least 1, but is 0\.$"):
        neural.network(3, 2, torso=(4, 0))
    with pytest.raises(ValueError, match=r"^observation_size must be at least 1, but is 0\.$"):
        neural.network(0, 2)


@pytest.mark.parametrize("lead", [(), (3,)])
@pytest.mark.parametrize("torso", [(), (7,), (6, 5), (4, 3, 2)])
@pytest.mark.parametrize("critic", [False, True])
def test_parameters_in_one_array_and_back(lead, torso, critic):
    """Each has one place in it, whichever of JAX and numpy they are of; numpy's come back as views."""
    model = neural.network(5, 4, torso=torso, critic=critic)
    parameters = model.init(key=jax.random.key(0))
    parameters = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*lead, *leaf.shape)) + 0.1, parameters)
    layout = neural.Layout(5, 4, torso, critic=critic)
    for whole in (parameters, jax.device_get(parameters)):
        flat = layout.pack(whole)
        assert flat.shape == (*lead, sum(leaf[(0,) * len(lead)].size for leaf in jax.tree.leaves(whole)))
        assert type(flat) is type(jax.tree.leaves(whole)[0])
        jax.tree.map(np.testing.assert_array_equal, layout.unpack(flat), whole)
    numbers = np.arange(flat.size, dtype=np.float32).reshape(flat.shape)
    unpacked = layout.unpack(numbers)
    jax.tree.map(np.testing.assert_array_equal, layout.pack(unpacked), numbers)
    unpacked["actor"]["b"][...] = -1
    assert (numbers == -1).sum() == unpacked["actor"]["b"].size
