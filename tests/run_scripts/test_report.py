"""run_scripts/report.py: a page and one line of JSON."""

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
