"""The script, called in-process on what needs no workers."""

import json

import pytest
from absl.testing import flagsaver

from pohp_neurd.experiment import executor, grid, sweep


def here(todo, runs):
    for setting in todo:
        yield setting, grid.attempt(setting.script, setting.flags, runs / setting.id)


@pytest.fixture
def call(script, tmp_path, monkeypatch):
    build = executor.build

    def in_this_process(*arguments, **given):
        build(*arguments, **given)
        return here

    monkeypatch.setattr(executor, "build", in_this_process)

    def run(**given):
        with flagsaver.flagsaver(**{"output_dir": str(tmp_path / "sweep"), **given}):
            with pytest.raises(SystemExit) as caught:
                script.main([])
            return caught.value.code

    return run


GRID = {"script": "bandit", "sweep": ["horizon=20", "seeds=2", "seed=0,1"]}


@pytest.mark.thorough
def test_it_ends_with_one_line_of_json(call, tmp_path, capsys):
    assert call(**GRID) == 0
    opening, last = capsys.readouterr().out.splitlines()
    assert opening.startswith("Running 2 settings in ")
    assert json.loads(last) == {
        "settings": 2,
        "done": 2,
        "failed": 0,
        "results": str(tmp_path / "sweep" / "results.csv"),
    }


def test_the_next_command_summarises_what_was_swept(script):
    settings = [{"game": "kuhn_poker", "exploration": eta, "seed": seed} for eta in (0, 1) for seed in (0, 1)]
    figures = {"nash_conv": 0.2, "nash_conv_average": None}
    finished = [sweep.Finished(str(k), flags, figures, "") for k, flags in enumerate(settings)]
    wanted = " Next: `pohp-neurd summarise --input=DIR/results.csv --by=exploration --value=nash_conv`."
    assert script.next_command(finished, "DIR/results.csv") == wanted
    assert "--by=game " in script.next_command(finished[:2], "DIR/results.csv")
    assert script.next_command([finished[0]._replace(figures=None)], "DIR/results.csv") == ""


def test_a_failure_is_told_of_and_is_the_exit_code(call, capsys, monkeypatch):
    def broken(config, path, resume, given):
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setitem(grid.JOBS, "bandit", grid.JOBS["bandit"]._replace(run=broken))
    assert call(**GRID) == 1
    told = capsys.readouterr()
    assert json.loads(told.out.splitlines()[-1])["failed"] == 2
    assert told.err.count("Failed: ") == 2
    assert "Input/output error" in told.err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "script must be given: one of train_game"),
        ({"script": "train_game"}, "there is nothing to sweep"),
        ({"script": "train_game", "sweep": ["seeds=1"]}, "train_game has no flag 'seeds'"),
        ({"script": "train_game", "sweep": ["exploration=7"]}, "exploration must lie in [0, 1], but is 7"),
        ({"grid": "nowhere.json"}, "there is no file nowhere.json"),
        ({"grid": "x.json", "script": "train_game"}, "grid says what is swept"),
        ({**GRID, "executor": "pbs"}, "executor must be one of local, ray, but is 'pbs'"),
    ],
)
def test_bad_flags(call, given, sentence, tmp_path, capsys):
    assert call(**given) == 2
    told = capsys.readouterr().err
    assert told.startswith(sentence)
    assert told.count("\n") == 1
    assert not (tmp_path / "sweep").exists()
