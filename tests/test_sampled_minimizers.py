"""Regret minimisers from tallies: on one state they are the paper's reduction, round by round."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import bandit, checks, directions, minimizers, openspiel, tally_learners
from pohp_neurd.bandit import learners

ARMS, ROUNDS, EXPLORATION = 3, 60, 0.15
MONITORED = {
    "regret_matching": learners.regret_matching,
    "rm_plus": learners.regret_matching_plus,
    "predictive_rm_plus": learners.predictive_regret_matching_plus,
    "optimistic_hedge": lambda: learners.optimistic_hedge(0.5),
}
RULES = {
    "importance": directions.neurd_cix(0.0),
    "ix": directions.neurd_ix(EXPLORATION),
    "cix": directions.neurd_cix(EXPLORATION),
}


@pytest.mark.parametrize("estimator", list(RULES))
@pytest.mark.parametrize("name", list(checks.MINIMIZERS))
def test_on_one_state_it_is_the_reduction(name, estimator):
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        seats = tally_learners.seats(tally_learners.Rows(np.ones((1, ARMS), bool)), [1])
        learner = tally_learners.minimizing(
            minimizers.minimizer(name, 0.5), RULES[estimator], dtype=jnp.float64
        )
        reduced = bandit.reduction(MONITORED[name](), estimator, EXPLORATION)
        ours, theirs = learner.init(seats), reduced.init(ARMS)
        update, observe = jax.jit(learner.update), jax.jit(reduced.update)
        moved = 0.0
        for number in range(ROUNDS):
            logits = learner.outputs(seats, ours).logits[0]
            chosen, wanted = np.asarray(jax.nn.softmax(logits)), np.asarray(reduced.policy(theirs))
            np.testing.assert_allclose(chosen, wanted, atol=1e-9)
            arm, utility = rng.choice(ARMS, p=wanted), -rng.uniform()
            taken = jnp.zeros((1, ARMS)).at[0, arm].set(1.0)
            tally = directions.Tally(utility * taken, taken, jnp.ones(()))
            ours, _ = update(seats, ours, tally, jnp.asarray(number))
            theirs = observe(theirs, arm, utility)
            moved = max(moved, np.abs(wanted - 1 / ARMS).max())
    assert moved > 0.1


def test_a_state_that_is_not_visited_is_told_nothing():
    """Also what is predicted for it stays: no news is no regret of 0."""
    seats = tally_learners.seats(tally_learners.Rows(np.ones((2, ARMS), bool)), [1, 1])
    learner = tally_learners.minimizing(minimizers.minimizer("predictive_rm_plus", 1.0), RULES["importance"])
    state = learner.init(seats)
    both = jnp.ones((2, ARMS))
    returns = -jnp.asarray([[0.1, 0.5, 0.9], [0.3, 0.2, 0.7]])
    state, _ = learner.update(seats, state, directions.Tally(returns, both, jnp.ones(())), jnp.asarray(0))
    seen = both.at[1].set(0.0)
    following, _ = learner.update(
        seats, state, directions.Tally(returns * seen, seen, jnp.ones(())), jnp.asarray(1)
    )
    for new, old in zip(
        jax.tree.leaves(following.minimizers), jax.tree.leaves(state.minimizers), strict=True
    ):
        np.testing.assert_array_equal(new[:, 1], old[:, 1])
        assert not np.array_equal(new[:, 0], old[:, 0])


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["rm_plus", "predictive_rm_plus"])
def test_in_kuhn_poker_they_come_near_an_equilibrium(name):
    solver = openspiel.NeuRDCIXSolver("kuhn_poker", update="sampled", learner=name, seed=3)
    solver.evaluate_and_update_policy(1000)
    assert solver.nash_conv() < 0.03


def test_exploration_is_seen_by_the_estimator_and_not_by_the_policy():
    """μ is what returns are divided by; regrets are against π."""
    seats = tally_learners.seats(tally_learners.Rows(np.ones((1, 2), bool)), [1])
    learner = tally_learners.minimizing(minimizers.regret_matching(), RULES["importance"])
    playing = jnp.asarray([[0.25, 0.75]])
    tally = directions.Tally(jnp.asarray([[-1.0, 0.0]]), jnp.asarray([[1.0, 0.0]]), jnp.ones(()), playing)
    state, _ = learner.update(seats, learner.init(seats), tally, jnp.asarray(0))
    # q̂ = (-4, 0), and the uniform policy got -2.
    np.testing.assert_allclose(state.minimizers[:, 0], [-2.0, 2.0], rtol=1e-6)
