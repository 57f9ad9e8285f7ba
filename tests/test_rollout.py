"""Lock-step episodes against exact reach probabilities, and their tallies against a walk over the tree."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pohp_neurd.games  # noqa: F401  registers catch with OpenSpiel
import pytest

from pohp_neurd import exact, openspiel, policy
from pohp_neurd.finite import rollout, tree, tree_builder


@functools.cache
def uneven():
    """Chance 1:2:7, then a second chance after its first outcome, then one decision, then chance again."""
    ends = {"r0": (0, 1), "r1": (2,), "r2": (0, 1)}

    def describe(node):
        if node == "r":
            return tree_builder.Node(tree.CHANCE, [0.0], actions=(0, 1, 2), probabilities=(0.1, 0.2, 0.7))
        if node == "r0":
            return tree_builder.Node(tree.CHANCE, [0.0], actions=(0, 1), probabilities=(0.25, 0.75))
        if node in ("r00", "r01", "r1", "r2"):
            return tree_builder.Node(0, [0.0], information_state=node, actions=(0, 2))
        if (len(node) == 3 and node[-1] == "0") or (len(node) == 4 and node[-1] == "0"):
            return tree_builder.Node(tree.CHANCE, [0.0], actions=(0, 1), probabilities=(0.05, 0.95))
        return tree_builder.Node(tree.TERMINAL, [float(len(node))])

    del ends
    return tree_builder.grow(
        "r", describe, lambda node, action: node + str(action), num_agents=1, num_actions=3, name="uneven"
    )


@functools.cache
def game(name):
    return uneven() if name == "uneven" else openspiel.compile_game(name)


@functools.cache
def played(name, num_episodes=100_000):
    compiled = game(name)
    rng = np.random.default_rng(3)
    table = rng.dirichlet(np.ones(compiled.num_actions), compiled.num_information_states)
    table = np.where(compiled.legal, table, 0.0)
    # Some actions are never taken, the first and the last legal one among them.
    for row in range(0, len(table), 3):
        legal = np.flatnonzero(compiled.legal[row])
        if len(legal) > 1:
            table[row, legal[0 if row % 2 else -1]] = 0.0
    table /= table.sum(axis=1, keepdims=True)
    board = rollout.board(compiled)
    play = jax.jit(rollout.play, static_argnums=2)
    episodes = play(board, jnp.asarray(table, jnp.float32), num_episodes, key=jax.random.key(0))
    return compiled, table, board, jax.tree.map(np.asarray, episodes)


GAMES = ("uneven", "kuhn_poker", "python_pohp_catch(rows=3,columns=2,horizon=4)")


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*GAMES, pytest.param("leduc_poker", marks=pytest.mark.slow)])
def test_histories_come_as_often_as_they_should(name):
    compiled, table, _, episodes = played(name)
    reach = np.asarray(exact.quantities(compiled, table).reach)
    number = episodes.end.size
    ends = np.bincount(episodes.end, minlength=compiled.num_histories) / number
    terminal = compiled.player == tree.TERMINAL
    assert ends[terminal].sum() == 1.0
    assert np.all(ends[terminal & (reach == 0)] == 0)
    sigma = np.sqrt(reach * (1 - reach) / number)
    assert np.all(np.abs(ends - reach)[terminal] <= 5 * sigma[terminal] + 1e-12)


@pytest.mark.parametrize("name", GAMES)
def test_a_tally_is_a_walk_up_from_the_ends(name):
    compiled, table, board, episodes = played(name)
    few = jax.tree.map(lambda leaf: jnp.asarray(leaf[..., :500]), rollout.Episodes(*episodes))
    found = jax.tree.map(np.asarray, jax.jit(rollout.tally)(board, few))
    returns, visits = np.zeros(table.shape), np.zeros(table.shape)
    for row in np.asarray(few.end):
        to_go = np.zeros(compiled.num_agents)
        while row > 0:
            to_go += compiled.shifted_rewards[row]
            above = compiled.parent[row]
            if compiled.player[above] >= 0:
                place = compiled.information_state[above], compiled.incoming_action[row]
                returns[place] += to_go[compiled.player[above]]
                visits[place] += 1
            row = above
    assert found.episodes == 500
    np.testing.assert_array_equal(found.visits, visits)
    np.testing.assert_allclose(found.returns, returns, rtol=1e-5, atol=1e-4)


def test_visits_name_the_decisions_of_one_episode():
    compiled, _, board, episodes = played("kuhn_poker")
    found = jax.tree.map(np.asarray, rollout.visits(board, rollout.Episodes(*map(jnp.asarray, episodes))))
    for episode in range(20):
        row, path = int(episodes.end[episode]), []
        while row > 0:
            above = int(compiled.parent[row])
            if compiled.player[above] >= 0:
                path.append((int(compiled.information_state[above]), int(compiled.incoming_action[row])))
            row = above
        valid = found.valid[:, episode]
        pairs = zip(found.state[valid, episode], found.action[valid, episode], strict=True)
        assert [(int(s), int(a)) for s, a in pairs] == path[::-1]


def test_the_same_key_plays_the_same_and_does_not_compile_again(count_compilations):
    compiled, table, board, first = played("kuhn_poker")
    play = jax.jit(rollout.play, static_argnums=2)
    chances = jnp.asarray(table, jnp.float32)
    play(board, chances, 64, key=jax.random.key(1))
    with count_compilations() as seen:
        again = play(board, chances, 64, key=jax.random.key(1))
        other = play(board, chances, 64, key=jax.random.key(2))
    assert seen.count <= 2  # the keys
    np.testing.assert_array_equal(again.end, play(board, chances, 64, key=jax.random.key(1)).end)
    assert not np.array_equal(again.end, other.end)
    assert np.all(compiled.player[first.end] == tree.TERMINAL)


def one_choice(chances):
    """A decision with a rare action, and after one of the others a chance with a rare outcome."""
    rare = (1e-9, 1 - 1e-9)

    def describe(node):
        if node == "":
            actions = tuple(range(len(chances)))
            return tree_builder.Node(0, [0.0], information_state="x", actions=actions)
        if node == "0":
            return tree_builder.Node(tree.CHANCE, [0.0], actions=(0, 1), probabilities=rare)
        return tree_builder.Node(tree.TERMINAL, [0.0])

    return tree_builder.grow(
        "", describe, lambda node, action: node + str(action), num_agents=1, num_actions=len(chances)
    )


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("rare", [1e-7, 1e-9])
def test_a_rare_action_is_played_as_rarely_as_it_should(monkeypatch, place, rare):
    """200,000 episodes whose first 24 bits are those of a threshold; the rest decides, within 5 sigma."""
    chances = np.insert(np.array([0.3, 0.7 - rare]), place, rare).astype(np.float32)
    ends = jax.jit(policy.thresholds)(jnp.asarray(chances)[None])
    edge = int(ends.high[0, place - 1]) if place else 0
    start = int(ends.low[0, place - 1]) if place else 0
    end = int(ends.low[0, place]) if int(ends.high[0, place]) == edge else policy.ONE
    board = rollout.board(one_choice(chances))
    digits, number = policy.digits, 200_000

    def at_the_edge(key, shape):
        # The first halves have an axis of draws; one episode in ten is far from any edge.
        if len(shape) == 1:
            return digits(key, shape)
        return jnp.broadcast_to(jnp.where(jnp.arange(number) % 10 == 0, 2**20, edge), shape)

    monkeypatch.setattr(policy, "digits", at_the_edge)
    play = jax.jit(lambda table, key: rollout.play(board, table, number, key=key).place[0])
    found = np.asarray(play(jnp.asarray(chances)[None], jax.random.key(0)))
    far = np.arange(number) % 10 == 0
    assert np.all(found[far] == (1 if place == 0 else 0))
    share = (end - start) / policy.ONE
    assert share == pytest.approx(min(rare * policy.ONE, 1 - start / policy.ONE), rel=1e-5)
    error = np.sqrt(share * (1 - share) / (~far).sum())
    assert abs(np.mean(found[~far] == place) - share) <= 5 * error


def test_a_rare_outcome_of_chance_is_drawn_as_rarely_as_it_should():
    """Walker's two columns of one half each: what is kept of the rare one's is twice its probability."""
    board = rollout.board(one_choice(np.ones(2) / 2))
    kept = np.asarray(board.alias_threshold.high) + np.asarray(board.alias_threshold.low) / policy.ONE
    kept = kept / policy.ONE
    rare = np.flatnonzero(kept < 1)
    assert len(rare) == 1
    assert kept[rare[0]] == pytest.approx(2e-9, abs=2.0**-48)


def test_second_halves_of_two_decisions_are_independent(monkeypatch):
    """20,000 episodes at the threshold 1/4 + 2⁻²⁵ twice: each pair of places comes a quarter of the time."""

    def describe(node):
        if len(node) < 2:
            return tree_builder.Node(0, [0.0], information_state=node, actions=(0, 1))
        return tree_builder.Node(tree.TERMINAL, [0.0])

    grown = tree_builder.grow(
        "", describe, lambda node, action: node + str(action), num_agents=1, num_actions=2
    )
    board, digits, number = rollout.board(grown), policy.digits, 20_000
    edge = 2**22

    def at_the_edge(key, shape):
        return digits(key, shape) if len(shape) == 1 else jnp.full(shape, edge)

    monkeypatch.setattr(policy, "digits", at_the_edge)
    table = jnp.tile(jnp.array([[0.25 + 2**-25, 0.75 - 2**-25]], jnp.float32), (3, 1))
    place = np.asarray(
        jax.jit(lambda key: rollout.play(board, table, number, key=key).place)(jax.random.key(0))
    )
    shares = np.bincount(2 * place[0] + place[1], minlength=4) / number
    assert np.all(np.abs(shares - 0.25) < 5 * np.sqrt(3 / 16 / number))
