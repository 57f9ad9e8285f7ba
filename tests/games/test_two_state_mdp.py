"""The tiny MDP against its closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pohp_neurd.games import two_state_mdp

from pohp_neurd import process, returns

POLICY = np.array([[0.7, 0.3], [0.4, 0.6]])


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9])
def test_action_values_match_a_long_sum(discount):
    mdp = two_state_mdp.TwoStateMDP(discount=discount, slip=0.2)
    chances, costs = mdp.transitions(), np.array([0.0, -1.0])
    np.testing.assert_allclose(chances.sum(axis=2), 1.0)
    for state in range(2):
        for action in range(2):
            where, total, weight = chances[state, action], 0.0, 1.0
            for _ in range(400):
                total += weight * where @ costs
                weight *= discount
                where = np.einsum("s,sa,san->n", where, POLICY, chances)
            np.testing.assert_allclose(mdp.action_values(POLICY)[state, action], total, atol=1e-12)


def test_by_hand():
    # Always stay, no discount: from the good state the bad one comes with the slip, and stays.
    mdp = two_state_mdp.TwoStateMDP(discount=0.0, slip=0.25)
    np.testing.assert_allclose(mdp.action_values(np.array([[1.0, 0], [1, 0]])), [[-0.25, -1], [-1, 0]])


def test_transitions_are_sampled_with_their_probabilities():
    # 50,000 draws for each state and action, 5 standard errors.
    mdp, count = two_state_mdp.TwoStateMDP(slip=0.3), 50_000
    keys = jax.random.split(jax.random.key(0), count)

    @jax.jit
    def step(state, action):
        place = two_state_mdp.Place(state, jnp.asarray(True))
        return jax.vmap(lambda key: mdp.apply(place, action, key=key).state)(keys)

    for state, action in np.ndindex(2, 2):
        found = np.asarray(step(np.int32(state), np.int32(action)))
        frequency, chance = np.mean(found == 0), mdp.transitions()[state, action, 0]
        assert abs(frequency - chance) <= 5 * np.sqrt(chance * (1 - chance) / count)


@pytest.mark.thorough
@pytest.mark.parametrize("sampled", [False, True], ids=["expected", "sampled"])
def test_both_kinds_of_continuation_give_the_closed_form_value(sampled):
    # 20,000 lifetimes of 120 decisions (0.8^120 is 2e-12), 5 standard errors.
    mdp, count = two_state_mdp.TwoStateMDP(discount=0.8), 20_000
    device = jnp.asarray(POLICY, jnp.float32)

    def lifetime(key):
        def step(history, key):
            act, reply, going = jax.random.split(key, 3)
            action = jax.random.choice(act, 2, p=device[history.state])
            after = mdp.apply(history, action, key=reply)
            weight = process.continuation_weight(mdp, after, key=going if sampled else None)
            return after, (mdp.reward(after)[0], weight)

        start = mdp.initial(key=key)
        rewards, weights = jax.lax.scan(step, start, jax.random.split(key, 120))[1]
        return returns.lambda_returns(rewards, weights, jnp.zeros_like(rewards), lambda_=1.0)[0]

    found = np.asarray(jax.jit(jax.vmap(lifetime))(jax.random.split(jax.random.key(4), count)), np.float64)
    expected = POLICY[0] @ mdp.action_values(POLICY)[0]
    assert abs(found.mean() - expected) <= 5 * found.std() / np.sqrt(count)


def test_bad_input_gets_one_sentence():
    with pytest.raises(ValueError, match=r"^discount must lie in \[0, 1\], but is 1\.2\.$"):
        two_state_mdp.TwoStateMDP(discount=1.2)
    with pytest.raises(ValueError, match=r"^slip must lie in \[0, 1\], but is -1\.$"):
        two_state_mdp.TwoStateMDP(slip=-1.0)
