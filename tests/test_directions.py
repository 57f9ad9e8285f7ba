"""The directions of SPG, NeuRD and NeuRD-CIX: hand values, oracles, reductions, expectations."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from decisions import batch

from pohp_neurd import directions, learners, optimizers, policy, tabular

EXPLORATIONS = (0.0, 0.05, 0.3, 0.5, 0.9, 1.0)
PI = np.array([0.1, 0.55, 0.35, 0.0])
LEGAL = np.array([True, True, True, False])
RETURNS = np.array([-0.2, -2.5, -1.0, 0.0])


def of_all_actions(function, exploration, baseline=0.0, pi=PI, legal=LEGAL, returns=RETURNS):
    """The direction for every action that could have been sampled, in float64."""
    with jax.enable_x64(True):
        rows = []
        for action in np.flatnonzero(pi):
            decision = learners.Decision(
                None, jnp.asarray(legal), int(action), jnp.asarray(pi[action]), returns[action], baseline
            )
            rows.append(function(jnp.asarray(pi), decision, exploration))
            assert rows[-1].dtype == jnp.float64
        return np.stack(rows)


def test_spg_by_hand():
    pi = np.array([0.25, 0.75])
    got = of_all_actions(directions.spg_direction, 1.0, pi=pi, legal=np.ones(2, bool), returns=[-1.0, -2.0])
    np.testing.assert_array_equal(got, [[-0.75, 0.75], [0.5, -0.5]])


def test_neurd_cix_by_hand():
    pi = np.array([0.25, 0.75])
    given = {"pi": pi, "legal": np.ones(2, bool), "returns": [-1.0, -2.0]}
    # Eq. 6: G / π(A) · (1{a = A} − π(A)).
    np.testing.assert_allclose(
        of_all_actions(directions.neurd_cix_direction, 0.0, **given),
        [[-3.0, 1.0], [2.0, -2.0 / 3]],
        rtol=1e-15,
    )
    # Eq. 9 with β = 0.5 and 1; Eq. 10 with β = 1.
    np.testing.assert_array_equal(
        of_all_actions(directions.neurd_cix_direction, 0.25, **given), [[-1.5, 0.5], [1.5, -0.5]]
    )
    np.testing.assert_array_equal(
        of_all_actions(directions.neurd_cix_direction, 1.0, **given), [[-0.75, 0.25], [1.5, -0.5]]
    )


@pytest.mark.parametrize("exploration", EXPLORATIONS)
@pytest.mark.parametrize("baseline", [0.0, -0.7])
def test_neurd_cix_matches_the_oracle(exploration, baseline):
    got = of_all_actions(directions.neurd_cix_direction, exploration, baseline)
    for action, row in enumerate(got):
        expected = oracles.advantages(RETURNS[action], action, PI, exploration or 1e-300, baseline)
        np.testing.assert_allclose(row, np.where(LEGAL, expected, 0.0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("baseline", [0.0, -0.7])
def test_spg_is_the_importance_corrected_gradient_of_the_policy(baseline):
    # Eq. 1: (G / π(A)) ∇π(A), with the gradient by jax.grad and by finite differences.
    with jax.enable_x64(True):
        logits = np.where(LEGAL, np.log(np.where(LEGAL, PI, 1.0)), 0.3)
        slopes = jax.jit(jax.jacobian(policy.probabilities))(jnp.asarray(logits), jnp.asarray(LEGAL))
        got = of_all_actions(directions.spg_direction, 1.0, baseline)
        for action, row in enumerate(got):
            scale = (RETURNS[action] - baseline) / PI[action]
            np.testing.assert_allclose(row, scale * slopes[action], atol=1e-14)
            numeric = oracles.finite_differences(lambda f, a=action: oracles.softmax(f, LEGAL)[a], logits)
            np.testing.assert_allclose(row, scale * numeric, atol=1e-8)


def test_neurd_cix_without_exploration_is_neurd():
    pi = PI[:3]
    for action, row in enumerate(of_all_actions(directions.neurd_cix_direction, 0.0)):
        neurd = RETURNS[action] / pi[action] * (np.eye(3)[action] - pi[action])
        np.testing.assert_allclose(row[:3], neurd, rtol=1e-14)
    decisions = batch()
    model = tabular.table(3, 4)
    state = learners.learner(model.apply, directions.neurd(), optimizers.sgd(0.1)).init(model.init())
    moved = [
        jax.jit(learners.learner(model.apply, rule, optimizers.sgd(0.1)).update)(state, decisions)[0]
        for rule in (directions.neurd(), directions.neurd_cix(0.0))
    ]
    np.testing.assert_array_equal(*(state.parameters.logits for state in moved))


def test_neurd_cix_with_full_exploration_is_equation_10():
    for action, row in enumerate(of_all_actions(directions.neurd_cix_direction, 1.0)):
        expected = RETURNS[action] * (np.eye(4)[action] - PI[action])
        np.testing.assert_allclose(row, np.where(LEGAL, expected, 0.0), rtol=1e-15)


def test_full_exploration_differs_from_spg_at_other_actions_only():
    full, spg = (of_all_actions(d, 1.0) for d in (directions.neurd_cix_direction, directions.spg_direction))
    for action in range(3):
        assert full[action, action] == spg[action, action]
        others = np.arange(4) != action
        swapped = spg[action, others] / np.where(PI[others] > 0, PI[others], 1) * PI[action]
        np.testing.assert_allclose(full[action, others], swapped, rtol=1e-14)


@pytest.mark.parametrize("exploration", EXPLORATIONS)
@pytest.mark.parametrize("baseline", [0.0, -0.7])
def test_expected_neurd_cix_has_the_closed_form(exploration, baseline):
    rows = of_all_actions(directions.neurd_cix_direction, exploration, baseline)
    pi = PI[:3]
    mean, _ = oracles.moments(rows, pi)
    shrunk = pi * (RETURNS[:3] - baseline) / np.minimum(1, pi + exploration)
    np.testing.assert_allclose(mean, [*(shrunk - pi @ shrunk), 0.0], atol=1e-14)


@pytest.mark.parametrize("baseline", [0.0, -0.7])
def test_expected_spg_is_pi_times_advantage_whatever_the_baseline(baseline):
    mean, _ = oracles.moments(of_all_actions(directions.spg_direction, 1.0, baseline), PI[:3])
    np.testing.assert_allclose(mean, PI * (RETURNS - PI @ RETURNS), atol=1e-14)


def test_expected_full_exploration_is_spg_up_to_the_common_part_given_the_value():
    value = PI @ RETURNS
    full, _ = oracles.moments(of_all_actions(directions.neurd_cix_direction, 1.0, value)[:, :3], PI[:3])
    spg, _ = oracles.moments(of_all_actions(directions.spg_direction, 1.0, value)[:, :3], PI[:3])
    np.testing.assert_allclose(full - full.mean(), spg - spg.mean(), atol=1e-14)
    without, _ = oracles.moments(of_all_actions(directions.neurd_cix_direction, 1.0)[:, :3], PI[:3])
    assert np.max(np.abs(without - without.mean() - spg + spg.mean())) > 0.1


def test_what_was_drawn_from_another_policy_counts_as_if_drawn_from_ours():
    """Exact expectation: Σ_a μ(a) π(a) / μ(a) q(a) / β(π(a)), whatever μ is; nothing changes where μ is π."""
    rng = np.random.default_rng(8)
    acting, playing = (rng.dirichlet(np.ones(4), size=3) for _ in range(2))
    worth, legal, exploration = -rng.exponential(size=(3, 4)), np.ones((3, 4), bool), 0.2
    with jax.enable_x64(True):
        drawn = directions.Tally(*map(jnp.asarray, (playing * worth, playing, 1.0, playing)))
        found = directions.corrected(drawn, jnp.asarray(acting), legal)
        summed = [
            directions.neurd_cix_summed(*row, exploration)
            for row in zip(found.probabilities, found.returns, legal, strict=True)
        ]
        same = directions.corrected(drawn, jnp.asarray(playing), legal)
    estimates = acting * worth / np.minimum(1, acting + exploration)
    wanted = estimates - (acting * estimates).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.stack(summed), wanted, atol=1e-12)
    np.testing.assert_allclose(same.returns, drawn.returns, atol=1e-15)
    np.testing.assert_array_equal(found.visits, drawn.visits)


@pytest.mark.parametrize("exploration", [0.0, 0.1])
def test_an_action_whose_probability_underflows_has_its_share(exploration):
    acting, playing, worth = np.array([[0.0, 1.0]]), np.array([[0.25, 0.75]]), np.array([[-1.0, -0.5]])
    tally = directions.Tally(
        *(jnp.asarray(each, jnp.float32) for each in (playing * worth, playing, 1.0, playing))
    )
    legal = np.ones((1, 2), bool)
    found = directions.corrected(tally, jnp.asarray(acting, jnp.float32), legal)
    direction = directions.neurd_cix_summed(found.probabilities[0], found.returns[0], legal[0], exploration)
    # Unbiased without exploration; with it, an action that is never taken says nothing.
    wanted = [-1.0 + 0.5, 0.0] if exploration == 0 else [0.5, 0.0]
    np.testing.assert_allclose(direction, wanted, atol=1e-6)


def test_a_tally_of_our_own_policy_is_left_as_it_is():
    tally = directions.Tally(*(jnp.ones((1, 2)) for _ in range(2)), jnp.ones(()))
    assert directions.corrected(tally, jnp.ones((1, 2)) / 2, np.ones((1, 2), bool)) is tally
