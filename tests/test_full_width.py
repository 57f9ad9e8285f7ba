"""Full-width self-play against exact directions, CFR's theory, and known equilibria."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pohp_neurd.games import matrix_game

from pohp_neurd import averaging, exact, full_width, openspiel, policy


def run(tree, iterations, step_size):
    with jax.enable_x64(True):
        form = exact.sequence_form_of(tree)

        @jax.jit
        def train(form, state):
            def step(state, _):
                return full_width.iteration(form, state, step_size=step_size, weight=lambda t: 1.0), None

            return jax.lax.scan(step, state, None, length=iterations)[0]

        state = train(form, full_width.init(form, jnp.float64))
        legal = jnp.asarray(tree.legal)
        return (
            np.asarray(full_width.current_policy(form, state)),
            np.asarray(full_width.average_policy(form, legal, state)),
        )


@pytest.mark.parametrize(
    "name",
    [
        "kuhn_poker",
        *[pytest.param(name, marks=pytest.mark.slow) for name in ("kuhn_poker(players=3)", "leduc_poker")],
    ],
)
def test_iterations_follow_exact_directions(name):
    """Three updates, step by step, from the directions and reaches of the sweeps over histories."""
    tree = openspiel.compile_game(name)
    logits, total = np.zeros(tree.legal.shape), np.zeros(tree.legal.shape)
    for _ in range(3):
        with jax.enable_x64(True):
            current = np.asarray(jax.vmap(policy.probabilities)(logits, tree.legal))
        found = exact.quantities(tree, current)
        own_reach = found.realization / found.counterfactual_realization
        total += own_reach[:, None] * current
        logits += 0.7 * exact.expected_direction(tree, current, "neurd", weights="counterfactual")
    with jax.enable_x64(True):
        current = np.asarray(jax.vmap(policy.probabilities)(logits, tree.legal))
    mine, average = run(tree, 3, lambda t: 0.7)
    np.testing.assert_allclose(mine, current, atol=1e-12)
    np.testing.assert_allclose(average, total / total.sum(axis=1, keepdims=True), atol=1e-12)


@pytest.mark.thorough
def test_average_policy_of_a_matrix_game_is_the_plain_mean():
    game = matrix_game.zero_sum(matrix_game.BIASED_ROCK_PAPER_SCISSORS)
    _, average = run(game, 20_000, lambda t: 0.02)
    np.testing.assert_allclose(average, [[0.25, 0.5, 0.25]] * 2, atol=0.01)


def test_unreached_states_average_to_uniform():
    total = jnp.array([[0.0, 0.0, 0.0], [1.0, 3.0, 0.0]])
    legal = jnp.array([[True, False, True], [True, True, False]])
    np.testing.assert_allclose(averaging.average(total, legal), [[0.5, 0, 0.5], [0.25, 0.75, 0]])


def test_average_policy_of_kuhn_poker_approaches_an_equilibrium():
    """Hedge's regret at each of the 12 states bounds NashConv, through CFR's theorem."""
    tree = openspiel.compile_game("kuhn_poker")
    iterations, step = 4_000, 0.05
    _, average = run(tree, iterations, lambda t: step)
    # CFR's theorem: NashConv is at most the sum over states of regret / T, with counterfactual values
    # in an interval of width 4 times the others' reach, at most 4.
    bound = 12 * (np.log(2) / (step * iterations) + step * 4**2 / 8)
    assert exact.nash_conv(tree, average) < min(bound, 0.05)


def test_imperfect_recall_is_refused():
    with pytest.warns(UserWarning, match="observation strings stand in"):
        tree = openspiel.compile_game("deep_sea(size=3)")
    with pytest.raises(ValueError, match="need perfect recall"):
        full_width.init(exact.sequence_form_of(tree))
