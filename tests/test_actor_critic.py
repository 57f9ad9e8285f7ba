"""The network on sparse inputs computes and learns what the dense network does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import directions, learners, neural
from pohp_neurd.online import actor_critic

SIZE, ACTIONS, WIDTH = 11, 3, 7


def _both(learning_rate=1e-2):
    adam = actor_critic.Adam(learning_rate)
    rule = directions.neurd_cix(0.3)
    sparse = actor_critic.sparse(SIZE, ACTIONS, rule, adam, torso=(WIDTH, WIDTH))
    model = neural.network(SIZE, ACTIONS, torso=(WIDTH, WIDTH), critic=True)
    return sparse, actor_critic.dense(model, rule, adam)


def test_split_and_join_are_inverse():
    model = neural.network(SIZE, ACTIONS, torso=(WIDTH, WIDTH), critic=True)
    parameters = jax.jit(model.init)(key=jax.random.key(0))
    again = jax.jit(lambda given: actor_critic.join(actor_critic.split(given)))(parameters)
    jax.tree.map(np.testing.assert_array_equal, parameters, again)


@pytest.mark.thorough
def test_sparse_equals_dense_over_200_updates():
    """States with three active inputs; most inputs rest for long, so their decay is caught up often."""
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        sparse, dense = _both()
        one, other = (jax.jit(body.init)(key=jax.random.key(0)) for body in (sparse, dense))
        outputs = [jax.jit(sparse.outputs), jax.jit(dense.outputs)]
        updates = [jax.jit(sparse.update), jax.jit(dense.update)]
        for _ in range(200):
            # Low inputs come often and high ones seldom.
            active = np.sort(rng.choice(SIZE, 3, replace=False, p=np.arange(SIZE, 0, -1) ** 3 / 4356))
            features = np.zeros(SIZE)
            features[active] = 1
            states = [jnp.asarray(active[None], jnp.int32), jnp.asarray(features[None])]
            seen = [output(state, x) for output, state, x in zip(outputs, (one, other), states, strict=True)]
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), *seen)
            decision = learners.Decision(
                agent_state=None,
                legal=jnp.ones((1, ACTIONS), bool),
                action=jnp.asarray([rng.integers(ACTIONS)], jnp.int32),
                probability=jnp.asarray([0.2]),
                return_=jnp.asarray([-rng.random()]),
                target=jnp.asarray([-rng.random()]),
            )
            one = updates[0](one, decision._replace(agent_state=states[0]))
            other = updates[1](other, decision._replace(agent_state=states[1]))
        left, right = sparse.parameters(one), dense.parameters(other)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-11), left, right)


def test_the_torso_must_be_two_layers_of_one_width():
    with pytest.raises(ValueError, match=r"two layers of one width, but the torso is \(8, 9\)"):
        actor_critic.sparse(4, 2, directions.spg(), actor_critic.Adam(0.1), torso=(8, 9))
