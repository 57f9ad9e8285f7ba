"""Bandit problems: bounds, frequencies, who punishes whom."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pohp_neurd.games import matrix_game

from pohp_neurd.bandit import learners, problems, simulation

PROBLEMS = {
    "bernoulli": lambda: problems.bernoulli([0.2, 0.5, 0.9]),
    "switching": lambda: problems.switching(3, 4),
    "adaptive": lambda: problems.adaptive(3),
    "rock_paper_scissors": problems.rock_paper_scissors,
    "shifting": lambda: problems.rock_paper_scissors(period=3),
    "fixed": lambda: problems.fixed([-0.5, -2.0], 2.0),
    "learning": lambda: problems.learning_daimon(
        np.array([[-2.0, 0.0], [0.0, -1.0]]), 2.0, learners.hedge(0.5)
    ),
}


def rounds_of(problem, count, policy, runs=1, seed=0):
    """Utilities [rounds, A, runs] against a policy that stays."""
    shaped = jnp.broadcast_to(jnp.asarray(policy, jnp.float32)[:, None], (len(policy), runs))

    @jax.jit
    def step(state, t):
        uniforms = simulation.uniforms(jax.random.key(seed), t, problem.num_uniforms, runs).problem
        return problem.update(state, shaped), problem.utilities(state, shaped, uniforms)

    state, rows = problem.init(runs), []
    for t in range(count):
        state, utilities = step(state, jnp.int32(t))
        rows.append(np.asarray(utilities))
    return np.array(rows)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_keeps_its_sizes_and_bounds_for_one_run_and_many(name):
    problem = PROBLEMS[name]()
    policy = np.full(problem.num_arms, 1 / problem.num_arms)
    utilities = rounds_of(problem, 25, policy, runs=50)
    assert utilities.shape == (25, problem.num_arms, 50)
    assert utilities.max() <= 0
    assert utilities.min() >= -problem.max_return - 1e-6
    state = problem.init()
    alone = problem.utilities(state, jnp.asarray(policy, jnp.float32), jnp.full(problem.num_uniforms, 0.3))
    assert alone.shape == (problem.num_arms,)
    jax.tree.map(
        np.testing.assert_array_equal, problem.init(), problem.update(state, alone) and problem.init()
    )


def test_bernoulli_arms_cost_as_often_as_they_should_independently():
    chances = np.array([0.2, 0.5, 0.9])
    losses = -rounds_of(problems.bernoulli(chances), 1, [1 / 3] * 3, runs=50_000)[0]
    error = np.sqrt(chances * (1 - chances) / 50_000)
    assert np.all(np.abs(losses.mean(axis=1) - chances) < 5 * error)
    assert np.all(np.abs(np.corrcoef(losses)[np.triu_indices(3, 1)]) < 5 / np.sqrt(50_000))


def test_switching_moves_the_good_arm_on():
    losses = -rounds_of(problems.switching(3, 2, good=0.0, bad=1.0), 8, [1 / 3] * 3)[:, :, 0]
    assert losses.argmin(axis=1).tolist() == [0, 0, 1, 1, 2, 2, 0, 0]


def test_the_adversary_punishes_the_likeliest_arm_of_each_run():
    problem = problems.adaptive(3)
    policy = jnp.array([[0.2, 0.6], [0.5, 0.3], [0.3, 0.1]])
    utilities = problem.utilities((), policy, jnp.zeros((0, 2)))
    assert utilities.tolist() == [[0, -1], [-1, 0], [0, 0]]


def test_rock_paper_scissors_is_the_biased_game_of_the_games_folder():
    np.testing.assert_array_equal(problems.ROCK_PAPER_SCISSORS, matrix_game.BIASED_ROCK_PAPER_SCISSORS)
    problem = problems.rock_paper_scissors((0.5, 0.2, 0.3))
    assert problem.max_return == 4
    utilities = rounds_of(problem, 1, [1 / 3] * 3, runs=50_000)[0]
    columns = matrix_game.BIASED_ROCK_PAPER_SCISSORS - 2
    for action, chance in enumerate((0.5, 0.2, 0.3)):
        share = np.mean(np.all(utilities == columns[:, [action]], axis=0))
        assert abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / 50_000)


def test_a_shifting_opponent_moves_its_mixture_on():
    problem = problems.rock_paper_scissors((1.0, 0.0, 0.0), period=2)
    utilities = rounds_of(problem, 7, [1 / 3] * 3)[:, :, 0]
    columns = (matrix_game.BIASED_ROCK_PAPER_SCISSORS - 2).T
    np.testing.assert_array_equal(utilities, columns[[0, 0, 1, 1, 2, 2, 0]])


def test_a_learning_daimon_turns_to_what_hurts_the_learner():
    matrix = np.array([[-2.0, 0.0], [0.0, -1.0]])
    problem = problems.learning_daimon(matrix, 2.0, learners.hedge(0.5))
    utilities = rounds_of(problem, 40, [1.0, 0.0])[:, :, 0]
    np.testing.assert_allclose(utilities[0], matrix.mean(axis=1))
    # Hedge on gains 2 and 0 with step size 0.5: after t rounds the first column has weight 1 / (1 + e^-t).
    weight = 1 / (1 + np.exp(-np.arange(40)))
    np.testing.assert_allclose(utilities[:, 0], -2 * weight, rtol=1e-5)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: problems.bernoulli([0.5]), "num_arms must be at least 2, but is 1"),
        (lambda: problems.bernoulli([0.5, 1.5]), "loss_probabilities"),
        (lambda: problems.adaptive(1), "num_arms must be at least 2, but is 1"),
        (lambda: problems.switching(3, 0), "period"),
        (lambda: problems.rock_paper_scissors((0.5, 0.2, 0.2)), "sum to 1"),
        (lambda: problems.rock_paper_scissors((0.5, 0.5)), "shape"),
        (lambda: problems.fixed([-1.0, 0.5], 1.0), "subtract the largest"),
        (lambda: problems.fixed([-3.0, 0.0], 1.0), "range from -3 to 0"),
        (lambda: problems.learning_daimon(np.zeros(3), 1.0, learners.regret_matching()), "shape"),
    ],
)
def test_wrong_input_is_refused_with_a_sentence(build, message):
    with pytest.raises(ValueError, match=message):
        build()
