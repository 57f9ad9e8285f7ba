"""What evaluate.py finds out, and what it says of what it cannot."""

import numpy as np
import pytest

from pohp_neurd.experiment import evaluation
from pohp_neurd.openspiel import saved


@pytest.fixture
def folder(tmp_path):
    def keep(game, table):
        saved.save(tmp_path, 1, saved.Saved(saved.About(game, "tabular"), table, table))
        return str(tmp_path)

    return keep


def test_a_game_above_the_limit_is_told_of(folder, capsys):
    path = folder("leduc_poker", np.tile([0.0, 0.5, 0.5], (936, 1)))
    figures = evaluation.evaluate(evaluation.Config(path, max_histories=1_000))
    assert figures == {"game": "leduc_poker", "use": "average", "nash_conv": None}
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence == (
        "NashConv is not computed, as leduc_poker has more than 1,000 histories (stopped after 1,000): "
        "--response_updates=200 gives a lower bound on it, --opponent=uniform a head-to-head result."
    )


def test_a_game_within_the_limit_is_judged_without_a_word_on_stderr(folder, capsys):
    figures = evaluation.evaluate(evaluation.Config(folder("kuhn_poker", np.full((12, 2), 0.5))))
    assert figures["nash_conv"] == pytest.approx(11 / 12)
    assert capsys.readouterr().err == ""


def test_a_game_that_is_none_is_refused(folder):
    path = folder("no_such_game", np.full((12, 2), 0.5))
    with pytest.raises(
        ValueError, match="names a game that cannot be played: OpenSpiel knows no game 'no_such_game'"
    ):
        evaluation.evaluate(evaluation.Config(path))


def test_alone_there_is_no_opponent(folder):
    game = "python_pohp_catch(rows=3,columns=2,horizon=2)"
    path = folder(game, np.full((8, 3), 1 / 3))
    assert evaluation.evaluate(evaluation.Config(path))["returns"] == pytest.approx([-0.5])
    with pytest.raises(ValueError, match="has one seat: there is none for opponent=uniform"):
        evaluation.evaluate(evaluation.Config(path, opponent="uniform"))


@pytest.mark.thorough
def test_alone_and_above_the_limit_returns_are_sampled(folder, capsys):
    """Uniform play of catch with two columns misses half of the balls: 400 episodes, 5 standard errors."""
    path = folder("python_pohp_catch(rows=3,columns=2,horizon=2)", np.full((8, 3), 1 / 3))
    found = evaluation.evaluate(evaluation.Config(path, max_histories=5, episodes=400))["mean_return"]
    assert abs(found["mean"] + 0.5) < 5 * 0.5 / np.sqrt(400)
    assert capsys.readouterr().err.startswith("NashConv is not computed")
