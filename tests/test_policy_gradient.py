"""SPG is the gradient of the expected return: with one state, on a tiny MDP, through a network."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import two_state_mdp

from pohp_neurd import directions, learners, neural, optimizers, policy, tabular


def spg_update(model, parameters, decisions):
    """What one plain step of size 1 adds to the parameters."""
    learner = learners.learner(model.apply, directions.spg(), optimizers.sgd(1.0))
    state, _ = jax.jit(learner.update)(learner.init(parameters), decisions)
    return jax.tree.map(lambda new, old: new - old, state.parameters, parameters)


def all_decisions(policy_table, values, weights):
    """Every action at every state, as often as the policy takes it there."""
    num_states, num_actions = policy_table.shape
    state, action = (x.reshape(-1) for x in np.indices((num_states, num_actions)))
    return learners.Decision(
        agent_state=jnp.asarray(state),
        legal=jnp.ones((len(state), num_actions), bool),
        action=jnp.asarray(action),
        probability=jnp.asarray(policy_table[state, action]),
        return_=jnp.asarray(values[state, action]),
        weight=jnp.asarray(weights[state] * policy_table[state, action]),
    )


def test_expected_spg_is_the_gradient_of_the_return_with_one_state():
    with jax.enable_x64(True):
        logits = np.array([[0.4, -0.3, 1.0]])
        values = np.array([[-1.0, -0.2, -3.0]])

        def expected_return(table):
            return policy.probabilities(table[0], jnp.ones(3, bool)) @ jnp.asarray(values[0])

        model = tabular.table(1, 3)
        pi = oracles.softmax(logits[0], np.ones(3, bool))[None]
        got = spg_update(
            model, tabular.Table(jnp.asarray(logits), None), all_decisions(pi, values, np.ones(1))
        )
        np.testing.assert_allclose(
            got.logits, jax.jit(jax.grad(expected_return))(jnp.asarray(logits)), atol=1e-14
        )
        numeric = oracles.finite_differences(jax.jit(expected_return), logits)
        np.testing.assert_allclose(got.logits, numeric, atol=1e-9)


@pytest.mark.thorough
def test_expected_spg_is_the_gradient_of_the_return_on_the_tiny_mdp():
    with jax.enable_x64(True):
        mdp = two_state_mdp.TwoStateMDP(discount=0.9, slip=0.1)
        chances, costs = jnp.asarray(mdp.transitions()), jnp.array([0.0, -1.0])
        logits = np.array([[0.4, -0.3], [-0.8, 0.1]])

        def steps(table):
            pi = jax.vmap(policy.probabilities)(table, jnp.ones((2, 2), bool))
            return jnp.einsum("sa,san->sn", pi, chances)

        def expected_return(table):
            step = steps(table)
            return jnp.linalg.solve(jnp.eye(2) - mdp.discount * step, step @ costs)[two_state_mdp.GOOD]

        pi = np.stack([oracles.softmax(row, np.ones(2, bool)) for row in logits])
        # Discounted occupancy of the states: how often a decision is made there, from the good state.
        start = np.eye(2)[two_state_mdp.GOOD]
        occupancy = np.linalg.solve((np.eye(2) - mdp.discount * np.asarray(steps(logits))).T, start)
        decisions = all_decisions(pi, mdp.action_values(pi), occupancy)
        got = spg_update(tabular.table(2, 2), tabular.Table(jnp.asarray(logits), None), decisions)
        np.testing.assert_allclose(
            got.logits, jax.jit(jax.grad(expected_return))(jnp.asarray(logits)), atol=1e-13
        )


@pytest.mark.thorough
def test_expected_spg_is_the_gradient_through_a_network():
    with jax.enable_x64(True):
        model = neural.network(3, 3, torso=(5, 4))
        parameters = jax.jit(model.init)(key=jax.random.key(0))
        features, values = jnp.array([0.3, -1.0, 0.5]), jnp.array([-1.0, -0.2, -3.0])

        def expected_return(parameters):
            return policy.probabilities(model.apply(parameters, features).logits, jnp.ones(3, bool)) @ values

        pi = np.asarray(policy.probabilities(model.apply(parameters, features).logits, jnp.ones(3, bool)))
        decisions = all_decisions(pi[None], np.asarray(values)[None], np.ones(1))
        decisions = decisions._replace(agent_state=jnp.tile(features, (3, 1)))
        got = spg_update(model, parameters, decisions)
        jax.tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, atol=1e-12),
            got,
            jax.jit(jax.grad(expected_return))(parameters),
        )
