"""Trees: layout, rewards shifted and back, alias tables."""

import functools

import numpy as np
import oracles
import pytest

from pohp_neurd.finite import tree

OUTCOMES = {0: (0.5, 0.1, 0.15, 0.25), 1: (1 / 3, 1 / 3, 1 / 3), 2: (0.0, 0.9, 0.1)}


@functools.cache
def world():
    """Two agents, chance at three places, rewards on the way and at chance histories too.

    Chance deals; agent 0 sees the deal and acts; chance again; agent 1 acts, not having seen the deal.
    """

    def describe(path):
        rng = np.random.default_rng([len(path), *path])
        rewards = np.round(rng.normal(size=2), 2)
        if len(path) == 0:
            return tree.Node(tree.CHANCE, [0.5, -0.25], None, (0, 1, 2, 3), OUTCOMES[0])
        if len(path) == 1:
            return tree.Node(0, rewards, f"deal {path[0]}", (0, 2) if path[0] else (0, 1, 2))
        if len(path) == 2:
            kind = 1 if path[1] == 0 else 2
            return tree.Node(tree.CHANCE, rewards, None, (0, 1, 2), OUTCOMES[kind])
        if len(path) == 3 and path[2] == 2:
            # Chance twice in a row, and then the end.
            return tree.Node(tree.CHANCE, rewards, None, (0, 1), (0.25, 0.75))
        if len(path) == 3:
            return tree.Node(1, rewards, f"after {path[1:]}", (1, 2))
        return tree.Node(tree.TERMINAL, rewards)

    return tree.grow(
        (), describe, lambda path, action: (*path, action), num_agents=2, num_actions=3, name="dealt"
    )


def terminal_only():
    def describe(path):
        if len(path) < 2:
            return tree.Node(len(path), [0.0, 0.0], f"turn {len(path)}", (0, 1))
        return tree.Node(tree.TERMINAL, [float(3 * path[0] - path[1]), 2.0 - path[1]])

    return tree.grow(
        (), describe, lambda path, action: (*path, action), num_agents=2, num_actions=2, name="last"
    )


def random_policy(tree_, seed=0):
    weights = np.where(tree_.legal, np.random.default_rng(seed).random(tree_.legal.shape) + 0.1, 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def path_to(tree_, row):
    rows = [int(row)]
    while tree_.parent[rows[-1]] >= 0:
        rows.append(int(tree_.parent[rows[-1]]))
    return rows[::-1]


# Layout.


def test_layout():
    t = world()
    assert t.levels[0] == 0
    assert t.levels[-1] == t.num_histories
    for depth in range(len(t.levels) - 1):
        for row in range(t.levels[depth], t.levels[depth + 1]):
            assert len(path_to(t, row)) == depth + 1
    for row in range(t.num_histories):
        children = np.flatnonzero(t.parent == row)
        assert len(children) == t.num_children[row]
        if len(children):
            np.testing.assert_array_equal(children, t.first_child[row] + np.arange(len(children)))
            assert np.all(np.diff(t.incoming_action[children]) > 0)
        if t.player[row] == tree.CHANCE:
            np.testing.assert_allclose(t.chance[children].sum(), 1.0)
        elif t.player[row] >= 0:
            state = t.information_state[row]
            np.testing.assert_array_equal(np.flatnonzero(t.legal[state]), t.incoming_action[children])
            np.testing.assert_array_equal(t.chance[children], 1.0)
            assert t.state_player[state] == t.player[row]
        else:
            assert t.information_state[row] == -1
            assert len(children) == 0
    assert np.all(np.diff(t.state_player) >= 0)
    for agent in range(2):
        np.testing.assert_array_equal(
            np.arange(t.num_information_states)[t.states_of(agent)], np.flatnonzero(t.state_player == agent)
        )
    assert "deal 2" in t.information_state_strings


def test_previous_decisions_and_actions_match_a_walk_to_the_root():
    t = world()
    for row in range(t.num_histories):
        path = path_to(t, row)
        for agent in range(2):
            own = [i for i, r in enumerate(path[:-1]) if t.player[r] == agent]
            expected = (path[own[-1]], t.incoming_action[path[own[-1] + 1]]) if own else (-1, -1)
            assert (t.previous_decision[row, agent], t.previous_action[row, agent]) == expected


# Rewards.


@pytest.mark.parametrize("make", [world, terminal_only])
def test_shifted_rewards_are_never_positive_and_the_shift_is_undone(make):
    t = make()
    assert np.all(t.shifted_rewards <= 0)
    for row in np.flatnonzero(t.player == tree.TERMINAL):
        path = path_to(t, row)
        own, shifted = t.rewards[path].sum(axis=0), t.shifted_rewards[path].sum(axis=0)
        np.testing.assert_allclose(shifted + t.return_shift, own, atol=1e-12)
    largest = np.max([total for _, total in oracles.tree_returns(t, np.zeros(t.legal.shape))], axis=0)
    np.testing.assert_allclose(t.return_shift, largest, atol=1e-12)


def test_terminal_rewards_are_shifted_by_their_maximum():
    t = terminal_only()
    ends = t.player == tree.TERMINAL
    np.testing.assert_array_equal(t.shifted_rewards[ends], t.rewards[ends] - t.rewards[ends].max(axis=0))
    np.testing.assert_array_equal(t.shifted_rewards[~ends], 0.0)


def test_the_shift_changes_no_advantage():
    t = world()
    table = random_policy(t)

    def action_value(rewards, row, agent):
        """Expected rewards after `row`, under the policy."""
        children = np.flatnonzero(t.parent == row)
        chances = t.chance[children].copy()
        if t.player[row] >= 0:
            chances = table[t.information_state[row], t.incoming_action[children]]
        return sum(
            p * (rewards[c, agent] + action_value(rewards, c, agent))
            for p, c in zip(chances, children, strict=True)
        )

    for row in np.flatnonzero(t.player >= 0):
        agent = t.player[row]
        values = {}
        for name, rewards in (("own", t.rewards), ("shifted", t.shifted_rewards)):
            children = np.flatnonzero(t.parent == row)
            q = np.array([rewards[c, agent] + action_value(rewards, c, agent) for c in children])
            values[name] = q - q.mean()
        np.testing.assert_allclose(values["own"], values["shifted"], atol=1e-12)


def test_the_return_bound_is_reached():
    t = world()
    totals = np.array(
        [t.shifted_rewards[path_to(t, r)].sum(axis=0) for r in np.flatnonzero(t.player == tree.TERMINAL)]
    )
    np.testing.assert_allclose(t.return_bound, -totals.min())


# Chance.


@pytest.mark.parametrize("chances", OUTCOMES.values())
def test_alias_tables_imply_the_probabilities_exactly(chances):
    threshold, alias = tree.alias_table(np.array(chances))
    assert np.all((threshold >= 0) & (threshold <= 1))
    np.testing.assert_allclose(implied(threshold, alias), chances, atol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_alias_tables_of_random_distributions(seed):
    chances = np.random.default_rng(seed).dirichlet(np.full(17, 0.3))
    np.testing.assert_allclose(implied(*tree.alias_table(chances)), chances, atol=1e-15)


def implied(threshold, alias):
    """The distribution that an alias table draws from."""
    count = len(alias)
    return np.bincount(alias, (1 - threshold) / count, minlength=count) + threshold / count
