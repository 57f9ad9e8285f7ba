"""Sweeps in this process: tables, what is finished and what failed, and whose folder it is."""

import fcntl
import json
import os

import pytest

from pohp_neurd.experiment import executor, grid, sweep
from pohp_neurd.results import records

TINY = ["width=4", "num_steps=60", "interval=20", "checkpoint_every=1"]


def settings(*texts):
    return grid.settings([grid.parse("train_single_agent", [*TINY, *texts])])


class Here:
    """Runs settings in this process, and remembers which."""

    def __init__(self):
        self.ran = []

    def __call__(self, todo, runs):
        for setting in todo:
            self.ran.append(setting.id)
            yield setting, grid.attempt(setting.script, setting.flags, runs / setting.id)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps") / "one"
    chosen = settings("exploration=1,0.1", "seed=10,9")
    return folder, chosen, sweep.run(chosen, folder, Here())


def test_the_tables_of_a_sweep(swept):
    folder, chosen, finished = swept
    assert [each.id for each in finished] == [setting.id for setting in chosen]
    rows = records.read_csv(folder / "results.csv")
    # In the order of the flags, numbers as numbers, whatever the order of running.
    assert [(row["exploration"], row["seed"]) for row in rows] == [
        ("0.1", "9"),
        ("0.1", "10"),
        ("1.0", "9"),
        ("1.0", "10"),
    ]
    curves = records.read_csv(folder / "curves.csv")
    assert len(curves) == 4 * 3
    assert "seconds" not in {*rows[0], *curves[0]}
    for row in rows:
        last = [each for each in curves if each["id"] == row["id"]][-1]
        assert float(last["total_reward"]) == float(row["total_reward"])
        assert (last["steps"], last["exploration"], last["seed"]) == ("60", row["exploration"], row["seed"])
    assert sweep.report(finished, folder) == {
        "settings": 4,
        "done": 4,
        "failed": 0,
        "results": str(folder / "results.csv"),
    }
    assert not (folder / "failures.csv").exists()


def test_a_run_of_a_sweep_is_the_run_of_the_script(swept, tmp_path):
    folder, chosen, _ = swept
    alone = grid.attempt("train_single_agent", chosen[0].flags, tmp_path / "alone")
    (row,) = (r for r in records.read_csv(folder / "results.csv") if r["id"] == chosen[0].id)
    assert alone.figures == {name: float(row[name]) for name in alone.figures}
    assert {path.name for path in (folder / "runs" / chosen[0].id).iterdir()} == {
        "config.json",
        "metrics.csv",
        "curve.png",
    }


def test_what_is_finished_is_never_run_again_and_a_grid_may_grow(swept, tmp_path):
    _, chosen, _ = swept
    folder, here = tmp_path / "sweep", Here()
    sweep.run(chosen[:2], folder, here)
    before = (folder / "results.csv").read_bytes()
    sweep.run(chosen[:2], folder, here)
    assert here.ran == [setting.id for setting in chosen[:2]]
    assert (folder / "results.csv").read_bytes() == before
    sweep.run(chosen[1:], folder, here)
    assert here.ran == [setting.id for setting in chosen]
    assert (folder / "results.csv").read_bytes() == (swept[0] / "results.csv").read_bytes()
    assert (folder / "curves.csv").read_bytes() == (swept[0] / "curves.csv").read_bytes()


def test_what_another_sweep_has_finished_is_taken_over(swept, tmp_path):
    first, chosen, finished = swept
    folder, here = tmp_path / "sweep", Here()
    more = settings("exploration=1,0.1", "seed=11")
    known = [first / "results.csv"]
    found = sweep.run([*chosen[:3], *more], folder, here, known_from=known)
    assert here.ran == [setting.id for setting in more]
    assert found[:3] == finished[:3]
    assert len(records.read_csv(folder / "curves.csv")) == 2 * 3  # of what was run here
    again = sweep.run(chosen, folder, here, known_from=known)
    assert len(here.ran) == 2
    assert again == finished
    rows = records.read_csv(folder / "results.csv")
    assert [row for row in rows if row["seed"] != "11"] == records.read_csv(first / "results.csv")


def test_a_table_without_ids_is_refused(tmp_path):
    (tmp_path / "other.csv").write_text("seed,total_reward\n0,1\n")
    with pytest.raises(
        ValueError, match=r"other\.csv has no column id: it is not the results\.csv of a sweep"
    ):
        sweep.run(settings("seed=0"), tmp_path / "sweep", Here(), known_from=[tmp_path / "other.csv"])
    assert not (tmp_path / "sweep").exists()
    with pytest.raises(ValueError, match="there is no file"):
        sweep.run(settings("seed=0"), tmp_path / "sweep", Here(), known_from=[tmp_path / "none.csv"])


def test_a_failure_is_recorded_and_stops_nothing(swept, tmp_path):
    folder, here = tmp_path / "sweep", Here()
    wild = settings("learning_rate=1e30,0.001", "seed=0")
    finished = sweep.run(wild, folder, here)
    assert [each.figures is None for each in finished] == [True, False]
    assert "Training diverged: a value of seed 0 at learning rate 1e+30" in finished[0].sentence
    assert "checkpoint" not in finished[0].sentence  # the folder of a sweep keeps none
    (failed,) = records.read_csv(folder / "failures.csv")
    assert failed["id"] == wild[0].id
    assert failed["sentence"] == finished[0].sentence
    assert len(records.read_csv(folder / "results.csv")) == 1
    (line,) = sweep.failures(finished)
    assert line.startswith(wild[0].id)
    # Left as it is when the sweep goes on, unless asked for.
    assert sweep.run(wild, folder, here)[0].sentence == finished[0].sentence
    assert len(here.ran) == 2
    sweep.run(wild, folder, here, retry_failed=True)
    assert here.ran[2:] == [wild[0].id]


def test_a_failed_setting_that_is_retried_begins_anew(swept, tmp_path):
    (chosen,) = settings("seed=0")
    folder = tmp_path / "sweep"
    (folder / "runs" / chosen.id).mkdir(parents=True)
    (folder / "runs" / chosen.id / "config.json").write_text("{}")  # of another version
    (found,) = sweep.run([chosen], folder, Here())
    assert found.figures is None
    (found,) = sweep.run([chosen], folder, Here(), retry_failed=True)
    assert found.figures is not None
    assert not (folder / "failures.csv").exists()


def test_lists_among_flags_leave_no_trace_of_a_new_start(tmp_path):
    texts = ["horizon=20", "seeds=2", "estimators=ix+cix,cix", "seed=0,1"]
    chosen = grid.settings([grid.parse("bandit", texts)])
    sweep.run(chosen, tmp_path / "whole", Here())
    for some in (chosen[1:3], chosen, chosen):
        sweep.run(some, tmp_path / "pieces", Here())
    for name in ("results.csv", "curves.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "pieces" / name).read_bytes()
    rows = records.read_csv(tmp_path / "whole" / "results.csv")
    assert [row["estimators"] for row in rows] == ["cix", "cix", "ix+cix", "ix+cix"]


def test_a_record_that_cannot_be_written_stops_nothing(swept, tmp_path, capsys):
    _, chosen, _ = swept
    folder = tmp_path / "sweep"
    (folder / "curves.csv").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"no up-to-date curves.csv: the same command again"):
        sweep.run(chosen[:2], folder, Here())
    assert "Could not be recorded: Is a directory" in capsys.readouterr().err
    assert len(records.read_csv(folder / "results.csv")) == 2
    (folder / "curves.csv").rmdir()
    here = Here()
    sweep.run(chosen[:2], folder, here)
    assert here.ran == []
    assert len(records.read_csv(folder / "curves.csv")) == 2 * 3


def test_ctrl_c_leaves_tables_of_what_is_finished(swept, tmp_path):
    def interrupted(todo, runs):
        yield from Here()(todo[:1], runs)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep.run(swept[1], tmp_path / "sweep", interrupted)
    (row,) = records.read_csv(tmp_path / "sweep" / "results.csv")
    assert row["id"] == swept[1][0].id


def test_files_that_no_sweep_wrote(swept, tmp_path):
    (tmp_path / "outcomes").mkdir()
    (tmp_path / "outcomes" / "x.json").write_text("{}")
    with pytest.raises(ValueError, match=r"x\.json is not what a sweep writes"):
        sweep.read(tmp_path)
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(ValueError, match=r"sweep\.json is not what a sweep writes"):
        sweep.run(swept[1], tmp_path, Here())
    with pytest.raises(ValueError, match="output_dir must name a folder"):
        sweep.run(swept[1], "", Here())


def test_an_unforeseen_error_is_a_failure_with_its_place(swept, tmp_path, monkeypatch):
    def broken(config, path, resume, given):
        raise ZeroDivisionError("by zero")

    monkeypatch.setitem(grid.JOBS, "train_single_agent", grid.JOBS["train_single_agent"]._replace(run=broken))
    (found,) = sweep.run(swept[1][:1], tmp_path / "sweep", Here())
    assert "ZeroDivisionError: by zero" in found.sentence
    assert "test_sweep.py" in found.sentence


def test_a_folder_that_was_killed_before_it_was_a_run_is_begun_anew(swept, tmp_path):
    place = tmp_path / "sweep" / "runs" / swept[1][0].id
    place.mkdir(parents=True)
    (place / ".config.json.1.partial").write_text("{")
    (found,) = sweep.run(swept[1][:1], tmp_path / "sweep", Here())
    assert found.figures is not None


def test_a_second_sweep_in_the_same_folder_says_so_and_stops(swept):
    folder, chosen, _ = swept
    before = (folder / "results.csv").read_bytes()
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.write("4711\n")
        lock.flush()
        with pytest.raises(ValueError, match=r"another sweep is at work in .* \(process 4711"):
            sweep.run(chosen, folder, Here())
    assert (folder / "results.csv").read_bytes() == before
    sweep.run(chosen, folder, Here())  # and the lock is gone with who held it


def test_a_folder_is_of_one_script(swept):
    other = grid.settings([grid.parse("bandit", ["seed=0"])])
    with pytest.raises(ValueError, match="holds a sweep of train_single_agent, but this one is of bandit"):
        sweep.run(other, swept[0], Here())


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be written: Not a directory"):
        sweep.run(settings("seed=0"), tmp_path / "file" / "sweep", Here())


@pytest.mark.thorough
def test_every_script_can_be_swept(tmp_path):
    for script, texts in {
        "bandit": ["horizon=20", "seeds=10", "problem=bernoulli", "seed=0"],
        "train_game": ["game=kuhn_poker", "episodes=64", "batch_size=32", "seed=0"],
    }.items():
        chosen = grid.settings([grid.parse(script, texts)])
        here = Here()
        (found,) = sweep.run(chosen, tmp_path / script, here)
        assert found.figures, found.sentence
        assert all(isinstance(value, int | float | None) for value in found.figures.values())
        # And once more over what it left.
        outcome = grid.attempt(script, chosen[0].flags, tmp_path / script / "runs" / chosen[0].id)
        assert outcome.figures == found.figures
        json.dumps(found.figures)
    # What a flag and a column of metrics have in common is the column's.
    counts = [row["episodes"] for row in records.read_csv(tmp_path / "train_game" / "curves.csv")]
    assert counts == ["32", "64"]
    (row,) = records.read_csv(tmp_path / "train_game" / "results.csv")
    assert (row["episodes"], row["final_episodes"]) == ("64", "64")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"name": "slurm"}, "executor must be one of local, ray, but is 'slurm'"),
        ({"name": "local", "address": "auto"}, "address is of a Ray cluster: it needs executor=ray"),
        ({"name": "local", "cores": 10_000}, "cores must be between 1 and"),
        ({"name": "ray", "cores": 2, "address": "auto"}, "address excludes them"),
        ({"name": "ray", "cores": 0}, "cores must be at least 1, but is 0"),
        ({"name": "ray", "address": "127.0.0.1:9"}, "there is no Ray cluster at 127.0.0.1:9"),
    ],
)
def test_executors_that_cannot_be(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        executor.build(**given)


def test_without_ray_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ValueError, match=r"pip install 'pohp_neurd\[ray\]'"):
        executor.build("ray")


def test_the_lock_file_names_its_process(swept, tmp_path):
    seen = []

    def look(todo, runs):
        seen.append((runs.parent / "lock").read_text().strip())
        yield from Here()(todo, runs)

    sweep.run(swept[1][:1], tmp_path / "sweep", look)
    assert seen == [str(os.getpid())]
    assert not (tmp_path / "sweep" / "lock").exists()
