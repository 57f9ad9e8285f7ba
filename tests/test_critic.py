"""Values of histories: the sums that they make are the plain ones in expectation, and with less noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import directions, openspiel, self_play, tally_learners
from pohp_neurd.finite import critic, rollout
from pohp_neurd.finite import tree as trees
from tests import history_oracle

TALLY = jax.jit(critic.tally)
GAMES = ("kuhn_poker", "kuhn_poker(players=3)", "goofspiel(num_cards=2,imp_info=True,points_order=random)")


@pytest.fixture(params=GAMES)
def tree(request):
    return openspiel.compile_game(request.param)


def exact_line(tree):
    """A lineage in double precision."""
    line = critic.lineage(tree)
    double = jnp.asarray(tree.chance * (tree.parent >= 0)), jnp.asarray(tree.shifted_returns)
    return jax.tree_util.tree_unflatten(
        jax.tree_util.tree_structure(line),
        [line.parent, line.entry, line.agent, double[0], line.before, line.terminal, double[1]],
    )


def random_policy(tree, rng):
    weights = np.where(tree.legal, rng.exponential(size=tree.legal.shape), 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def met_as_they_are(tree, acting, playing, row):
    """Π π(B) / μ(B) of what others than the one to act did on the way to a history."""
    agent, factor = tree.player[row], 1.0
    while tree.parent[row] >= 0:
        above = tree.parent[row]
        if tree.player[above] not in (trees.CHANCE, agent):
            at = tree.information_state[above], tree.incoming_action[row]
            factor *= acting[at] / playing[at]
        row = above
    return factor


def mean_weights(tree, acting, playing):
    """The mean of that product over the visits of each state."""
    reach = history_oracle.reach(tree, playing, tree.information_state)
    found = np.ones(len(tree.legal))
    for state in range(len(found)):
        rows = np.flatnonzero(tree.information_state == state)
        met = [met_as_they_are(tree, acting, playing, row) for row in rows]
        found[state] = np.average(met, weights=reach[rows])
    return found


def known_of_states(tree, values, acting, playing):
    """μ(a) (b(h, a) − V(h)) of every state and action, in the mean over what others may hold."""
    reach = history_oracle.reach(tree, playing, tree.information_state)
    known, weights = np.zeros(tree.legal.shape), mean_weights(tree, acting, playing)
    for state in range(len(tree.legal)):
        rows = np.flatnonzero(tree.information_state == state)
        for row in rows:
            below = list(history_oracle.children(tree, row))
            agent, actions = tree.player[row], tree.incoming_action[below]
            mean = acting[state, actions] @ values[below, agent]
            met = met_as_they_are(tree, acting, playing, row) / weights[state]
            share = met * reach[row] / reach[rows].sum()
            known[state, actions] += share * playing[state, actions] * (values[below, agent] - mean)
    return known


def oracle(tree, values, acting, playing, known, weights, end):
    """One episode's sums and every passed history's δ, by walking it backwards."""
    rows = [end]
    while tree.parent[rows[0]] >= 0:
        rows.insert(0, int(tree.parent[rows[0]]))
    sums = np.zeros(tree.legal.shape)
    surprise, delta = {}, tree.shifted_returns[end] - values[end]
    surprise[end] = delta
    for place in range(len(rows) - 2, -1, -1):
        row, child = rows[place], rows[place + 1]
        state, agent = tree.information_state[row], tree.player[row]
        below = list(history_oracle.children(tree, row))
        chances = [history_oracle.edge(tree, acting, tree.information_state, row, each) for each in below]
        mean = sum(chance * values[each] for chance, each in zip(chances, below, strict=True))
        if agent >= 0:
            action = tree.incoming_action[child]
            sums[state, action] += met_as_they_are(tree, acting, playing, row) / weights[state] * delta[agent]
            sums[state] += known[state]
            delta = acting[state, action] / playing[state, action] * delta
        delta = delta + mean - values[row]
        surprise[row] = delta
    return sums, surprise


def test_against_a_walk_along_each_episode(tree):
    rng = np.random.default_rng(0)
    acting, playing = random_policy(tree, rng), random_policy(tree, rng)
    values = rng.normal(size=(tree.num_histories, tree.num_agents))
    seen = rng.integers(0, 40, size=tree.num_histories).astype(float)
    ends = rng.choice(np.flatnonzero(tree.player == trees.TERMINAL), size=50)
    with jax.enable_x64(True):
        before = critic.Critic(jnp.asarray(values), jnp.asarray(seen))
        tables = jnp.asarray(acting), jnp.asarray(playing)
        tally, after = TALLY(exact_line(tree), before, *tables, jnp.asarray(ends, jnp.int32))
    known, weights = known_of_states(tree, values, acting, playing), mean_weights(tree, acting, playing)
    found = [oracle(tree, values, acting, playing, known, weights, end) for end in ends]
    np.testing.assert_allclose(tally.returns, sum(sums for sums, _ in found), atol=1e-10)
    assert float(tally.episodes) == 50
    for row in range(tree.num_histories):
        deltas = [surprise[row] for _, surprise in found if row in surprise]
        assert float(after.visits[row]) == seen[row] + len(deltas)
        if deltas:
            step = max(1 - (1 - critic.RATE) ** len(deltas), len(deltas) / (seen[row] + len(deltas)))
            wanted = values[row] + step * np.mean(deltas, axis=0)
            np.testing.assert_allclose(after.values[row], wanted, atol=1e-10)
        else:
            np.testing.assert_array_equal(after.values[row], values[row])


@pytest.mark.thorough
def test_without_values_and_exploration_the_sums_are_the_plain_ones(tree):
    """The reduction: a critic that has seen nothing takes nothing away."""
    arena = self_play.arena_of(tree)
    table = jnp.asarray(random_policy(tree, np.random.default_rng(1)), jnp.float32)
    episodes = rollout.play(arena.board, table, 300, key=jax.random.key(0))
    plain = rollout.tally(arena.board, episodes)
    fresh = critic.init(arena.line)
    tally, _ = TALLY(arena.line, fresh, table, table, episodes.end)
    np.testing.assert_array_equal(tally.visits, plain.visits)
    if not arena.board.rewards_on_the_way:
        np.testing.assert_allclose(tally.returns, plain.returns, atol=1e-3, rtol=1e-5)


def moments(tree, values, acting, playing):
    """Mean and variance of one episode's sums over all ways it can end."""
    ends = np.flatnonzero(tree.player == trees.TERMINAL)
    chances = history_oracle.reach(tree, playing, tree.information_state)[ends]
    with jax.enable_x64(True):
        line = exact_line(tree)
        before = critic.Critic(jnp.asarray(values), jnp.zeros(tree.num_histories))
        one = jax.jit(
            lambda end: TALLY(line, before, jnp.asarray(acting), jnp.asarray(playing), end)[0].returns
        )
        found = np.stack([one(jnp.asarray([end], jnp.int32)) for end in ends])
    mean = np.einsum("z,zsa->sa", chances, found)
    return mean, np.einsum("z,zsa->sa", chances, (found - mean) ** 2)


def advantages(tree, values, acting, playing):
    """Σ_h μ(a) (q(h, a) − V(h)) over the histories of each state, as likely as others lead there."""
    sums = np.zeros(tree.legal.shape)
    earned = tree.along_paths(tree.rewards)
    shift = tree.shifted_returns - earned
    terminal = tree.player == trees.TERMINAL
    assert np.ptp(shift[terminal], axis=0).max() < 1e-9, "one shift for all ends"
    for row in np.flatnonzero(tree.player >= 0):
        agent, state = tree.player[row], tree.information_state[row]
        chance, path = 1.0, row
        while tree.parent[path] >= 0:
            above = tree.parent[path]
            mine = playing if tree.player[above] == agent else acting
            chance *= history_oracle.edge(tree, mine, tree.information_state, above, path)
            path = above
        below = list(history_oracle.children(tree, row))
        mean = sum(acting[state, tree.incoming_action[each]] * values[each, agent] for each in below)
        for each in below:
            action = tree.incoming_action[each]
            worth = earned[each] + history_oracle.value(tree, acting, tree.information_state, each)
            gain = worth[agent] + shift[terminal][0, agent] - mean
            sums[state, action] += chance * playing[state, action] * gain
    return sums / mean_weights(tree, acting, playing)[:, None]


def test_in_expectation_they_are_the_advantages_of_the_policy_whatever_the_values_are():
    tree = openspiel.compile_game("kuhn_poker")
    rng = np.random.default_rng(2)
    acting, playing = random_policy(tree, rng), random_policy(tree, rng)
    values = rng.normal(size=(tree.num_histories, tree.num_agents))
    mean, _ = moments(tree, values, acting, playing)
    np.testing.assert_allclose(mean, advantages(tree, values, acting, playing), atol=1e-12)


def test_with_the_true_values_there_is_no_noise():
    tree = openspiel.compile_game("kuhn_poker")
    acting = random_policy(tree, np.random.default_rng(3))
    states = tree.information_state
    earned = tree.along_paths(tree.rewards)
    shift = (tree.shifted_returns - earned)[tree.player == trees.TERMINAL][0]
    values = np.stack(
        [
            earned[row] + shift + history_oracle.value(tree, acting, states, row)
            for row in range(len(tree.parent))
        ]
    )
    ends = np.flatnonzero(tree.player == trees.TERMINAL)
    with jax.enable_x64(True):
        before = critic.Critic(jnp.asarray(values), jnp.zeros(tree.num_histories))
        tables = jnp.asarray(acting), jnp.asarray(acting)
        _, after = TALLY(exact_line(tree), before, *tables, jnp.asarray(ends, jnp.int32))
        found = [TALLY(exact_line(tree), before, *tables, jnp.asarray([end], jnp.int32))[0] for end in ends]
    each = jax.tree.map(np.asarray, found)
    np.testing.assert_allclose(after.values, values, atol=1e-12)
    # Nor does what others hold: every visit of a state says the same.
    for state in range(len(tree.legal)):
        said = np.stack([one.returns[state] for one in each if one.visits[state].sum()])
        np.testing.assert_allclose(said, np.broadcast_to(said[0], said.shape), atol=1e-12)
        assert len(said) > 2
    assert max(np.abs(one.returns).max() for one in each) > 0.1


def test_exploring_play_and_values_of_histories_are_refused_where_they_cannot_be():
    learner, options = tally_learners.table(directions.neurd(), step_size=1.0), {"num_episodes": 1}
    with pytest.raises(ValueError, match="play_exploration needs baseline_of=history"):
        self_play.loop(learner, play_exploration=0.1, **options)
    with pytest.raises(ValueError, match="baseline_of=history is for update=sampled"):
        self_play.loop(learner, baseline_of="history", update="expected", **options)
    with pytest.raises(ValueError, match="baseline_of must be one of"):
        self_play.loop(learner, baseline_of="world", **options)


@pytest.mark.thorough
def test_it_draws_nothing_and_its_counts_are_those_of_the_episodes():
    """Of a policy that stays as it is, the same episodes with values of histories and without."""
    tree = openspiel.compile_game("kuhn_poker")
    arena, key, updates, size = self_play.arena_of(tree), jax.random.key(3), 5, 64
    still = tally_learners.table(directions.neurd(), step_size=0.0)
    ended = np.zeros(tree.num_histories)
    for update in range(updates):
        uniform = jnp.asarray(tree.legal / tree.legal.sum(axis=1, keepdims=True), jnp.float32)
        found = rollout.play(arena.board, uniform, size, key=jax.random.fold_in(key, update))
        np.add.at(ended, np.asarray(found.end), 1)
    decisions = {}
    for baseline_of in ("state", "history"):
        loop = self_play.loop(still, num_episodes=size, baseline_of=baseline_of)
        state = loop.advance(arena, loop.init(arena, key=key), np.int32(updates), key)
        decisions[baseline_of] = int(state.steps)
    assert decisions["state"] == decisions["history"] > 2 * size * updates
    terminal = tree.player == trees.TERMINAL
    np.testing.assert_array_equal(np.asarray(state.values.visits)[terminal], ended[terminal])
    assert state.values.visits[0] == size * updates
