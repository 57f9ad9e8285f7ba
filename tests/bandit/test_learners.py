"""Full-monitoring learners: slow oracles, guarantees, many runs at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import minimizers
from pohp_neurd.bandit import learners

LEARNERS = {
    "hedge": lambda: learners.hedge(learners.anytime_step_size(4, 1.0)),
    "hedge_fixed": lambda: learners.hedge(0.3),
    "regret_matching": learners.regret_matching,
    "regret_matching_plus": learners.regret_matching_plus,
    "predictive_regret_matching_plus": learners.predictive_regret_matching_plus,
    "optimistic_hedge": lambda: learners.optimistic_hedge(0.3),
}
GUARANTEED = [name for name, make in LEARNERS.items() if make().guarantee is not None]


def losses(rounds, seed=0):
    random = np.random.default_rng(seed)
    # Rare large ones, as importance weights make them; the first arm is the best.
    scale = np.where(random.random((rounds, 4)) < 0.1, 20.0, 1.0) * np.array([0.2, 1.0, 1.0, 1.0])
    return -random.random((rounds, 4)) * scale


def follow(learner, utilities):
    """Policies round by round, under full monitoring."""
    state = learner.init(utilities.shape[1])
    policies = []
    for row in utilities:
        policies.append(np.asarray(learner.policy(state)))
        state = learner.update(state, jnp.asarray(row))
    return np.array(policies)


def test_anytime_hedge_weighs_all_past_utilities_with_the_current_step_size():
    utilities = losses(30)
    with jax.enable_x64(True):
        policies = follow(LEARNERS["hedge"](), utilities)
    for t in range(30):
        step = np.sqrt(np.log(4) / (4 * (t + 1)))
        weights = np.exp(step * utilities[:t].sum(axis=0))
        np.testing.assert_allclose(policies[t], weights / weights.sum(), rtol=1e-12)


@pytest.mark.parametrize("plus", [False, True])
def test_regret_matching_follows_its_regrets(plus):
    utilities = losses(30)
    learner = learners.regret_matching_plus() if plus else learners.regret_matching()
    with jax.enable_x64(True):
        policies = follow(learner, utilities)
    regrets = np.zeros(4)
    for policy, row in zip(policies, utilities, strict=True):
        positive = np.maximum(regrets, 0)
        expected = positive / positive.sum() if positive.sum() > 0 else np.full(4, 0.25)
        np.testing.assert_allclose(policy, expected, atol=1e-12)
        regrets = regrets + row - expected @ row
        if plus:
            regrets = np.maximum(regrets, 0)


def test_regret_matching_and_its_plus_differ():
    utilities = losses(30)
    one, other = (
        follow(learners.regret_matching(), utilities),
        follow(learners.regret_matching_plus(), utilities),
    )
    assert np.abs(one - other).max() > 0.1


def test_predictions_are_the_last_rounds_regrets():
    utilities = losses(30)
    with jax.enable_x64(True):
        matching = follow(learners.predictive_regret_matching_plus(), utilities)
        hedging = follow(learners.optimistic_hedge(0.3), utilities)
    regrets = last = np.zeros(4)
    for t, (policy, row) in enumerate(zip(matching, utilities, strict=True)):
        positive = np.maximum(regrets + last, 0)
        expected = positive / positive.sum() if positive.sum() > 0 else np.full(4, 0.25)
        np.testing.assert_allclose(policy, expected, atol=1e-12)
        last = row - expected @ row
        regrets = np.maximum(regrets + last, 0)
        weights = np.exp(0.3 * (utilities[:t].sum(axis=0) + utilities[max(t - 1, 0)] * (t > 0)))
        np.testing.assert_allclose(hedging[t], weights / weights.sum(), atol=1e-12)


@pytest.mark.parametrize(
    "name", ["regret_matching", "regret_matching_plus", "predictive_regret_matching_plus"]
)
def test_arms_that_are_not_legal_make_no_difference(name):
    minimizer = getattr(minimizers, name)()
    legal = jnp.array([True, False, True, True])
    wide, narrow = minimizer.init(jnp.zeros(4)), minimizer.init(jnp.zeros(3))
    for row in losses(10).astype(np.float32):
        policy = minimizer.policy(wide, legal)
        np.testing.assert_array_equal(policy[legal], minimizer.policy(narrow))
        assert policy[1] == 0
        regrets = jnp.where(legal, row - policy @ row, 0.0)
        wide, narrow = minimizer.observe(wide, regrets), minimizer.observe(narrow, regrets[legal])


@pytest.mark.thorough
@pytest.mark.parametrize("name", GUARANTEED)
def test_every_learner_keeps_distributions_and_its_guarantee_under_full_monitoring(name):
    utilities = losses(400, seed=1)
    learner = LEARNERS[name]()
    with jax.enable_x64(True):
        policies = follow(learner, utilities)
        pairs = enumerate(zip(policies, utilities, strict=True))
        costs = [learner.guarantee.cost(t, jnp.asarray(p), jnp.asarray(u)) for t, (p, u) in pairs]
        contrary = follow(learner, -utilities)
    np.testing.assert_allclose(policies.sum(axis=1), 1)
    assert policies.min() >= 0
    limit = learner.guarantee.pathwise(np.cumsum(np.array(costs)), np.arange(1, 401), 4)

    def regret(policies):
        received = np.sum(policies * utilities, axis=1)
        return np.cumsum(utilities - received[:, None], axis=0).max(axis=1)

    assert np.all(regret(policies) <= limit + 1e-9)
    # A learner with the wrong sign would be found out.
    assert regret(contrary)[-1] > limit[-1]


@pytest.mark.parametrize("name", LEARNERS)
def test_many_runs_at_once_are_the_runs_one_by_one(name):
    learner = LEARNERS[name]()
    batch = np.stack([losses(10, seed) for seed in range(3)], axis=-1)
    with jax.enable_x64(True):
        state = learner.init(4, 3)
        for row in batch:
            state = learner.update(state, jnp.asarray(row))
        together = np.asarray(learner.policy(state))
        for run in range(3):
            alone = learner.init(4)
            for row in batch[:, :, run]:
                alone = learner.update(alone, jnp.asarray(row))
            np.testing.assert_allclose(together[:, run], learner.policy(alone), rtol=1e-12, atol=1e-12)


def test_fixed_step_size_makes_the_leading_terms_of_hedges_bound_smallest():
    def leading(step):
        return np.log(5) / step + 4.0**2 * 5 / 2 * 1000 * step

    best = learners.fixed_step_size(5, 4.0, 1000)
    assert leading(best) < min(leading(best * 0.99), leading(best * 1.01))


def test_bounds_are_infinite_without_exploration():
    none = np.zeros(10)
    assert np.all(np.isinf(learners.hedge(0.1).guarantee.bound(none, 3, 1.0, 4.0)))
    assert np.all(np.isinf(learners.regret_matching().guarantee.bound(none, 3, 1.0, 4.0)))


def test_wrong_step_sizes_are_refused():
    with pytest.raises(ValueError, match="step_size"):
        learners.hedge(0.0)
    with pytest.raises(ValueError, match="never grow"):
        learners.hedge(lambda t: 0.1 * (t + 1)).guarantee.bound(np.full(5, 0.5), 3, 1.0, 4.0)
    with pytest.raises(ValueError, match="num_arms"):
        learners.anytime_step_size(1, 1.0)
    with pytest.raises(ValueError, match="max_return"):
        learners.anytime_step_size(2, 0.0)
    with pytest.raises(ValueError, match="horizon"):
        learners.fixed_step_size(2, 1.0, 0)
