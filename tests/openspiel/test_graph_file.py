"""Graphs in files: what is loaded is what was saved, and nothing else is loaded."""

import dataclasses
import re

import numpy as np
import pyspiel
import pytest

from pohp_neurd import agent_state, exact, openspiel
from pohp_neurd.openspiel import compile as compiling

WITH_REWARDS = (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=3,points_order=descending))"
)
GRAPHS = [
    ("kuhn_poker(players=3)", "observation", "string"),
    ("leduc_poker", "window:2", "string"),
    ("liars_dice(dice_sides=3)", "information_state", "observations"),
    (WITH_REWARDS, "observation", "string"),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.npz"


@pytest.mark.parametrize(("name", "memory", "world"), GRAPHS)
def test_a_loaded_graph_is_the_saved_one(path, name, memory, world):
    built = openspiel.compile_game(name, agent_state=memory, world=world)
    compiling.save_graph(path, built)
    loaded = compiling.load_graph(path)
    for field in dataclasses.fields(built):
        before, after = getattr(built, field.name), getattr(loaded, field.name)
        np.testing.assert_array_equal(before, after, err_msg=field.name)
        assert np.asarray(before).dtype == np.asarray(after).dtype, field.name
    origin = compiling.origin_of(loaded)
    assert (origin.agent_state, origin.world) == (memory, world)
    assert str(origin.game) == built.name


@pytest.mark.parametrize(("name", "memory", "world"), GRAPHS)
def test_agent_states_of_a_loaded_graph_are_found_again(path, name, memory, world):
    """Its policy and that of the graph that was built agree along 50 random episodes."""
    built = openspiel.compile_game(name, agent_state=memory, world=world)
    compiling.save_graph(path, built)
    loaded = compiling.load_graph(path)
    weights = np.where(built.legal, np.random.default_rng(0).random(built.legal.shape), 0.0)
    table = weights / weights.sum(axis=1, keepdims=True)
    ours, theirs = openspiel.MemoryPolicy(loaded, table), openspiel.MemoryPolicy(built, table)
    rng, game = np.random.default_rng(1), compiling.load_game(name)
    rows = set()
    for _ in range(50):
        state = game.new_initial_state()
        while not state.is_terminal():
            if not state.is_chance_node():
                assert ours.action_probabilities(state) == theirs.action_probabilities(state)
                rows.add(compiling.origin_of(loaded).row(state, state.current_player()))
            state.apply_action(int(rng.choice(state.legal_actions())))
    assert None not in rows
    assert len(rows) > 10
    assert exact.nash_conv(loaded, table) == exact.nash_conv(built, table)


@pytest.mark.parametrize(
    ("keywords", "which"),
    [
        (
            {"agent_state": agent_state.UpdateFunction(bytes, lambda state, action, seen: bytes(seen))},
            "agent_state",
        ),
        ({"agent_state": "observation", "world": str}, "world"),
    ],
)
def test_functions_are_not_saved(path, keywords, which):
    world = openspiel.compile_game("kuhn_poker", **keywords)
    with pytest.raises(ValueError, match=f"a graph whose {which} is a function cannot be saved"):
        compiling.save_graph(path, world)
    assert not path.exists()


def test_what_is_no_graph_is_told(path, tmp_path):
    with pytest.raises(ValueError, match=r"there is no file .*graph\.npz\.$"):
        compiling.load_graph(path)
    for content in (b"", b"something else", b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"graph\.npz is damaged, or not a file that save_graph wrote\.$"
        ):
            compiling.load_graph(path)
    np.savez(path, about=np.zeros(3))
    with pytest.raises(ValueError, match="is damaged, or not"):
        compiling.load_graph(path)
    with pytest.raises(ValueError, match="is damaged, or not"):
        compiling.load_graph(tmp_path)


def loaded_or_told(path):
    """The graph, or None where it is told that it is damaged; other errors go by."""
    try:
        return compiling.load_graph(path)
    except ValueError as error:
        if not re.search("is damaged, or not|holds a graph that cannot be used", str(error)):
            raise
        return None


def test_damage_is_told_wherever_it_is(path):
    """Cut short anywhere, or with any stretch overwritten, it is one ValueError, or the same graph."""
    built = openspiel.compile_game("kuhn_poker", agent_state="observation")
    compiling.save_graph(path, built)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    told = 0
    for trial in range(400):
        place = int(rng.integers(len(whole)))
        damaged = whole[:place]
        if trial % 2:
            damaged += rng.bytes(8) + whole[place + 8 :]
        path.write_bytes(damaged)
        loaded = loaded_or_told(path)
        if loaded is None:
            told += 1
        else:
            assert exact.nash_conv(loaded, exact.uniform(loaded)) == pytest.approx(11 / 12)
    assert told > 350


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("child", lambda world: np.where(world.child >= 0, 0, -1)),
        ("child", lambda world: world.child + 1000),
        ("agent_state", lambda world: world.agent_state[::-1]),
        ("agent_state", lambda world: np.where(world.agent_state >= 0, 50, -1)),
        ("action", lambda world: world.action + 7),
        ("seen", lambda world: world.seen[1:]),
        ("levels", lambda world: world.levels[:-1]),
        ("player", lambda world: world.player + 1),
        ("features", lambda world: world.features[:-1]),
    ],
)
def test_numbers_that_cannot_be_are_not_loaded(path, field, change):
    """Such as another program might write: the compiled search would read beyond its arrays."""
    built = openspiel.compile_game("kuhn_poker", agent_state="observation")
    compiling.save_graph(path, built)
    with np.load(path) as file:
        arrays = dict(file)
    arrays[field] = change(built)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="is damaged, or not"):
        compiling.load_graph(path)


def test_a_game_that_is_not_there_is_told(path):
    built = openspiel.compile_game("kuhn_poker", agent_state="observation")
    renamed = dataclasses.replace(built, name="poker_of_tomorrow()")
    compiling._origins[renamed] = compiling.origin_of(built)
    compiling.save_graph(path, renamed)
    with pytest.raises(ValueError, match="holds a graph that cannot be used: OpenSpiel knows no game"):
        compiling.load_graph(path)


def test_names_are_enough_for_games_given_as_objects(path):
    game = pyspiel.load_game("leduc_poker(players=2)")
    compiling.save_graph(path, openspiel.compile_game(game, agent_state="observation"))
    assert str(compiling.origin_of(compiling.load_graph(path)).game) == str(game)
