"""How a game is played: compiled, live, alone, or without an average; and what a run says of it at once."""

import numpy as np
import pytest

from pohp_neurd import openspiel
from pohp_neurd.experiment import game, game_config
from pohp_neurd.openspiel import saved

SMALL = {"hidden_layers": (8,), "episodes": 64, "batch_size": 32, "eval_every": 32}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("chess", marks=pytest.mark.slow),
        pytest.param("crazyhouse", marks=pytest.mark.slow),
        pytest.param("bridge", marks=pytest.mark.thorough),
    ],
)
def test_a_game_too_large_for_arrays_is_played_live_and_lines_say_so(name, capsys):
    config, task = game.build(game_config.Config(game=name, policy="neural", **SMALL))
    assert config.play == "live"
    told = capsys.readouterr().err.splitlines()
    assert any(line.startswith(f"{name} has far more than 2,000,000 histories") for line in told)
    assert task.opening == f"{name} is played live."
    with pytest.raises(ValueError, match="Live play takes policy=neural and update=sampled"):
        game.build(game_config.Config(game=name))


def test_a_small_game_is_a_tree(capsys):
    config, task = game.build(game_config.Config(game="kuhn_poker", policy="neural", **SMALL))
    assert config.play == "compiled"
    assert task.opening == "kuhn_poker as a tree: 58 histories, 12 information states."
    assert capsys.readouterr().err == ""


@pytest.mark.thorough
def test_what_only_a_walk_can_tell_is_walked_after_a_line(capsys):
    config = game_config.Config(game="cliff_walking", policy="neural", max_histories=20_000, **SMALL)
    assert game.build(config)[0].play == "live"
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(
        "cliff_walking may have more than 20,000 histories: they are walked, up to that many"
    )
    assert second.startswith("cliff_walking has more than 20,000 histories (stopped after 20,000)")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "catch",
        pytest.param("blackjack", marks=pytest.mark.slow),
        pytest.param("cliff_walking(horizon=20)", marks=pytest.mark.slow),
    ],
)
def test_alone_a_live_run_reports_its_own_returns(name, tmp_path):
    config = game_config.Config(game=name, policy="neural", play="live", **SMALL)
    figures = game.run(config, tmp_path / "run")
    assert np.isfinite(figures["mean_return"])
    assert figures["half_width"] >= 0
    assert "return_against_uniform" not in figures
    assert (tmp_path / "run" / "curve.png").is_file()


NO_RECALL = "ignore:.*no information-state strings"


@pytest.mark.filterwarnings(NO_RECALL)
@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("deep_sea(size=3)", "tabular"),
        pytest.param("coop_to_1p(game=tiny_hanabi())", "tabular", marks=pytest.mark.thorough),
        pytest.param("deep_sea(size=3)", "neural", marks=pytest.mark.thorough),
    ],
)
def test_without_perfect_recall_there_is_no_average_of_tables(name, policy, tmp_path, capfd):
    config = game_config.Config(game=name, policy=policy, **SMALL)
    figures = game.run(config, tmp_path / "run")
    told = [line for line in capfd.readouterr().err.splitlines() if "no perfect recall" in line]
    kept = saved.load(tmp_path / "run")
    assert figures["nash_conv"] >= 0
    assert (tmp_path / "run" / "curve.png").is_file()
    if policy == "neural":  # an average of parameters remembers nothing anyway
        assert figures["nash_conv_average"] >= 0
        assert told == []
    else:
        assert figures["nash_conv_average"] is None
        assert len(told) == 1
        assert told[0].endswith("this run has none, and saves its current policy in the average's place.")
        np.testing.assert_array_equal(kept.average, kept.current)
    with pytest.raises(ValueError, match="has no perfect recall, which update=expected needs"):
        game.build(game_config.Config(game=name, policy=policy, update="expected"))


@pytest.mark.slow
@pytest.mark.filterwarnings(NO_RECALL)
def test_deep_sea_is_learnt_without_an_average(tmp_path):
    """The gap to the best plan, of 3 · 0.01 to swim and 0.99 at the end: near none of it is left."""
    config = game_config.Config(game="deep_sea(size=3)", episodes=2**18)
    figures = game.run(config, tmp_path / "run")
    assert figures["nash_conv"] < 0.05


@pytest.mark.thorough
@pytest.mark.parametrize("learner", ["neurd_cix", "rm_plus"])
def test_sampled_runs_and_the_solver_have_the_same_defaults(learner):
    """To the last bit: one seed, one policy."""
    _, task = game.build(game_config.Config(game="kuhn_poker", learner=learner, seed=5))
    state = task.advance(task.begin(), 20)
    (row,) = task.evaluate(state, 20, [])
    solver = openspiel.NeuRDCIXSolver("kuhn_poker", update="sampled", learner=learner, seed=5)
    solver.evaluate_and_update_policy(20)
    assert row["steps"] == solver.decisions
    assert row["nash_conv"] == pytest.approx(solver.nash_conv("current"), abs=1e-12)
    assert row["nash_conv_average"] == pytest.approx(solver.nash_conv("average"), abs=1e-12)
