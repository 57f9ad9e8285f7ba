"""run_scripts/evaluate.py: exact figures on compiled games, sampled ones with intervals elsewhere."""

import json

import numpy as np
import pytest
from absl.testing import flagsaver

from pohp_neurd import exact, openspiel
from pohp_neurd.experiment import game, game_config
from pohp_neurd.openspiel import saved

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    small = {"game": "kuhn_poker", "episodes": 4096, "batch_size": 256}
    found = game.run(game_config.Config(**small), folder / "table")
    network = {**small, "policy": "neural", "hidden_layers": (8,)}
    game.run(game_config.Config(**network), folder / "network")
    return folder, found


def judged(script, capsys, **given):
    with flagsaver.flagsaver(**given):
        script.main([])
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_exact_figures(script, runs, capsys):
    folder, found = runs
    figures = judged(script, capsys, checkpoint=str(folder / "table"), opponent="uniform")
    assert figures["nash_conv"] == pytest.approx(found["nash_conv_average"], abs=1e-6)
    tree = openspiel.compile_game("kuhn_poker")
    table = saved.table(saved.load(folder / "table"), tree)
    by_seat = []
    for seat in (0, 1):
        mixed = np.where((tree.state_player == seat)[:, None], table, exact.uniform(tree))
        by_seat.append(exact.quantities(tree, mixed).history_value[0, seat])
    assert figures["head_to_head"]["by_seat"] == pytest.approx(by_seat, abs=1e-9)


def test_play_and_responders_where_the_game_is_taken_for_too_large(script, runs, capsys):
    folder, _ = runs
    figures = judged(
        script,
        capsys,
        checkpoint=str(folder / "network"),
        opponent=str(folder / "network"),
        max_histories=10,
        episodes=2_000,
        response_updates=2,
        response_seeds=2,
        search_simulations=5,
    )
    assert figures["nash_conv"] is None
    # The same network on both sides, seats rotated: the mean is 0 by symmetry.
    head_to_head = figures["head_to_head"]
    assert not head_to_head["exact"]
    width = head_to_head["high"] - head_to_head["low"]
    assert 0 < width < 0.3
    assert abs(head_to_head["mean"]) < 5 / 1.96 * width / 2
    tree = openspiel.compile_game("kuhn_poker")
    table = saved.table(saved.load(folder / "network"), tree)
    for name in ("nash_conv_lower_bound", "search_lower_bound"):
        bound = figures[name]
        assert bound["low"] < bound["mean"] < bound["high"]
        assert bound["low"] <= exact.nash_conv(tree, table)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"checkpoint": ""}, "checkpoint must be the folder of a run, but is empty."),
        ({"checkpoint": "nowhere"}, "nowhere is not the folder of a run."),
        ({"use": "worst"}, "use must be one of"),
        ({"response_seeds": 2}, "response_seeds=2 needs response_updates above 0."),
        ({"episodes": 1}, "episodes must be at least 100, but is 1."),
    ],
)
def test_bad_flags(script, runs, given, sentence, capsys):
    given = {"checkpoint": str(runs[0] / "table"), **given}
    with flagsaver.flagsaver(**given), pytest.raises(SystemExit) as stop:
        script.main([])
    assert stop.value.code == 2
    assert sentence in capsys.readouterr().err


def test_a_folder_without_a_policy(script, tmp_path, capsys):
    with flagsaver.flagsaver(checkpoint=str(tmp_path)), pytest.raises(SystemExit) as stop:
        script.main([])
    assert stop.value.code == 2
    assert "there is no trained policy in" in capsys.readouterr().err
