"""The agent's defaults in every registered game: losses and weights stay small, play gets no worse."""

import importlib.util
import pathlib

import pyspiel
import pytest
from open_spiel.python import games  # noqa: F401  registers the games in Python

BENCHMARK = pathlib.Path(__file__).parents[2] / "benchmarks" / "agent_games.py"


@pytest.fixture(scope="module")
def agent_games():
    specification = importlib.util.spec_from_file_location("agent_games", BENCHMARK)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def stable(row):
    """Losses, weights and play as they should be.

    Returns are scaled to at most 1 and the critic begins at 0: a loss of 2 = ½ (1 + 1)² is one of a critic
    that is wrong by all there is. First weights are normal, of deviation 0.3. Against uniform players, play
    is not worse than theirs by 5 standard errors.
    """
    assert row.updates >= 3
    assert row.loss < 2
    assert row.weights < 3
    assert row.gain >= -5 * row.error, row


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # some of the games in Python warn
@pytest.mark.parametrize("name", sorted(pyspiel.registered_names()))
def test_defaults_are_stable_in_every_game(agent_games, name):
    """500 episodes, or 20,000 decisions where these are fewer, but at least the 96 of three updates."""
    if agent_games.environment(name) is None:
        pytest.skip("needs parameters, or has no tensor, or is a mean field game")
    stable(agent_games.measure(name))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["connect_four", "goofspiel"])
def test_defaults_are_stable_where_they_once_were_not(agent_games, monkeypatch, name):
    """Critic losses of 2e9 and 3e15 after 300 episodes, when steps grew with inputs and with episodes."""
    monkeypatch.setattr(agent_games, "EPISODES", 96)
    monkeypatch.setattr(agent_games, "JUDGED", 500)
    stable(agent_games.measure(name))


def test_the_list_of_games(agent_games):
    """Those that blew up are on it, and those that cannot be played are not."""
    known = [
        "2048",
        "connect_four",
        "goofspiel",
        "hanabi",
        "python_liars_poker",
        "universal_poker",
        "matrix_rps",
    ]
    assert all(agent_games.environment(name) is not None for name in known)
    unplayable = ["repeated_game", "mfg_garnet", "crossword", "tarok"]
    assert all(agent_games.environment(name) is None for name in unplayable)
