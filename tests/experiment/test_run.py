"""The loop of every run, on a task that counts: rows, checkpoints, signals at any moment, and resumption."""

import os
import signal

import numpy as np
import pytest

from pohp_neurd import checkpoint, checks
from pohp_neurd.experiment import run
from pohp_neurd.results import records

COLUMNS = ("updates", "episodes", "steps", "seconds", "total")


def counting(total=10, every=3, checkpoint_every=2, lost_at=None, at=None, number=signal.SIGTERM, share=None):
    """A task whose state is the sum of the updates so far; a signal comes within update `at`."""

    def advance(state, units):
        for _ in range(units):
            count, value = state
            if count + 1 == at:
                os.kill(os.getpid(), number)
            state = np.array([count + 1, value + count])
        return state

    def diverged(state):
        if lost_at is None or state[0] < lost_at:
            return None
        return ("the sum", f"update {lost_at}", "step")

    return run.Task(
        {"total": total},
        run.Pace(total, every, checkpoint_every, share=share),
        COLUMNS,
        lambda: np.zeros(2, int),
        advance,
        lambda state, done, rows: [{"updates": done, "episodes": 0, "steps": 0, "total": int(state[1])}],
        lambda folder, rows: {"total": rows[-1]["total"], "rows": len(rows)},
        diverged=diverged,
    )


def written(folder):
    return [(int(row["updates"]), int(row["total"])) for row in records.read_csv(folder / "metrics.csv")]


def test_rows_and_checkpoints_are_where_the_pace_says(tmp_path):
    figures = run.finish(lambda: counting(), tmp_path / "run")
    assert figures == {"total": 45, "rows": 4}
    assert written(tmp_path / "run") == [(3, 3), (6, 15), (9, 36), (10, 45)]
    assert checkpoint.steps(tmp_path / "run" / "checkpoints") == [6, 10]


def test_evaluations_take_their_share_of_the_time_and_no_more(tmp_path, monkeypatch):
    """An update takes a second, an evaluation six: one in ten seconds of the whole, and the last one."""
    clock = [0.0]
    monkeypatch.setattr(run.time, "perf_counter", lambda: clock[0])
    task = counting(total=200, every=2, checkpoint_every=1, share=0.1)

    def advance(state, units):
        clock[0] += units
        return task.advance(state, units)

    def evaluate(*arguments):
        clock[0] += 6
        return task.evaluate(*arguments)

    slow = task._replace(advance=advance, evaluate=evaluate)
    run.finish(lambda: slow, tmp_path / "run", stop_after=120)
    first = [place for place, _ in written(tmp_path / "run")]
    assert first == [2, 114]  # the first shows what an evaluation takes; then 12 of 120 seconds
    run.finish(lambda: slow, tmp_path / "run", resume=True)
    assert [place for place, _ in written(tmp_path / "run")] == [*first, 122, 200]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("at", range(1, 11))
def test_whenever_a_signal_comes_the_run_goes_on_as_if_it_had_not(at, number, tmp_path):
    """Also in an update after which there is an evaluation: its row is written before the checkpoint."""
    run.finish(lambda: counting(), tmp_path / "whole")
    if at < 10:
        with pytest.raises(run.Interrupted, match=r"updates; go on with --resume in") as stop:
            run.finish(lambda: counting(at=at, number=number), tmp_path / "run")
        assert stop.value.exit_code == 128 + number
        assert checkpoint.steps(tmp_path / "run" / "checkpoints")[-1] >= at
        run.finish(lambda: counting(), tmp_path / "run", resume=True)
    else:  # it came too late to matter
        run.finish(lambda: counting(at=at, number=number), tmp_path / "run")
    assert written(tmp_path / "run") == written(tmp_path / "whole")


def test_a_run_may_be_ended_early_and_goes_on(tmp_path):
    assert run.finish(lambda: counting(), tmp_path / "run", stop_after=4)["rows"] == 1
    assert checkpoint.steps(tmp_path / "run" / "checkpoints") == [4]
    assert run.finish(lambda: counting(), tmp_path / "run", resume=True) == {"total": 45, "rows": 4}


def test_rows_beyond_the_checkpoint_do_not_appear_twice(tmp_path):
    with pytest.raises(run.Interrupted):
        run.finish(lambda: counting(at=7), tmp_path / "run")
    newest = max((tmp_path / "run" / "checkpoints").glob("*.npz"))
    newest.write_bytes(newest.read_bytes()[:-20])
    run.finish(lambda: counting(), tmp_path / "run", resume=True)
    assert written(tmp_path / "run") == [(3, 3), (6, 15), (9, 36), (10, 45)]


def test_divergence_names_the_last_good_checkpoint(tmp_path):
    with pytest.raises(
        checks.Diverged, match="the sum was not finite after update 8; the checkpoint of update 6 is good"
    ):
        run.finish(lambda: counting(lost_at=8), tmp_path / "late")
    with pytest.raises(checks.Diverged, match="after update 2; there is no checkpoint yet"):
        run.finish(lambda: counting(lost_at=2), tmp_path / "early")


def test_rows_that_are_missing_are_told_of(tmp_path):
    run.finish(lambda: counting(), tmp_path / "run")
    records.write_csv(tmp_path / "run" / "metrics.csv", [], COLUMNS)
    with pytest.raises(ValueError, match=r"must have a row of each of 4 evaluations, but has not"):
        run.finish(lambda: counting(), tmp_path / "run", resume=True)


def test_without_a_terminal_progress_is_in_lines_that_become_rarer(monkeypatch, capsys):
    """The first unit takes a minute, to compile, and each of the others a second."""
    clock = [0.0]
    monkeypatch.setattr(run.time, "perf_counter", lambda: clock[0])
    with run.progress(3600, 1200, "episode") as bar:
        for second in range(60, 2460):
            clock[0] = second
            bar.update()
            bar.set_postfix({"NashConv": "0.1000"})
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1,201 of 3,600 episodes in 01:00"
    assert lines[1] == "1,208 of 3,600 episodes in 01:07, about 39:52 left, NashConv 0.1000"
    assert len(lines) == 35  # one whenever the time has grown by a ninth: ln(2460/60) / ln(10/9)
