"""The script, called in-process with tiny flags."""

import json
import pathlib

import pytest
from absl.testing import flagsaver

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "run_scripts" / "train_single_agent.py"
TINY = {"num_steps": 80, "interval": 40, "seeds": 1, "width": 8, "checkpoint_every": 1, "cores": 1}


@pytest.fixture
def call(script, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PJRT_NPROC", "1")  # the script sets it: this brings back what it was

    def run(*arguments):
        given = [f"--{name}={value}" for name, value in TINY.items()]
        given.append(f"--output_dir={tmp_path / 'run'}")
        with flagsaver.flagsaver():
            script.main(script.command_line.parse(["script", *given, *arguments]))
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return run


@pytest.mark.slow
def test_it_trains_and_resumes(call, tmp_path):
    figures = call("--environment=cart_pole", "--exploration=0,0.5", "--learner=neurd_cix")
    assert figures["steps"] == 80
    assert [setting["exploration"] for setting in figures["settings"]] == [0.0, 0.5]
    assert (tmp_path / "run" / "curve.png").stat().st_size > 1_000
    assert call("--environment=cart_pole", "--exploration=0,0.5", "--resume") == figures


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--learner=foo"], "learner must be one of spg, neurd, neurd_cix, but is 'foo'."),
        (["--exploration=2"], "exploration must lie in [0, 1], but is 2."),
        (["--learning_rate=fast"], "learning_rate must be numbers with commas between them, but is 'fast'."),
        (["--seeds=many"], "flag --seeds=many: must be a whole number"),
        (["--sseeds=1"], "Unknown command line flag 'sseeds'"),
        (["--horizon=0"], "horizon must be at least 1, but is 0."),
        (["--cores=0"], "cores must be between 1 and"),
        (["--resume"], "there is no run to resume in"),
    ],
)
def test_bad_flags_fail_with_one_sentence_before_any_work(call, tmp_path, capsys, arguments, sentence):
    with pytest.raises(SystemExit) as caught:
        call(*arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith(sentence)
    assert not (tmp_path / "run").exists()
