"""run_scripts/report.py: a page and one line of JSON, or one sentence."""

import json

import pytest
from absl.testing import flagsaver

from pohp_neurd.experiment import game, game_config


@pytest.mark.thorough
def test_a_page_from_flags(script, tmp_path, capsys):
    run, output = tmp_path / "run", tmp_path / "page.html"
    found = game.run(game_config.Config(game="kuhn_poker", episodes=1024, batch_size=256), run)
    with flagsaver.flagsaver(checkpoint=str(run), output=str(output)):
        script.main([])
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["report"] == str(output)
    assert told["bytes"] == len(output.read_bytes()) < 1_000_000
    assert told["nash_conv"]["run, average"] == pytest.approx(found["nash_conv_average"], abs=1e-9)
    assert output.read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"checkpoint": "nowhere"}, "nowhere is not the folder of a run."),
        ({"against": "nowhere"}, "nowhere is not the folder of a run."),
        ({"output": ""}, "output must be a file, but is ''."),
        ({"max_histories": 0}, "max_histories must be at least 1, but is 0."),
        ({}, "it has no config.json."),
    ],
)
def test_bad_flags(script, given, sentence, tmp_path, capsys):
    given = {"checkpoint": str(tmp_path), "output": str(tmp_path / "page.html"), **given}
    with flagsaver.flagsaver(**given), pytest.raises(SystemExit) as stop:
        script.main([])
    assert stop.value.code == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
