"""run_scripts/train_game.py: a run from flags, help by topic, and one sentence for what is wrong."""

import json
import pathlib
import subprocess
import sys

import permissions
import pytest
from absl.testing import flagsaver

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "run_scripts" / "train_game.py"


@pytest.mark.thorough
def test_a_run_ends_with_json(script, tmp_path, capsys):
    folder = tmp_path / "run"
    with flagsaver.flagsaver(game="kuhn_poker", episodes=2048, batch_size=256, output_dir=str(folder)):
        script.main([])
        *_, told, last = capsys.readouterr().out.splitlines()
        figures = json.loads(last)
        assert {"nash_conv", "nash_conv_average", "episodes", "seconds"} <= set(figures)
        assert figures["episodes"] == 2048
        assert told == f"NashConv over time: {folder / 'curve.png'}"
        with pytest.raises(SystemExit) as stop:
            script.main([])
    assert stop.value.code == 2
    assert "already holds a run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"game": "leduc_pokr"}, "leduc_poker"),
        ({"exploration": 1.5}, "exploration must lie in [0, 1], but is 1.5."),
        ({"batch_size": 0}, "batch_size must be at least 1, but is 0."),
        ({"hidden_layers": ["wide"]}, "hidden_layers must be whole numbers with commas"),
        ({"resume": True}, "there is no run to resume"),
        ({"output_dir": "/proc/nowhere/run"}, "cannot be written"),
        (
            {"game": "phantom_ttt", "max_histories": 1000, "max_nodes": 1000},
            "Live play takes policy=neural",
        ),
    ],
)
def test_bad_flags(script, given, sentence, tmp_path, capfd):
    given = {"output_dir": str(tmp_path / "run"), **given}
    with flagsaver.flagsaver(**given), pytest.raises(SystemExit) as stop:
        script.main([])
    assert stop.value.code == 2
    error = capfd.readouterr().err.strip()
    assert sentence in error.splitlines()[-1]
    assert "Traceback" not in error
    assert not (tmp_path / "run").exists()


@pytest.mark.thorough
def test_a_folder_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(0o500)
    command = permissions.without_privilege([sys.executable, str(SCRIPT), f"--output_dir={tmp_path / 'run'}"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert "cannot be written" in sentence


@pytest.mark.thorough
def test_from_the_shell():
    """Help by topic with defaults, and an unknown flag, each in a process of its own."""

    def call(*flags):
        return subprocess.run(
            [sys.executable, str(SCRIPT), *flags], capture_output=True, text=True, check=False
        )

    told = call("--help")
    assert told.returncode == 0
    for part in (
        "What is trained:",
        "--exploration",
        "Default: leduc_poker.",
        "Regularisation and averages:",
    ):
        assert part in told.stdout
    wrong = call("--explorations=1")
    assert wrong.returncode == 2
    assert "Unknown command line flag 'explorations'" in wrong.stderr
    assert "Traceback" not in wrong.stderr
