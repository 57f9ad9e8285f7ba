"""The reduction: exact expectations by enumeration, NeuRD-CIX, public names."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pohp_neurd
from pohp_neurd import directions, estimators, learners, optimizers, tabular
from pohp_neurd.bandit import BanditLearner, reduction
from pohp_neurd.bandit import learners as bandit_learners


def fixed_policy(probabilities):
    """A learner that never moves, to look at the estimates alone."""
    chances = jnp.asarray(probabilities)
    return bandit_learners.Learner(lambda *sizes: (), lambda state: chances, lambda state, utilities: state)


def expected_estimate(estimator, exploration, probabilities, utilities):
    """E[û] by enumeration: every arm, times its probability."""
    with jax.enable_x64(True):
        player = reduction(fixed_policy(probabilities), estimator, exploration)
        state = player.init(len(probabilities))
        draws = [player.estimate(state, arm, utilities[arm]) for arm in range(len(probabilities))]
    return np.asarray(probabilities) @ np.array(draws)


GRID = [0.0, 1e-3, 0.1, 0.3, 0.5, 0.9, 1.0]
POLICIES = [[0.25, 0.75], [0.5, 0.5], [0.05, 0.15, 0.8], [0.001, 0.999], [0.2, 0.3, 0.1, 0.4]]
UTILITIES = np.array([-1.0, -0.3, 0.0, -2.5])


@pytest.mark.parametrize("probabilities", POLICIES)
@pytest.mark.parametrize("exploration", GRID)
def test_expected_cix_estimate_is_as_computed_and_never_pessimistic(probabilities, exploration):
    chances, utilities = np.array(probabilities), UTILITIES[: len(probabilities)]
    expected = expected_estimate("cix", exploration, probabilities, utilities)
    np.testing.assert_allclose(
        expected, chances * utilities / np.minimum(1, chances + exploration), rtol=1e-12, atol=1e-15
    )
    assert np.all(expected >= utilities - 1e-12)


@pytest.mark.parametrize("probabilities", POLICIES)
@pytest.mark.parametrize("estimator", ["importance", "ix", "cix"])
def test_estimates_are_unbiased_without_exploration(probabilities, estimator):
    utilities = UTILITIES[: len(probabilities)]
    expected = expected_estimate(estimator, 0.0, probabilities, utilities)
    np.testing.assert_allclose(expected, utilities, rtol=1e-12)


@pytest.mark.parametrize("probabilities", POLICIES)
@pytest.mark.parametrize("exploration", GRID)
def test_cix_is_ix_below_the_cap_and_less_optimistic_above(probabilities, exploration):
    chances, utilities = np.array(probabilities), UTILITIES[: len(probabilities)]
    cix = expected_estimate("cix", exploration, probabilities, utilities)
    ix = expected_estimate("ix", exploration, probabilities, utilities)
    below = chances + exploration < 1
    np.testing.assert_array_equal(cix[below], ix[below])
    above = (chances + exploration > 1 + 1e-9) & (utilities < 0)
    assert np.all(cix[above] < ix[above])


@pytest.mark.parametrize("name", ["importance", "ix", "cix"])
def test_names_and_functions_are_the_same_estimators(name):
    function = getattr(estimators, f"{name}_weight")
    chances = jnp.array([0.3, 0.7])
    one = reduction(fixed_policy(chances), name, 0.5)
    other = reduction(fixed_policy(chances), function, directions.constant(0.5))
    estimates = [player.estimate(player.init(2), 1, -1.0) for player in (one, other)]
    np.testing.assert_array_equal(*estimates)
    correction = {"importance": 0.7, "ix": 1.2, "cix": 1.0}[name]
    np.testing.assert_allclose(estimates[0], [0.0, -1 / correction], rtol=1e-6)


def test_the_schedule_counts_rounds_from_one():
    player = reduction(fixed_policy(jnp.array([0.5, 0.5])), "ix", directions.theorem1_exploration(0.5, 2))
    state = player.init(2)
    for t in range(1, 6):
        estimate = player.estimate(state, 0, -1.0)[0]
        np.testing.assert_allclose(estimate, -1 / (0.5 + 0.5 / np.sqrt(2 * t)), rtol=1e-6)
        state = player.update(state, 0, -1.0)
    assert int(state.rounds) == 5


@pytest.mark.thorough
@pytest.mark.parametrize(
    "exploration", [0.2, "theorem1", *[pytest.param(given, marks=pytest.mark.slow) for given in (0.0, 1.0)]]
)
def test_one_state_tabular_neurd_cix_is_hedge_with_cix_step_by_step(exploration):
    """Morrill et al. (2022), Section 4: the part common to all logits does not move the policy."""
    num_arms, step_size, rounds = 4, 0.17, 300
    schedule = directions.theorem1_exploration(0.9, num_arms) if exploration == "theorem1" else exploration
    random = np.random.default_rng(0)
    with jax.enable_x64(True):
        hedge = reduction(bandit_learners.hedge(step_size), "cix", schedule)
        model = tabular.table(1, num_arms)
        neurd = learners.learner(model.apply, directions.neurd_cix(schedule), optimizers.sgd(step_size))
        current, learn, update = jax.jit(hedge.policy), jax.jit(hedge.update), jax.jit(neurd.update)
        state, other = hedge.init(num_arms), neurd.init(model.init(key=jax.random.key(0)))
        for t in range(rounds):
            policy = np.asarray(current(state))
            theirs = np.asarray(jax.nn.softmax(other.parameters.logits[0]))
            np.testing.assert_allclose(policy, theirs, rtol=1e-11, err_msg=f"round {t}")
            arm = int(random.choice(num_arms, p=policy / policy.sum()))
            utility = -float(random.random() < 0.3 + 0.1 * arm)
            decision = learners.Decision(
                agent_state=jnp.zeros(1, jnp.int32),
                legal=jnp.ones((1, num_arms), bool),
                action=jnp.array([arm], jnp.int32),
                probability=jnp.array([policy[arm]]),
                return_=jnp.array([utility]),
            )
            state = learn(state, arm, utility)
            other, _ = update(other, decision)
    # The policy has moved: equality of two uniform policies would show nothing.
    assert policy.max() > 0.35


@pytest.mark.thorough
def test_many_runs_take_their_own_arms_and_utilities():
    player = reduction(bandit_learners.hedge(0.5), "cix", 0.1)
    state = player.init(3, 2)
    state = player.update(state, jnp.array([[0, 2]]), jnp.array([[-1.0, -0.5]]))
    for run, (arm, utility) in enumerate([(0, -1.0), (2, -0.5)]):
        alone = player.update(player.init(3), arm, utility)
        np.testing.assert_allclose(player.policy(state)[:, run], player.policy(alone), rtol=1e-6)


def test_wrong_input_is_refused_with_a_sentence():
    hedge = bandit_learners.hedge(0.1)
    with pytest.raises(ValueError, match="estimator must be one of importance, ix, cix, but is 'icx'"):
        reduction(hedge, "icx", 0.1)
    with pytest.raises(ValueError, match=r"exploration must lie in \[0, 1\]"):
        reduction(hedge, "cix", 1.5)
    player = reduction(hedge, "cix", 0.1)
    with pytest.raises(ValueError, match="at least 2"):
        player.init(1)
    with pytest.raises(ValueError, match="must not be positive"):
        player.update(player.init(2), 0, 0.5)


@pytest.mark.thorough
def test_public_names_hold_whatever_is_imported_first():
    assert isinstance(pohp_neurd.bandit.reduction(bandit_learners.hedge(0.1), "cix", 0.1), BanditLearner)
    check = (
        "import pohp_neurd\n"
        "assert callable(pohp_neurd.bandit.reduction)\n"
        "from pohp_neurd.bandit import theorem1_slack, reduction\n"
        "assert reduction is pohp_neurd.bandit.reduction and callable(theorem1_slack)\n"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
