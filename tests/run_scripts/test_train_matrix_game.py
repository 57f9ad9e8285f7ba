"""run_scripts/train_matrix_game.py: learns, leaves a run, refuses bad flags."""

import json
import pathlib

import pytest
from absl.testing import flagsaver

from pohp_neurd.experiment import records

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "run_scripts" / "train_matrix_game.py"


@pytest.mark.thorough
def test_a_run_and_its_folder(script, tmp_path, capsys):
    with flagsaver.flagsaver(episodes=64_000, output_dir=str(tmp_path / "run")):
        script.main([])
        figures = json.loads(capsys.readouterr().out.splitlines()[-1])
        rows = records.read_csv(tmp_path / "run" / "metrics.csv")
        assert list(rows[0])[:6] == [
            "updates",
            "episodes",
            "steps",
            "seconds",
            "nash_conv",
            "nash_conv_average",
        ]
        assert len(rows) == 20
        assert figures["episodes"] == 64_000 == int(rows[-1]["episodes"])
        assert figures["nash_conv_average"] == pytest.approx(float(rows[-1]["nash_conv_average"]))
        # Uniform play has NashConv 2/3: 64,000 episodes bring the average policy far below.
        assert figures["nash_conv_average"] < 0.15
        assert (tmp_path / "run" / "curve.png").stat().st_size > 1000
        with pytest.raises(SystemExit) as stop:
            script.main([])
        assert stop.value.code == 2
        assert "already holds a run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"exploration": 1.5}, "exploration must lie in [0, 1], but is 1.5."),
        ({"step_size": -1.0}, "step_size must be a finite number of at least 0, but is -1."),
        ({"batch_size": 0}, "batch_size must be at least 1, but is 0."),
        ({"episodes": 10}, "episodes must be at least 20 batches of 64, but is 10."),
        ({"magnet_speed": 2.0}, "magnet_speed must lie in [0, 1], but is 2."),
    ],
)
def test_bad_flags(script, given, sentence, tmp_path, capsys):
    with flagsaver.flagsaver(output_dir=str(tmp_path / "run"), **given), pytest.raises(SystemExit) as stop:
        script.main([])
    assert stop.value.code == 2
    assert capsys.readouterr().err.strip() == sentence
    assert not (tmp_path / "run").exists()


@pytest.mark.thorough
def test_divergence_ends_with_a_sentence_and_exit_code_1(script, tmp_path, capsys):
    flags = {"episodes": 6_400, "step_size": 1e38, "output_dir": str(tmp_path / "run")}
    with flagsaver.flagsaver(**flags), pytest.raises(SystemExit) as stop:
        script.main([])
    assert stop.value.code == 1
    assert "Training diverged: a logit was not finite after" in capsys.readouterr().err
