"""Trees: layout, rewards shifted and back, chance by alias tables, and the tree as a Process."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from pohp_neurd import process
from pohp_neurd.finite import tree, tree_builder

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
            return tree_builder.Node(tree.CHANCE, [0.5, -0.25], None, (0, 1, 2, 3), OUTCOMES[0])
        if len(path) == 1:
            return tree_builder.Node(0, rewards, f"deal {path[0]}", (0, 2) if path[0] else (0, 1, 2))
        if len(path) == 2:
            kind = 1 if path[1] == 0 else 2
            return tree_builder.Node(tree.CHANCE, rewards, None, (0, 1, 2), OUTCOMES[kind])
        if len(path) == 3 and path[2] == 2:
            # Chance twice in a row, and then the end.
            return tree_builder.Node(tree.CHANCE, rewards, None, (0, 1), (0.25, 0.75))
        if len(path) == 3:
            return tree_builder.Node(1, rewards, f"after {path[1:]}", (1, 2))
        return tree_builder.Node(tree.TERMINAL, rewards)

    return tree_builder.grow(
        (), describe, lambda path, action: (*path, action), num_agents=2, num_actions=3, name="dealt"
    )


def terminal_only():
    def describe(path):
        if len(path) < 2:
            return tree_builder.Node(len(path), [0.0, 0.0], f"turn {len(path)}", (0, 1))
        return tree_builder.Node(tree.TERMINAL, [float(3 * path[0] - path[1]), 2.0 - path[1]])

    return tree_builder.grow(
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


def test_spec_bounds_hold_and_are_reached():
    t = world()
    totals = np.array(
        [t.shifted_rewards[path_to(t, r)].sum(axis=0) for r in np.flatnonzero(t.player == tree.TERMINAL)]
    )
    np.testing.assert_allclose(t.spec.return_bound, -totals.min())
    assert t.spec.horizon == 2
    assert (t.spec.num_agents, t.spec.num_actions) == (2, 3)
    received = []
    for row in np.flatnonzero(t.player != tree.CHANCE):
        total = t.shifted_rewards[row].copy()
        above = t.parent[row]
        while above >= 0 and t.player[above] == tree.CHANCE:
            total += t.shifted_rewards[above]
            above = t.parent[above]
        received.append(total)
    # Chance histories count too, so the bound may lie beyond what is received.
    assert t.spec.reward_bound >= -np.min(received) - 1e-12
    assert t.spec.reward_bound <= t.spec.return_bound + 1e-12


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


def test_chance_is_sampled_with_its_probabilities():
    # 200,000 deals, 5 standard errors each; the rows that follow are the deals.
    t, count = world(), 200_000
    keys = jax.random.split(jax.random.key(0), count)
    rows = np.asarray(jax.jit(jax.vmap(lambda key: t.initial(key=key).row))(keys))
    children = np.flatnonzero(t.parent == 0)
    frequencies = np.bincount(rows, minlength=t.num_histories)[children] / count
    p = t.chance[children]
    assert np.all(np.abs(frequencies - p) <= 5 * np.sqrt(p * (1 - p) / count))


def test_impossible_outcomes_never_come():
    t = world()
    first = np.flatnonzero((t.parent == 0) & (t.incoming_action == 1))[0]
    history = tree.TreeHistory(jnp.asarray(first, jnp.int32), jnp.zeros(2))
    keys = jax.random.split(jax.random.key(2), 20_000)
    play = jax.jit(jax.vmap(lambda key: t.apply(history, jnp.asarray(2, jnp.int32), key=key).row))
    rows = np.unique(play(keys))
    outcomes = [t.incoming_action[path_to(t, row)[3]] for row in rows]
    assert set(outcomes) == {1, 2}  # outcome 0 has probability 0


@pytest.mark.thorough
def test_played_returns_have_the_exact_expectation():
    # 100,000 episodes, 5 standard errors; rewards at chance histories are part of them.
    t, count = world(), 100_000
    table = random_policy(t)
    device = jnp.asarray(table, jnp.float32)

    def episode(key):
        keys = jax.random.split(key, 5)
        history = t.initial(key=keys[0])
        total = t.reward(history)
        for i in (1, 3):
            going = t.continuation(history)
            chances = jnp.where(going > 0, device[t.information_state_of(history)], jnp.ones(3) / 3)
            action = jax.random.choice(keys[i], 3, p=chances)
            history = t.apply(history, action, key=keys[i + 1])
            total = total + going * t.reward(history)
        return total, t.continuation(history)

    totals, going = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(1), count))
    assert not np.any(going)
    totals = np.asarray(totals, np.float64) + t.return_shift
    expected = sum(reach * total for reach, total in oracles.tree_returns(t, table))
    assert np.all(np.abs(totals.mean(axis=0) - expected) <= 5 * totals.std(axis=0) / np.sqrt(count))


# The tree as a process.


@pytest.mark.thorough
@pytest.mark.parametrize("make", [world, terminal_only])
def test_a_tree_is_a_process(make):
    t = make()
    assert isinstance(t, process.Process)
    process.check_process(t, num_episodes=8, num_steps=4)


def test_answers_at_every_history_match_the_arrays():
    t = world()
    rows = np.flatnonzero(t.player != tree.CHANCE)
    histories = tree.TreeHistory(jnp.asarray(rows, jnp.int32), jnp.zeros((len(rows), 2)))
    legal, observation, agent, going = jax.jit(
        jax.vmap(lambda h: (t.legal_actions(h), t.observation(h), t.active_agent(h), t.continuation(h)))
    )(histories)
    for i, row in enumerate(rows):
        ended = t.player[row] == tree.TERMINAL
        assert float(going[i]) == (0 if ended else 1)
        state = t.information_state[row]
        np.testing.assert_array_equal(legal[i], np.zeros(3) if ended else t.legal[state])
        np.testing.assert_array_equal(
            observation[i], np.zeros(t.features.shape[1]) if ended else t.features[state]
        )
        if not ended:
            assert int(agent[i]) == t.player[row]


def test_actions_lead_to_their_children():
    t = terminal_only()
    for row in np.flatnonzero(t.player >= 0):
        for child in np.flatnonzero(t.parent == row):
            history = tree.TreeHistory(jnp.asarray(row, jnp.int32), jnp.zeros(2))
            after = t.apply(history, int(t.incoming_action[child]), key=jax.random.key(0))
            assert int(after.row) == child
            np.testing.assert_allclose(after.reward, t.shifted_rewards[child])


def test_plain_calls_do_not_recompile(count_compilations):
    t = world()
    action = jnp.zeros((), jnp.int32)
    t.apply(t.initial(key=jax.random.key(0)), action, key=jax.random.key(1))
    with count_compilations() as seen:
        t.apply(t.initial(key=jax.random.key(2)), action, key=jax.random.key(3))
    assert seen.count == 0


def test_features_can_be_replaced():
    t = world()
    other = dataclasses.replace(t, features=np.zeros((t.num_information_states, 2), np.float32))
    assert other.spec.observation_size == 2
