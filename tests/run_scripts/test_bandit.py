"""run_scripts/bandit.py: flags in, a table and one line of JSON out, clear refusals."""

import json
import pathlib
import subprocess
import sys

import pytest
from absl.testing import flagsaver

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "run_scripts" / "bandit.py"


def test_it_prints_a_table_and_one_line_of_json(script, tmp_path, capsys):
    with flagsaver.flagsaver(
        problem="adaptive", horizon=20, seeds=4, estimator=["cix"], output_dir=str(tmp_path / "run")
    ):
        script.main([])
    _, *lines, last = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["estimator", "median", "95%", "worst"]
    assert lines[1].startswith("cix")
    figures = json.loads(last)
    assert figures["problem"] == "adaptive"
    assert figures["cix"]["violations"] == 0
    assert (tmp_path / "run" / "metrics.csv").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta": 2.0}, "delta must lie strictly between 0 and 1, but is 2."),
        ({"estimator": ["icx"]}, "estimator must be one of importance, ix, cix, but is 'icx'."),
        ({"xi": 1.0, "exploration": 0.1}, "exclude each other"),
    ],
)
def test_wrong_flags_end_with_one_sentence_and_code_2(script, given, message, tmp_path, capsys):
    with flagsaver.flagsaver(output_dir=str(tmp_path / "run"), **given), pytest.raises(SystemExit) as exit_:
        script.main([])
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.thorough
def test_help_helps():
    shown = subprocess.run([sys.executable, SCRIPT, "--help"], capture_output=True, text=True, check=False)
    for flag in (
        "--problem",
        "--learner",
        "--estimator",
        "--xi",
        "--delta",
        "--horizon",
        "--seeds",
        "--output_dir",
    ):
        assert flag in shown.stdout
