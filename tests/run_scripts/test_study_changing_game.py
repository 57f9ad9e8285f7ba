"""run_scripts/study_changing_game.py: flags become the config, bad ones one sentence."""

import pathlib
import subprocess
import sys

import permissions
import pytest
from absl import flags

from pohp_neurd.experiment import changing_game_study, schema

pytestmark = pytest.mark.thorough

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "run_scripts" / "study_changing_game.py"


def test_flags_become_the_config(script, monkeypatch, capsys, tmp_path):
    seen = []
    row = {
        "reading": "bandit",
        "world": "still",
        "magnet_strength": 0.0,
        "baseline": "none",
        "learner": "neurd_cix",
        "schedule": "decreasing",
        "exploration": 0.3,
        "step_size": 1.0,
        "merit": "tracking",
        "mean": 0.25,
        "mean_low": 0.125,
        "mean_high": 0.5,
    }

    def run(config, folder, name):
        seen.append((config, folder, name))
        return [row, row | {"merit": "settling"}]

    monkeypatch.setattr(changing_game_study, "run", run)
    flags.FLAGS(["", "--jump_every=40", "--bias=3", f"--output_dir={tmp_path}", "--name=fast"])
    script.main([])
    config = changing_game_study.Config(jump_every=40, bias=3.0)
    assert seen == [(config, str(tmp_path), "fast")]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert "NeuRD-CIX(0.3) decreasing" in lines[0]
    assert lines[0].endswith("0.250 [0.125, 0.500]")


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--jump_every=30", "jump_every must be a multiple of 20"),
        ("--name=a/b", "name must be a plain file name, but is 'a/b'."),
        ("--pace=3", "Unknown command line flag"),
    ],
)
def test_a_wrong_flag_ends_with_one_sentence_and_code_2(flag, sentence, tmp_path):
    command = [sys.executable, str(SCRIPT), flag, f"--output_dir={tmp_path / 'study'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "study").exists()


def test_a_folder_that_may_not_be_written_to_is_told_before_the_study(tmp_path):
    (tmp_path / "study").mkdir(mode=0o555)
    command = [sys.executable, str(SCRIPT), f"--output_dir={tmp_path / 'study'}"]
    done = subprocess.run(permissions.without_privilege(command), capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr == f"{tmp_path / 'study'} must be a folder that may be written to, but is not.\n"


def test_help_names_every_flag(script):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--help"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0
    for flag in schema.flags(script.changing_game_config.Config):
        assert f"--{flag.name}" in done.stdout
    assert "--output_dir" in done.stdout
