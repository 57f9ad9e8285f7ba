"""A run's folder is not overwritten unasked, and goes on only under its own configuration."""

import json
import os

import pytest

from pohp_neurd import files
from pohp_neurd.results import records

CONFIG = {"rate": 0.1, "sizes": (1, 2), "name": None}


def begun(*arguments, **given):
    """The folder of a run that was begun, and is not at work any more."""
    with records.opened(*arguments, **given) as folder:
        return folder


def test_a_new_folder_gets_its_configuration(tmp_path):
    folder = begun(tmp_path / "a" / "b", CONFIG)
    assert json.loads(folder.config.read_text()) == {"rate": 0.1, "sizes": [1, 2], "name": None}
    assert {path.name for path in folder.path.iterdir()} == {"config.json"}


def test_an_empty_folder_will_do(tmp_path):
    assert begun(tmp_path, CONFIG).config.is_file()


def test_a_run_is_not_overwritten_unasked(tmp_path):
    begun(tmp_path, CONFIG)
    with pytest.raises(
        ValueError, match="already holds a run: choose another folder, or resume or overwrite"
    ):
        begun(tmp_path, CONFIG)


def test_overwriting_throws_the_run_away_and_nothing_else(tmp_path):
    folder = begun(tmp_path, CONFIG)
    folder.metrics.write_text("old")
    folder.checkpoints.mkdir()
    (folder.checkpoints / "step").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    begun(tmp_path, {"rate": 0.2}, overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "notes.txt"}
    assert json.loads(folder.config.read_text()) == {"rate": 0.2}


@pytest.mark.parametrize("overwrite", [False, True])
def test_other_peoples_files_are_never_touched(tmp_path, overwrite):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="holds files that are not a run's: choose another folder"):
        begun(tmp_path, CONFIG, overwrite=overwrite)
    assert {path.name for path in tmp_path.iterdir()} == {"thesis.tex"}


def test_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file, but a run needs a folder"):
        begun(tmp_path / "file", CONFIG)


def test_a_run_goes_on_under_its_own_configuration(tmp_path):
    before = begun(tmp_path, CONFIG)
    assert begun(tmp_path, CONFIG, resume=True).path == before.path
    with pytest.raises(
        ValueError, match=r"cannot resume .*: rate was 0\.1 and is now 0\.2; more was absent and is now 1\."
    ):
        begun(tmp_path, {**CONFIG, "rate": 0.2, "more": 1}, resume=True)


def test_there_must_be_a_run_to_resume(tmp_path):
    with pytest.raises(ValueError, match="there is no run to resume in"):
        begun(tmp_path / "nowhere", CONFIG, resume=True)
    with pytest.raises(ValueError, match="resumed or overwritten, but not both"):
        begun(tmp_path, CONFIG, resume=True, overwrite=True)


def test_a_folder_is_one_runs_at_a_time_and_the_lock_goes_with_it(tmp_path):
    with records.opened(tmp_path, CONFIG):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
        for how in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(ValueError, match=rf"another run is at work in .* \(process {os.getpid()}\)"):
                begun(tmp_path, CONFIG, **how)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json"}
    with pytest.raises(ZeroDivisionError), records.opened(tmp_path, CONFIG, resume=True):
        raise ZeroDivisionError
    begun(tmp_path, CONFIG, overwrite=True)


def test_a_lock_that_was_left_behind_locks_nothing(tmp_path):
    (tmp_path / "lock").write_text("1\n")
    begun(tmp_path, CONFIG)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json"}


def test_a_lock_whose_file_is_replaced_under_it_does_not_count(tmp_path, monkeypatch):
    """Who waits for a file that its holder removes must not believe to hold the next one."""
    taken = files._opened

    def replaced(path):
        lock = taken(path)
        monkeypatch.setattr(files, "_opened", taken)
        path.unlink()
        return lock

    monkeypatch.setattr(files, "_opened", replaced)
    with files.locked(tmp_path, what="run"):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
        with pytest.raises(ValueError, match="another run is at work"), files.locked(tmp_path, what="run"):
            pass


def test_the_digest_tells_configurations_apart(tmp_path):
    one, same, other = (
        begun(tmp_path / name, config)
        for name, config in (
            ("a", CONFIG),
            ("b", dict(reversed(CONFIG.items()))),
            ("c", {**CONFIG, "rate": 0.2}),
        )
    )
    assert one.digest == same.digest != other.digest
