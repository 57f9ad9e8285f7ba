"""Saved policies: what they say comes back, and a file that makes no sense is told of in one sentence."""

import json

import jax
import numpy as np
import pyspiel
import pytest

from pohp_neurd import openspiel
from pohp_neurd.openspiel import saved
from pohp_neurd.openspiel.live import play


def keep(folder, game, table):
    saved.save(folder, 1, saved.Saved(saved.About(game, "tabular"), table, table))


def keep_network(folder, game="kuhn_poker", spoil=lambda leaf: leaf):
    about = saved.About(game, "neural", (8,), True)
    parameters = play.network(play.live_game(game), (8,)).init(key=jax.random.key(0))
    saved.save(folder, 1, saved.Saved(about, (parameters,), (jax.tree.map(spoil, parameters),)))


@pytest.fixture
def table():
    return np.tile([0.25, 0.75], (12, 1))


def test_there_and_back(tmp_path, table):
    keep(tmp_path, "kuhn_poker", table)
    found = saved.load(tmp_path)
    np.testing.assert_array_equal(found.average, table)
    state = pyspiel.load_game("kuhn_poker").new_initial_state().child(0).child(1)
    assert saved.openspiel_policy(found).action_probabilities(state) == {0: 0.25, 1: 0.75}
    assert openspiel.bot(tmp_path, 0).get_policy(state) == [(0, 0.25), (1, 0.75)]


def test_a_saved_table_answers_where_players_move_at_the_same_time(tmp_path):
    keep(tmp_path, "matrix_rps", np.tile([1.0, 0.0, 0.0], (2, 1)))
    start = pyspiel.load_game("matrix_rps").new_initial_state()
    for player in (0, 1):
        assert openspiel.bot(tmp_path, player).step(start) == 0
        answer = saved.openspiel_policy(saved.load(tmp_path)).action_probabilities(start, player)
        assert answer == {0: 1.0, 1: 0.0, 2: 0.0}


def test_a_saved_network_answers_there_too_and_says_where_it_cannot(tmp_path):
    keep_network(tmp_path, "matrix_rps")
    start = pyspiel.load_game("matrix_rps").new_initial_state()
    assert openspiel.bot(tmp_path, 0).step(start) in (0, 1, 2)
    with pytest.raises(ValueError, match="does not know states of matrix_pd"):
        openspiel.bot(tmp_path, 0).step(pyspiel.load_game("matrix_pd").new_initial_state())


@pytest.mark.parametrize("row", [[np.nan, np.nan], [np.inf, 0.0], [-0.5, 1.5], [0.0, 0.0]])
def test_rows_that_are_no_distribution(tmp_path, table, row):
    table[7] = row
    keep(tmp_path, "kuhn_poker", table)
    with pytest.raises(
        ValueError, match=r"^every row of the current policy in .* must (be non-negative|sum to 1)"
    ):
        saved.load(tmp_path)


def test_weights_that_are_not_finite(tmp_path):
    keep_network(tmp_path, spoil=lambda leaf: leaf * np.float32("nan"))
    with pytest.raises(ValueError, match=r"^the average policy in .* holds a weight that is not finite.$"):
        saved.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"game": "no_such_game"},
            "about.json names a game that cannot be played: OpenSpiel knows no game 'no_s",
        ),
        ({"game": "mfg_garnet"}, "is a mean field game"),
        ({"game": 3}, "about.json is damaged."),
        ({"kind": "quantum"}, "about.json is damaged."),
        ({"hidden_layers": ["wide"]}, "about.json is damaged."),
        ({"hidden_layers": [0]}, "about.json is damaged."),
        ({"hidden_layers": None}, "about.json is damaged."),
        ({"hidden_layers": [8.0]}, "about.json is damaged."),
        (
            {"hidden_layers": [10_000_000, 10_000_000]},
            "but no array in the checkpoint beside it is longer than 13",
        ),
        ({"hidden_layers": [10**30]}, "but no array in the checkpoint beside it is longer than 13"),
        ({"hidden_layers": [9]}, "was expected."),
        ({"hidden_layers": [8, 8]}, "expected."),
        (
            {"num_networks": 10**12},
            "must say num_networks 1 or, as kuhn_poker has seats, 2, but says 1000000000000.",
        ),
        ({"num_networks": 2}, "expected."),
        ({"critic": "yes"}, "about.json is damaged."),
        ({"more": 1}, "about.json is damaged."),
        ({"game": "leduc_poker"}, "was expected."),
    ],
)
def test_descriptions_that_make_no_sense(tmp_path, change, sentence):
    keep_network(tmp_path)
    path = tmp_path / "about.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=r"^[^\n]*$") as error:
        saved.load(tmp_path)
    assert sentence in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"game": "kuhn_poker"}'])
def test_descriptions_that_are_none(tmp_path, table, text):
    keep(tmp_path, "kuhn_poker", table)
    (tmp_path / "about.json").write_text(text)
    with pytest.raises(ValueError, match=r"about.json is damaged.$"):
        saved.load(tmp_path)


def test_a_table_of_another_game(tmp_path, table):
    keep(tmp_path, "leduc_poker", table)
    with pytest.raises(ValueError, match=r"table must have the shape \(936, 3\), but has \(12, 2\)"):
        saved.openspiel_policy(saved.load(tmp_path))
