"""Pure policies as arms: counts, exact values, the value of Kuhn poker."""

import itertools

import numpy as np
import pytest
from pohp_neurd.games import matrix_game
from scipy import optimize

from pohp_neurd import openspiel
from pohp_neurd.bandit import learners, problems
from pohp_neurd.finite import tree


@pytest.fixture(scope="module")
def kuhn():
    return openspiel.compile_game("kuhn_poker")


def uniform(world):
    return world.legal / world.legal.sum(axis=1, keepdims=True)


def walk(world, row, behaviour, agent):
    """The expected shifted return below a history, by plain recursion."""
    if world.player[row] == tree.TERMINAL:
        return 0.0
    total = 0.0
    for child in range(world.first_child[row], world.first_child[row] + world.num_children[row]):
        chance = world.chance[child]
        if world.player[row] >= 0:
            chance = behaviour[world.information_state[row], world.incoming_action[child]]
        if chance > 0:
            below = walk(world, child, behaviour, agent)
            total += chance * (world.shifted_rewards[child, agent] + below)
    return total


def as_behaviour(world, agent, pure, others):
    behaviour = np.array(others, float)
    for column, action in enumerate(pure):
        state = world.states_of(agent).start + column
        behaviour[state] = 0
        # Where the policy's own actions never lead, any action will do.
        behaviour[state, max(action, 0)] = 1
    return behaviour


def test_kuhn_has_27_and_64_reduced_pure_policies(kuhn):
    first, second = (problems.pure_policies(kuhn, agent) for agent in range(2))
    # Seat 0, for each card: bet, pass and then fold, pass and then call. Seat 1 answers both at each card.
    assert first.shape == (27, 6)
    assert second.shape == (64, 6)
    for policies in (first, second):
        assert len(np.unique(policies, axis=0)) == len(policies)
    assert (first == problems.UNREACHED).sum() == 27
    assert not np.any(second == problems.UNREACHED)


def test_reduced_pure_policies_are_the_full_ones_without_repetition(kuhn):
    reduced = problems.pure_policies(kuhn, 0)
    worths = problems.pure_policy_returns(kuhn, 0, reduced, uniform(kuhn))
    full = np.array(list(itertools.product((0, 1), repeat=6)))
    all_worths = problems.pure_policy_returns(kuhn, 0, full, uniform(kuhn))
    np.testing.assert_allclose(np.unique(worths.round(12)), np.unique(all_worths.round(12)))


@pytest.mark.parametrize("agent", [0, 1])
def test_expected_returns_are_those_of_a_walk_through_the_tree(kuhn, agent):
    random = np.random.default_rng(agent)
    others = np.where(kuhn.legal, random.random(kuhn.legal.shape), 0)
    others /= others.sum(axis=1, keepdims=True)
    policies = problems.pure_policies(kuhn, agent)
    worths = problems.pure_policy_returns(kuhn, agent, policies, others)
    for pure, worth in zip(policies[::5], worths[::5], strict=True):
        slow = walk(kuhn, 0, as_behaviour(kuhn, agent, pure, others), agent)
        np.testing.assert_allclose(worth, slow, rtol=1e-12)


def test_best_responses_to_the_uniform_policy_add_up_to_its_nash_conv(kuhn):
    best = [
        problems.pure_policy_returns(kuhn, agent, problems.pure_policies(kuhn, agent), uniform(kuhn)).max()
        + kuhn.return_shift[agent]
        for agent in range(2)
    ]
    np.testing.assert_allclose(sum(best), 11 / 12)


def test_the_payoff_matrix_of_kuhn_has_the_value_of_the_game(kuhn):
    matrix = problems.payoff_matrix(kuhn) + kuhn.return_shift[0]
    rows, columns = matrix.shape
    # max v subject to xᵀM ≥ v, x a distribution.
    solution = optimize.linprog(
        c=[*np.zeros(rows), -1],
        A_ub=np.hstack([-matrix.T, np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=[[*np.ones(rows), 0]],
        b_eq=[1],
        bounds=[(0, 1)] * rows + [(None, None)],
    )
    np.testing.assert_allclose(-solution.fun, -1 / 18, atol=1e-9)


def test_arms_of_a_matrix_game_are_its_rows():
    world = matrix_game.zero_sum(matrix_game.BIASED_ROCK_PAPER_SCISSORS)
    expected = matrix_game.BIASED_ROCK_PAPER_SCISSORS - 2
    np.testing.assert_allclose(problems.payoff_matrix(world), expected)
    problem = problems.against_fixed(world, 0, uniform(world))
    assert problem.num_arms == 3
    assert problem.max_return == 4
    assert problems.against_learner(world, learners.regret_matching()).num_arms == 3


def test_a_bandit_tree_is_its_own_bandit():
    world = matrix_game.bandit([0.2, 0.7])
    worth = problems.pure_policy_returns(world, 0, problems.pure_policies(world, 0), uniform(world))
    np.testing.assert_allclose(worth, [-0.2, -0.7])


def test_wrong_input_is_refused_with_a_sentence(kuhn):
    with pytest.raises(ValueError, match="agent must be one of 0 to 1"):
        problems.pure_policies(kuhn, 2)
    with pytest.raises(ValueError, match="shape"):
        problems.pure_policy_returns(kuhn, 0, problems.pure_policies(kuhn, 0), np.ones((3, 2)))
    with pytest.raises(ValueError, match="2 agents"):
        problems.payoff_matrix(matrix_game.bandit([0.1, 0.2]))
    with pytest.raises(ValueError, match="choose a smaller game"):
        problems.pure_policies(openspiel.compile_game("leduc_poker"), 0)
