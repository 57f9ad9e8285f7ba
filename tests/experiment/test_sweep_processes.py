"""Sweeps as their users meet them: processes that are killed, full disks, a real Ray cluster."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

import permissions
import pytest

from pohp_neurd.experiment import executor, grid, sweep
from pohp_neurd.results import records

pytestmark = pytest.mark.thorough

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRID = ["width=16", "num_steps=20000", "interval=500", "checkpoint_every=4", "exploration=0,1", "seed=0:3"]
COMMAND = [
    sys.executable,
    str(ROOT / "run_scripts" / "sweep.py"),
    "--script=train_single_agent",
    *(f"--sweep={text}" for text in GRID),
]
TABLES = ("results.csv", "curves.csv")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The tables of the sweep that nothing happened to, run in this process."""

    def here(todo, runs):
        for setting in todo:
            yield setting, grid.attempt(setting.script, setting.flags, runs / setting.id)

    folder = tmp_path_factory.mktemp("sweeps") / "whole"
    finished = sweep.run(_settings(), folder, here)
    assert not sweep.failures(finished)
    return {name: (folder / name).read_bytes() for name in TABLES}


def _settings():
    return grid.settings([grid.parse("train_single_agent", GRID)])


def _tables(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


def _descendants(pid, word):
    """The processes below `pid` whose command line has `word`."""
    found, parents = [], {pid}
    for _ in range(5):
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (OSError, ValueError):
                continue
            if parent in parents:
                parents.add(int(entry.name))
                if word in line and int(entry.name) not in found:
                    found.append(int(entry.name))
    return found


def _wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("what was waited for did not happen")


def _begun(folder):
    """Whether some setting has a checkpoint, and so is in the middle of its run."""
    return list(folder.glob("runs/*/checkpoints/*.json"))


def test_two_workers_give_the_same_tables_and_one_that_dies_is_replaced(whole, tmp_path):
    folder = tmp_path / "sweep"
    finished, killed = [], []
    execute = executor.build("local", cores=2) if (os.cpu_count() or 1) > 1 else executor.build("local")

    def watched(todo, runs):
        """The executor, with a worker killed once a run is in its middle."""
        steps = execute(todo, runs)
        pid = os.getpid()

        def kill():
            _wait_for(lambda: _begun(folder))
            killed.append(_descendants(pid, "spawn_main")[0])
            os.kill(killed[0], signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        yield from steps
        thread.join()

    finished = sweep.run(_settings(), folder, watched)
    assert killed
    assert not sweep.failures(finished)
    assert _tables(folder) == whole


def test_a_setting_whose_worker_always_dies_is_given_up_and_the_rest_is_run(tmp_path):
    todo = grid.settings([grid.parse("bandit", ["runs=2", "horizon=10", "seed=0:2"])])
    folder, killed = tmp_path / "sweep", []

    def kill():
        """Kills the first three workers."""
        while len(killed) < 3:
            for pid in _descendants(os.getpid(), "spawn_main"):
                if pid not in killed:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    finished = sweep.run(todo, folder, executor.build("local", cores=1))
    thread.join()
    (row,) = records.read_csv(folder / "failures.csv")
    assert row["sentence"] == "Its worker process died 3 times, the last time with exit code -9."
    assert len(sweep.failures(finished)) == 1
    assert len(records.read_csv(folder / "results.csv")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(2))
def test_a_sweep_that_is_killed_three_times_ends_in_the_same_tables(whole, tmp_path, attempt):
    folder, generator = tmp_path / "sweep", random.Random(attempt)
    for _ in range(3):
        process = subprocess.Popen([*COMMAND, f"--output_dir={folder}"], stderr=subprocess.DEVNULL)
        time.sleep(generator.uniform(4, 25))
        process.kill()
        process.wait()
        # Its workers go with it.
        _wait_for(lambda: not _writers(folder))
    subprocess.run([*COMMAND, f"--output_dir={folder}"], check=True)
    assert _tables(folder) == whole


def _writers(folder):
    """Processes that have the sweep's log files open."""
    found = []
    for link in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(folder) in os.readlink(link):
                found.append(link)
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_two_sweeps_at_once_in_one_folder(whole, tmp_path):
    folder = tmp_path / "sweep"
    first = subprocess.Popen([*COMMAND, f"--output_dir={folder}"], stdout=subprocess.DEVNULL)
    _wait_for(lambda: _begun(folder))
    second = subprocess.run([*COMMAND, f"--output_dir={folder}"], capture_output=True, text=True)
    assert second.returncode == 2
    assert second.stderr.startswith(f"another sweep is at work in {folder} (process {first.pid})")
    assert first.wait() == 0
    assert _tables(folder) == whole


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_on(number, whole, tmp_path):
    """And the end of a session, and a closed terminal."""
    folder = tmp_path / "sweep"
    process = subprocess.Popen(
        [*COMMAND, f"--output_dir={folder}"], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _wait_for(lambda: _begun(folder))
    os.killpg(process.pid, number)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"the same command goes on in {folder}" in told
    assert "Traceback" not in told
    subprocess.run([*COMMAND, f"--output_dir={folder}"], check=True)
    assert _tables(folder) == whole


@pytest.fixture
def small_disk(tmp_path):
    """A folder with 300 KiB: room for some runs, but not for all."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_fails_what_does_not_fit_and_keeps_the_rest(whole, small_disk):
    folder = small_disk / "sweep"
    done = subprocess.run([*COMMAND, f"--output_dir={folder}", "--cores=1"], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    failed = records.read_csv(folder / "failures.csv")
    rows = (folder / "results.csv").read_text().splitlines()
    assert 0 < len(failed) < 6
    assert len(rows) == 1 + 6 - len(failed)
    assert all("No space left on device" in row["sentence"] for row in failed)
    assert set(rows) <= set(whole["results.csv"].decode().splitlines())
    # With room, the same command finishes what did not fit.
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    subprocess.run([*COMMAND, f"--output_dir={folder}", "--retry_failed"], check=True)
    assert _tables(folder) == whole
    assert not (folder / "failures.csv").exists()


@pytest.mark.slow
def test_a_folder_that_may_not_be_written_to_fails_its_setting_alone(whole, tmp_path):
    folder = tmp_path / "sweep"
    forbidden = folder / "runs" / _settings()[2].id
    forbidden.mkdir(parents=True)
    (forbidden / "config.json").write_text("{}")
    command = permissions.without_privilege([*COMMAND, f"--output_dir={folder}"])
    (forbidden / "config.json").chmod(0o000)
    forbidden.chmod(0o555)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert json.loads(done.stdout.splitlines()[-1])["failed"] == 1
    (row,) = records.read_csv(folder / "failures.csv")
    assert row["id"] == forbidden.name
    assert "is not a folder that may be written to" in row["sentence"]
    rows = (folder / "results.csv").read_text().splitlines()
    assert set(rows) < set(whole["results.csv"].decode().splitlines())
    assert len(rows) == 1 + 5


@pytest.fixture
def cluster(monkeypatch):
    """A Ray cluster of two workers, on loopback, which lets in whom it shares a token with."""
    pytest.importorskip("ray")
    program = pathlib.Path(sys.executable).with_name("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef" * 4)
    port = 20_000 + os.getpid() % 20_000
    start = [program, "start", "--head", "--node-ip-address=127.0.0.1", f"--port={port}", "--num-cpus=2"]
    subprocess.run([*start, "--include-dashboard=false"], check=True, capture_output=True)
    yield f"127.0.0.1:{port}"
    subprocess.run([program, "stop", "--force"], check=True, capture_output=True)


@pytest.mark.slow
def test_a_ray_cluster_gives_the_same_tables_and_retries_what_is_killed(whole, cluster, tmp_path):
    folder = tmp_path / "sweep"
    process = subprocess.Popen(
        [*COMMAND, f"--output_dir={folder}", "--executor=ray", f"--address={cluster}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    at_work = _wait_for(lambda: _processes("ray::_attempt"))
    time.sleep(3)  # into the run
    os.kill(at_work[0], signal.SIGKILL)
    told, _ = process.communicate(timeout=400)
    assert process.returncode == 0
    assert json.loads(told.splitlines()[-1])["done"] == 6
    assert _tables(folder) == whole


def _processes(word):
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word in entry.read_bytes().decode(errors="replace"):
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def test_no_cluster_where_there_should_be_one(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(ValueError, match=r"there is no Ray cluster at 127.0.0.1:1: Connection refused."):
        sweep.run(_settings(), tmp_path / "sweep", executor.build("ray", address="127.0.0.1:1"))
