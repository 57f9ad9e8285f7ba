"""Graphs of agent states, and best responses on them, against the tree of the same game."""

import dataclasses
import itertools

import numpy as np
import pyspiel
import pytest

from pohp_neurd import agent_state, exact, openspiel
from pohp_neurd.finite import graph
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import graph_builder, policies

GAMES = [
    "kuhn_poker",
    "kuhn_poker(players=3)",
    "leduc_poker",
    "liars_dice(dice_sides=3)",
    pytest.param("liars_dice(dice_sides=4)", marks=pytest.mark.thorough),
    "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=4,points_order=descending))",
    "dark_hex(board_size=2,gameversion=adh)",
    "dark_hex(board_size=2,gameversion=cdh)",
    pytest.param("tiny_bridge_2p", marks=pytest.mark.slow),
    "matrix_rps",
    "matrix_pd",
]


def row_of(world):
    """(player, what is seen, legal actions) -> agent state, for agents who see and do not remember."""
    known = zip(world.state_player.tolist(), world.features, world.legal, strict=True)
    found = {
        (player, features.tobytes(), tuple(np.flatnonzero(legal))): row
        for row, (player, features, legal) in enumerate(known)
    }
    assert len(found) == world.num_agent_states
    return found


def lifted(tree, world, table, view="observation_tensor"):
    """The policy `table` of agents who see, as a table for the tree's information states."""
    rows = row_of(world)
    found = []
    for state in policies.witness_states(tree):
        player = state.current_player()
        seen = np.array(getattr(state, view)(player), np.float32).tobytes()
        found.append(table[rows[player, seen, tuple(state.legal_actions())]])
    return np.array(found)


def random_policy(world, rng):
    weights = np.where(world.legal, rng.exponential(size=world.legal.shape), 0.0)
    # Some actions are never taken: their subtrees are not reached.
    kept = np.where(rng.random(world.legal.shape) < 0.8, weights, 0.0)
    weights = np.where(kept.sum(axis=1, keepdims=True) > 0, kept, weights)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", GAMES)
def test_policies_of_observations_are_judged_as_on_the_tree(name):
    tree = openspiel.compile_game(name)
    world = openspiel.compile_game(name, agent_state="observation")
    rng = np.random.default_rng(0)
    for _ in range(20):
        table = random_policy(world, rng)
        same = lifted(tree, world, table)
        np.testing.assert_allclose(
            exact.expected_returns(world, table), exact.expected_returns(tree, same), atol=1e-9
        )
        np.testing.assert_allclose(
            exact.best_response_values(world, table), exact.best_response_values(tree, same), atol=1e-9
        )


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "liars_dice(dice_sides=3)"])
def test_information_states_as_agent_states_are_those_of_the_tree(name):
    tree = openspiel.compile_game(name)
    world = openspiel.compile_game(name, agent_state="information_state")
    assert world.num_agent_states == tree.num_information_states
    assert graph.recall(world) == graph.Recall(perfect=True, timed=True, absent_minded=False)
    uniform = exact.uniform(world)
    assert exact.nash_conv(world, uniform) == pytest.approx(
        exact.nash_conv(tree, exact.uniform(tree)), abs=1e-9
    )
    visited = sum(response.information_states for response in exact.responses(world, uniform))
    assert visited == tree.num_information_states


def test_openspiel_agrees():
    """Kuhn poker's uniform policy has NashConv 11/12; pyspiel finds the same of a policy of observations."""
    game = pyspiel.load_game("kuhn_poker")
    tree = openspiel.compile_game(game)
    world = openspiel.compile_game(game, agent_state="observation")
    assert exact.nash_conv(world, exact.uniform(world)) == pytest.approx(11 / 12, abs=1e-12)
    table = random_policy(world, np.random.default_rng(1))
    theirs = pyspiel.nash_conv(game, openspiel.to_pyspiel_policy(tree, lifted(tree, world, table)))
    assert exact.nash_conv(world, table) == pytest.approx(theirs, abs=1e-9)


def test_a_longer_memory_is_finer_until_it_is_perfect():
    sizes = [
        openspiel.compile_game("leduc_poker", agent_state=memory).num_agent_states
        for memory in ("observation", "window:1", "window:2", "window:3", "information_state")
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    longest = openspiel.compile_game("leduc_poker", agent_state="window:4")
    assert graph.recall(longest).perfect
    assert not graph.recall(openspiel.compile_game("leduc_poker", agent_state="observation")).perfect


@pytest.mark.parametrize("length", [1, 3])
def test_networks_see_the_whole_window_and_the_seat(length):
    """By hand, from pyspiel's tensors along random episodes: own actions one-hot, zeros where it is blank."""
    game = pyspiel.load_game("leduc_poker")
    world = openspiel.compile_game(game, agent_state=f"window:{length}")
    features, origin = compiling.features_of(world), compiling.origin_of(world)
    blank = np.zeros(world.num_actions + game.observation_tensor_size(), np.float32)
    rng = np.random.default_rng(0)
    for _ in range(30):
        state, pairs, acted = (
            game.new_initial_state(),
            [[blank] * length] * 2,
            [blank[: world.num_actions]] * 2,
        )
        while not state.is_terminal():
            action = int(rng.choice(state.legal_actions()))
            player = state.current_player()
            if player >= 0:
                pair = np.concatenate([acted[player], state.observation_tensor(player)])
                pairs[player] = [*pairs[player][1:], pair]
                seen = np.concatenate([*pairs[player], np.eye(2)[player]])
                np.testing.assert_array_equal(features[origin.row(state, player)], seen.astype(np.float32))
                acted[player] = np.eye(world.num_actions)[action]
            state.apply_action(action)


def test_networks_of_trees_and_graphs_see_the_same():
    """Where agents have information states: its tensor and the seat, in whatever order."""
    tree = openspiel.compile_game("leduc_poker")
    world = openspiel.compile_game("leduc_poker", agent_state="information_state")
    both = [np.unique(compiling.features_of(compiled), axis=0) for compiled in (tree, world)]
    np.testing.assert_array_equal(*both)


@pytest.mark.parametrize(
    ("name", "max_nodes"),
    [
        pytest.param("bridge", 1_000_000, marks=pytest.mark.slow),
        pytest.param("dark_hex(board_size=4)", 1_000_000, marks=pytest.mark.slow),
        ("goofspiel(imp_info=True,num_cards=6,points_order=descending)", 100_000),
    ],
)
def test_playouts_tell_that_a_graph_is_too_large_long_before_it_is_built(name, max_nodes, monkeypatch):
    asked = []
    monkeypatch.setattr(graph_builder, "_REFRESH", 1)
    monkeypatch.setattr(graph_builder.tqdm.tqdm, "update", lambda bar, count: asked.append(count))
    with pytest.raises(ValueError, match=f"has more than {max_nodes:,} nodes with these agent states"):
        openspiel.compile_game(name, agent_state="observation", max_nodes=max_nodes)
    assert len(asked) < 0.1 * max_nodes


@pytest.mark.parametrize("more", [0, -1])
def test_playouts_do_not_refuse_what_is_within_the_limit(more, monkeypatch):
    """Liar's Dice with four sides has 9,301 nodes, and playouts are asked from the first on."""
    monkeypatch.setattr(graph_builder, "_CROWD", 1)
    known = openspiel.compile_game("liars_dice(dice_sides=4)", agent_state="observation").num_nodes
    if more:
        with pytest.raises(ValueError, match="more than"):
            openspiel.compile_game(
                "liars_dice(dice_sides=4)", agent_state="observation", max_nodes=known + more
            )
    else:
        openspiel.compile_game("liars_dice(dice_sides=4)", agent_state="observation", max_nodes=known)


def test_any_update_function_of_observations():
    """One that counts own turns, beside what is seen, has timed states."""
    counted = agent_state.UpdateFunction(
        init=lambda seen: (0, seen.tobytes()),
        update=lambda state, action, seen: (state[0] + 1, seen.tobytes()),
    )
    name = "liars_dice(dice_sides=3)"
    world = openspiel.compile_game(name, agent_state=counted)
    assert graph.recall(world).timed
    plain = openspiel.compile_game(name, agent_state="observation")
    assert not graph.recall(plain).timed
    assert world.num_agent_states > plain.num_agent_states


def test_the_number_of_threads_makes_no_difference():
    world = openspiel.compile_game("leduc_poker", agent_state="observation")
    table = random_policy(world, np.random.default_rng(2))
    assert exact.responses(world, table, num_threads=1) == exact.responses(world, table, num_threads=2)


def test_a_world_that_is_too_small_is_refused():
    """In Goofspiel the first bid is in no tensor until the second is made."""
    name = "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=6,points_order=descending))"
    with pytest.raises(ValueError, match="were taken for one node, but differ in"):
        openspiel.compile_game(name, agent_state="observation", world="observations")


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"agent_state": "everything"}, "agent_state must be information_state, observation, window:K"),
        ({"agent_state": "window:0"}, "a window must have a length of at least 1"),
        ({"agent_state": "observation", "world": "flat"}, "world must be one of string, observations"),
        ({"agent_state": "observation", "max_nodes": 10}, "has more than 10 nodes"),
        ({"agent_state": "observation", "max_nodes": 0}, "must be at least 1"),
    ],
)
def test_what_cannot_be_built_is_told(keywords, sentence):
    with pytest.raises(ValueError, match=sentence):
        openspiel.compile_game("leduc_poker", **keywords)


def test_games_without_tensors_are_told():
    name = next(
        kind.short_name
        for kind in pyspiel.registered_games()
        if kind.default_loadable
        and not kind.provides_observation_tensor
        and kind.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
        and kind.chance_mode != pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
    )
    with pytest.raises(ValueError, match="gives no observation tensors"):
        openspiel.compile_game(name, agent_state="observation")


def test_agent_states_must_have_the_same_actions():
    forgetful = agent_state.UpdateFunction(init=lambda seen: 0, update=lambda state, action, seen: 0)
    with pytest.raises(ValueError, match="agents must remember more"):
        openspiel.compile_game("leduc_poker", agent_state=forgetful)


def test_tables_and_bounds_are_checked():
    world = openspiel.compile_game("kuhn_poker", agent_state="observation")
    with pytest.raises(ValueError, match=r"must have the shape \(12, 2\)"):
        exact.nash_conv(world, np.ones((3, 2)) / 2)
    with pytest.raises(ValueError, match="agent state 0 does not sum to 1"):
        exact.nash_conv(world, np.ones((12, 2)))
    with pytest.raises(ValueError, match="more than 5 information states"):
        exact.responses(world, exact.uniform(world), max_information_states=5)


def test_absent_mindedness():
    """A hand-made path through one agent state twice, and one through two."""
    path = graph.Graph(
        num_agents=1,
        num_actions=1,
        levels=np.array([0, 1, 2]),
        player=np.zeros(2, np.int32),
        agent_state=np.zeros(2, np.int32),
        seen=np.zeros(2, np.int32),
        first_edge=np.array([0, 1, 2]),
        action=np.zeros(2, np.int32),
        child=np.array([1, -1], np.int32),
        chance=np.ones(2),
        rewards=np.zeros((2, 1)),
        state_player=np.zeros(1, np.int32),
        legal=np.ones((1, 1), bool),
        features=np.zeros((1, 1), np.float32),
    )
    assert graph.recall(path).absent_minded
    apart = dataclasses.replace(
        path,
        agent_state=np.arange(2, dtype=np.int32),
        state_player=np.zeros(2, np.int32),
        legal=np.ones((2, 1), bool),
        features=np.zeros((2, 1), np.float32),
    )
    assert graph.recall(apart) == graph.Recall(perfect=True, timed=True, absent_minded=False)


def test_edges_lead_one_level_down():
    world = openspiel.compile_game("leduc_poker", agent_state="observation")
    going_on = world.child >= 0
    assert np.all(world.level[world.child[going_on]] == world.level[world.source[going_on]] + 1)
    for start, stop in itertools.pairwise(world.first_edge.tolist()):
        assert np.all(np.diff(world.action[start:stop]) > 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "nodes", "agent_states", "information_states", "exploitability"),
    [
        ("phantom_ttt", 284_627, 12_389, 5_990_669, 0.788732),
        ("phantom_ttt(gameversion=abrupt)", 312_781, 20_687, 23_310_269, 0.619334),
        ("dark_hex(board_size=3,gameversion=cdh)", 283_859, 12_556, 6_072_917, 0.916402),
        ("dark_hex(board_size=3,gameversion=adh)", 333_651, 22_197, 27_325_277, 0.762605),
    ],
)
def test_games_of_billions_of_histories(name, nodes, agent_states, information_states, exploitability):
    """Information states as published; the uniform policy of the first and third as published, too."""
    world = openspiel.compile_game(name, agent_state="observation")
    assert (world.num_nodes, world.num_agent_states) == (nodes, agent_states)
    assert graph.recall(world) == graph.Recall(perfect=False, timed=True, absent_minded=False)
    uniform = exact.uniform(world)
    found = exact.responses(world, uniform)
    assert sum(response.information_states for response in found) == information_states
    gains = sum(response.value for response in found) - exact.expected_returns(world, uniform).sum()
    assert gains / 2 == pytest.approx(exploitability, abs=5e-7)
