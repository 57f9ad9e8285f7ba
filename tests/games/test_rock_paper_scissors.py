"""Biased rock-paper-scissors as an OpenSpiel game: its payoffs, and what train_game.py makes of it."""

import loaded_scripts
import numpy as np
import pyspiel
import pytest
from absl.testing import flagsaver
from pohp_neurd.games import matrix_game

from pohp_neurd import exact, openspiel
from pohp_neurd.openspiel import saved

NAME = "python_pohp_biased_rock_paper_scissors"


def test_its_payoffs_are_those_of_the_matrix():
    openspiel.load_game(NAME)  # registers it
    game = pyspiel.load_game(NAME)
    np.testing.assert_array_equal(game.row_utilities(), matrix_game.BIASED_ROCK_PAPER_SCISSORS)
    np.testing.assert_array_equal(game.col_utilities(), -matrix_game.BIASED_ROCK_PAPER_SCISSORS)
    assert [game.row_action_name(action) for action in range(3)] == ["rock", "paper", "scissors"]


def test_it_compiles_to_the_tree_of_the_matrix():
    compiled = openspiel.compile_game(NAME)
    tree = matrix_game.zero_sum(matrix_game.BIASED_ROCK_PAPER_SCISSORS)
    for seed in range(5):
        policy = np.random.default_rng(seed).dirichlet(np.ones(3), 2)
        assert exact.nash_conv(compiled, policy) == pytest.approx(exact.nash_conv(tree, policy), abs=1e-12)


@pytest.mark.thorough
def test_expected_updates_find_its_equilibrium(tmp_path):
    flags = {"game": NAME, "update": "expected", "iterations": 3_000, "output_dir": str(tmp_path / "run")}
    with loaded_scripts.loaded("train_game") as script, flagsaver.flagsaver(**flags):
        script.main([])
    trained = saved.table(saved.load(tmp_path / "run"), openspiel.compile_game(NAME))
    equilibrium = matrix_game.rock_paper_scissors_equilibrium(matrix_game.BIASED_ROCK_PAPER_SCISSORS)
    np.testing.assert_allclose(trained, [equilibrium] * 2, atol=0.01)
