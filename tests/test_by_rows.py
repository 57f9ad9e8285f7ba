"""The network in rows computes and learns what the dense network does by autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import directions, learners, neural
from pohp_neurd.online import actor_critic, by_rows
from pohp_neurd.online import agent as online

SIZE, ACTIONS = 11, 3


def _both(width, learning_rate=1e-2):
    adam = actor_critic.Adam(learning_rate)
    rule = directions.neurd_cix(0.3)
    rows = by_rows.paper_network(SIZE, ACTIONS, rule, adam, torso=(width, width), critic_cost=0.7)
    model = neural.network(SIZE, ACTIONS, torso=(width, width), critic=True)
    return rows, actor_critic.dense(model, rule, adam, critic_cost=0.7)


# A layer narrower than the outputs, and one that is not a multiple of four.
@pytest.mark.parametrize("width", [2, 7])
def test_split_and_join_are_inverse(width):
    model = neural.network(SIZE, ACTIONS, torso=(width, width), critic=True)
    parameters = jax.jit(model.init)(key=jax.random.key(0))
    parameters = jax.tree.map(
        lambda leaf: leaf + jnp.arange(float(leaf.size)).reshape(leaf.shape), parameters
    )
    again = by_rows.join(by_rows.split(parameters), SIZE, ACTIONS, width)
    jax.tree.map(np.testing.assert_array_equal, parameters, again)


@pytest.mark.parametrize(("width", "listed"), [(7, True), (16, False), (2, False)])
def test_rows_equal_dense_over_200_updates(width, listed):
    """States with three inputs that are not 0; most rest for long, so their decay is caught up often."""
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        rows, dense = _both(width)
        one, other = (jax.jit(body.init)(key=jax.random.key(0)) for body in (rows, dense))
        outputs = [jax.jit(rows.outputs), jax.jit(dense.outputs)]
        updates = [jax.jit(rows.update), jax.jit(dense.update)]
        for _ in range(200):
            # Low inputs come often and high ones seldom.
            active = np.sort(rng.choice(SIZE, 3, replace=False, p=np.arange(SIZE, 0, -1) ** 3 / 4356))
            features = np.zeros(SIZE)
            features[active] = 1 if listed else rng.normal(size=3)
            whole = jnp.asarray(features[None])
            states = [jnp.asarray(active[None], jnp.int32) if listed else whole, whole]
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
        left, right = rows.parameters(one), dense.parameters(other)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-11), left, right)
        assert one.updates == 200
        assert np.any(np.asarray(one.counts) < 200)  # some rows rest


def test_an_update_leaves_the_state_it_was_given():
    """Rows are written in place where nobody else holds them, and copied where somebody does."""
    rows, _ = _both(8)
    state = jax.jit(rows.init)(key=jax.random.key(0))
    before = jax.tree.map(np.array, state)
    decision = learners.Decision(
        agent_state=jnp.asarray([[0, 4]], jnp.int32),
        legal=jnp.ones((1, ACTIONS), bool),
        action=jnp.zeros(1, jnp.int32),
        probability=jnp.full(1, 0.3),
        return_=-jnp.ones(1),
        target=-jnp.ones(1),
    )
    after = jax.jit(rows.update)(state, decision)
    jax.tree.map(np.testing.assert_array_equal, before, jax.tree.map(np.asarray, state))
    assert np.any(np.asarray(after.weights) != before.weights)


def test_features_that_are_integers_are_not_taken_for_a_list():
    rows, _ = _both(8)
    state = jax.jit(rows.init)(key=jax.random.key(0))
    with pytest.raises(ValueError, match="all 11 features were given as integers"):
        rows.outputs(state, jnp.zeros((1, SIZE), jnp.int32))
    assert rows.outputs(state, jnp.zeros((1, SIZE))).logits.shape == (1, ACTIONS)


def test_the_torso_must_be_two_layers_of_one_width():
    with pytest.raises(ValueError, match=r"two layers of one width, but the torso is \(8, 9\)"):
        by_rows.paper_network(4, 2, directions.spg(), actor_critic.Adam(0.1), torso=(8, 9))


def test_what_rows_cannot_hold_is_dense():
    """Several states learning at once, and other networks; all others go by rows."""
    assert online.goes_by_rows(online.Options())
    assert not online.goes_by_rows(online.Options(updated="all"))
    assert not online.goes_by_rows(online.Options(), (8, 9))
    agent = online.with_network(4, 2, online.Options(), learning_rate=0.1, torso=(8, 9))
    moment = online.Moment(jnp.zeros(4), jnp.ones(2, bool), jnp.zeros(()), jnp.ones(()))
    state = jax.jit(agent.init)(moment, key=jax.random.key(0))
    assert not isinstance(state.body, by_rows.State)
