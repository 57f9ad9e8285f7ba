"""Many runs at once: the same as plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import checks
from pohp_neurd import directions as exploration
from pohp_neurd.bandit import learners, problems, reduction, simulation

PLAYERS = {
    "hedge": lambda: learners.hedge(learners.anytime_step_size(3, 1.0)),
    "regret_matching": learners.regret_matching,
}


def by_hand(problem, learner, weigh, explore, rounds, runs, key):
    """The same runs in plain loops: one run, one round, one arm at a time, fed the same uniform numbers."""
    utilities, received = np.zeros((problem.num_arms, runs)), np.zeros(runs)
    for run in range(runs):
        state, daimon = learner.init(problem.num_arms), problem.init()
        for t in range(rounds):
            numbers = simulation.uniforms(key, t, problem.num_uniforms, runs)
            high, low = (float(half[0, run]) for half in numbers.action)
            number = (high + low / 2**24) / 2**24
            policy = np.asarray(learner.policy(state))
            worth = np.asarray(problem.utilities(daimon, jnp.asarray(policy), numbers.problem[:, run]))
            arm = min(int(np.searchsorted(np.cumsum(policy), number, side="right")), len(policy) - 1)
            estimates = np.zeros(len(policy))
            estimates[arm] = worth[arm] / weigh(policy[arm], explore(t))
            utilities[:, run] += worth
            received[run] += worth[arm]
            state = learner.update(state, jnp.asarray(estimates))
            daimon = problem.update(daimon, jnp.asarray(policy))
    return utilities, received


BUILDS = {"switching": lambda: problems.switching(3, 10), "adaptive": lambda: problems.adaptive(3)}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("build", "name"),
    [
        ("switching", "hedge"),
        ("adaptive", "regret_matching"),
        pytest.param("switching", "regret_matching", marks=pytest.mark.slow),
        pytest.param("adaptive", "hedge", marks=pytest.mark.slow),
    ],
)
def test_runs_are_those_of_a_plain_loop(build, name):
    problem, learner, key = BUILDS[build](), PLAYERS[name](), jax.random.key(2)
    schedule = exploration.theorem1_exploration(0.8, 3)
    with jax.enable_x64(True):
        player = reduction(learner, "cix", schedule)
        totals = simulation.simulate(problem, player, [25], 2, key=key)
        utilities, received = by_hand(
            problem, learner, lambda p, e: min(1.0, p + e), lambda t: float(schedule(t)), 25, 2, key
        )
    np.testing.assert_allclose(totals.utilities[0], utilities, atol=1e-9)
    np.testing.assert_allclose(totals.received[0], received, atol=1e-9)


def test_records_do_not_change_the_run():
    problem, key = problems.bernoulli([0.3, 0.5]), jax.random.key(0)
    player = reduction(learners.hedge(0.1), "cix", 0.1)
    all_rounds = simulation.simulate(problem, player, range(1, 21), 5, key=key, decompose=True)
    some = simulation.simulate(problem, player, [7, 20], 5, key=key, decompose=True)
    picked = jax.tree.map(lambda field: field[[6, 19]], all_rounds)
    jax.tree.map(np.testing.assert_array_equal, picked, some)
    plain = simulation.simulate(problem, player, [7, 20], 5, key=key)
    np.testing.assert_array_equal(plain.utilities, some.utilities)
    assert plain.parts is None


def test_a_learner_without_a_guarantee_can_play():
    mine = learners.Learner(lambda *sizes: jnp.zeros(sizes), lambda s: jax.nn.softmax(s, axis=0), jnp.add)
    totals = simulation.simulate(
        problems.adaptive(3), reduction(mine, "ix", 0.2), [10], 4, key=jax.random.key(0), decompose=True
    )
    assert np.all(totals.parts.cost == 0)
    assert np.all(totals.utilities.sum(axis=1) == -10)


def test_keys_make_the_runs():
    problem, player = problems.bernoulli([0.3, 0.5]), reduction(learners.hedge(0.1), "cix", 0.1)
    one, same, other = (
        simulation.simulate(problem, player, [50], 20, key=jax.random.key(seed)).received
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert np.any(one != other)
    assert len(np.unique(one)) > 5  # runs differ from each other


@pytest.mark.parametrize("rounds", [[], [0], [5, 5], [5, 3]])
def test_wrong_rounds_are_refused(rounds):
    with pytest.raises(ValueError, match="increasing"):
        simulation.simulate(
            problems.adaptive(2), reduction(learners.hedge(0.1), "cix", 0.1), rounds, 5, key=jax.random.key(0)
        )


def test_no_runs_are_refused():
    with pytest.raises(ValueError, match="num_runs"):
        simulation.simulate(
            problems.adaptive(2), reduction(learners.hedge(0.1), "cix", 0.1), [5], 0, key=jax.random.key(0)
        )


def test_a_policy_that_is_none_is_told_of():
    """A step size that grows beyond all bounds: Hedge's weights are not numbers any more."""
    player = reduction(learners.hedge(lambda count: jnp.where(count < 100, 0.1, jnp.inf)), "importance")
    problem = problems.bernoulli([0.9, 0.8])
    with pytest.raises(checks.Diverged, match="a policy or a total was not finite after 200 rounds"):
        simulation.simulate(problem, player, [200], 5, key=jax.random.key(0))
