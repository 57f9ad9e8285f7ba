"""Matrix games and the bandit."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import oracles
import pytest
from pohp_neurd.games import matrix_game


def test_every_outcome_pays_what_the_matrix_says():
    rng = np.random.default_rng(0)
    payoffs = rng.normal(size=(3, 2, 3, 4))
    world = matrix_game.matrix_game(list(payoffs))
    assert (world.num_agents, world.num_actions, world.num_information_states) == (3, 4, 3)
    np.testing.assert_array_equal(world.legal.sum(axis=1), [2, 3, 4])
    for joint in np.ndindex(2, 3, 4):
        table = np.eye(4)[list(joint)]
        expected = sum(reach * total for reach, total in oracles.tree_returns(world, table))
        np.testing.assert_allclose(expected, payoffs[(slice(None), *joint)])


def test_nobody_sees_the_others():
    world = matrix_game.zero_sum(matrix_game.ROCK_PAPER_SCISSORS)
    assert world.num_histories == 1 + 3 + 9
    assert world.num_information_states == 2
    assert world.spec.horizon == 2


def test_biased_rock_paper_scissors_has_the_equilibrium_it_says():
    payoffs, equilibrium = matrix_game.BIASED_ROCK_PAPER_SCISSORS, np.array([0.25, 0.5, 0.25])
    np.testing.assert_array_equal(payoffs, -payoffs.T)
    np.testing.assert_allclose(payoffs @ equilibrium, 0.0, atol=1e-15)


def test_zero_sum_pays_nothing_in_all():
    world = matrix_game.zero_sum(matrix_game.BIASED_ROCK_PAPER_SCISSORS)
    np.testing.assert_array_equal(world.rewards.sum(axis=1), 0.0)
    np.testing.assert_array_equal(world.return_shift, [2.0, 2.0])


@pytest.mark.thorough
def test_bandit_costs_what_it_says():
    misses = [0.2, 0.7, 0.0]
    world = matrix_game.bandit(misses)
    for arm, miss in enumerate(misses):
        expected = sum(reach * total for reach, total in oracles.tree_returns(world, np.eye(3)[[arm]]))
        np.testing.assert_allclose(expected, [-miss])
    first = world.initial(key=jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 20_000)  # 5 standard errors
    pull = jax.jit(jax.vmap(lambda key: world.reward(world.apply(first, jnp.asarray(1), key=key))[0]))
    assert abs(float(np.mean(pull(keys))) + 0.7) <= 5 * np.sqrt(0.7 * 0.3 / 20_000)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: matrix_game.bandit([0.5, 1.5]),
            "miss probabilities must lie in [0, 1], but are (0.5, 1.5).",
        ),
        (
            lambda: matrix_game.matrix_game([np.zeros((2, 2, 2))] * 2),
            "2 agents need payoff arrays of 2 axes, but these have 3.",
        ),
        (lambda: matrix_game.bandit([]), "a history needs actions in ascending order, but has []."),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        with pytest.raises(ValueError, match=r".*") as error:
            call()
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    assert str(error.value) == sentence
