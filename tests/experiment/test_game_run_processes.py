"""Runs of self-play in processes of their own: killed, hung up, and left alone while they are at work."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from pohp_neurd import checkpoint
from pohp_neurd.experiment import game, game_config
from pohp_neurd.results import records

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "run_scripts" / "train_game.py"
SMALL = game_config.Config(
    game="kuhn_poker", episodes=64 * 40, batch_size=64, eval_every=64 * 8, checkpoint_every=2
)


def left_by(folder):
    """The rows but for their seconds, and the newest checkpoint to the bit."""
    rows = [{**row, "seconds": ""} for row in records.read_csv(folder / "metrics.csv")]
    newest = checkpoint.steps(folder / "checkpoints")[-1]
    with np.load(folder / "checkpoints" / f"step_{newest:09d}.npz") as file:
        return rows, newest, {name: file[name].tobytes() for name in file.files}


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_it_is_the_same_run(tmp_path):
    flags = ["--game=kuhn_poker", "--episodes=40000000", "--batch_size=64", "--eval_every=800000"]
    flags += ["--checkpoint_every=1", "--seed=5"]

    def start(folder, *more):
        command = [sys.executable, str(SCRIPT), *flags, f"--output_dir={folder}", *more]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    assert start(tmp_path / "whole").wait() == 0
    rng = random.Random(0)
    folder, midway = tmp_path / "run", 0
    for _ in range(4):
        work = start(folder, *(["--resume"] if (folder / "config.json").exists() else []))
        time.sleep(rng.uniform(4.0, 12.0))
        midway += work.poll() is None and bool(checkpoint.steps(folder / "checkpoints"))
        work.kill()
        work.wait()
    assert midway >= 1, "no kill fell between the first checkpoint and the end"
    assert start(folder, "--resume").wait() == 0
    assert left_by(folder) == left_by(tmp_path / "whole")


def begun(folder, *command, **streams):
    """A long run of its own, once it is under way in `folder`."""
    flags = ["--game=kuhn_poker", "--episodes=1e11", "--batch_size=64", f"--output_dir={folder}"]
    # No checkpoint but the one that an interruption leaves.
    flags += ["--eval_every=6400", "--checkpoint_every=1000000"]
    work = subprocess.Popen([*command, sys.executable, str(SCRIPT), *flags], **streams)
    deadline = time.monotonic() + 200
    while not (folder / "metrics.csv").exists():
        assert work.poll() is None, "it has ended"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return work


@pytest.mark.thorough
def test_a_terminal_that_is_really_closed(tmp_path):
    """Its progress bar cannot be drawn any more: the run is saved before that is tried."""
    ours, theirs = os.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    work = begun(tmp_path / "run", "setsid", "--ctty", **streams)
    os.close(theirs)
    assert not checkpoint.steps(tmp_path / "run" / "checkpoints")
    os.close(ours)
    assert work.wait(60) == 128 + signal.SIGHUP
    assert len(checkpoint.steps(tmp_path / "run" / "checkpoints")) == 1
    assert not (tmp_path / "run" / "lock").exists()


@pytest.mark.thorough
def test_a_run_at_work_is_left_alone_until_it_is_dead(tmp_path):
    folder = tmp_path / "run"
    work = begun(folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    config = game_config.Config(game="kuhn_poker", episodes=10**11, batch_size=64, eval_every=6400)
    try:
        for how in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(
                ValueError, match=rf"another run is at work in {folder} \(process {work.pid}\)"
            ):
                game.run(config, folder, **how)
    finally:
        work.kill()
        work.wait()
    assert (folder / "lock").exists()
    game.run(SMALL, folder, overwrite=True)  # what a killed process leaves behind locks nothing
    assert not (folder / "lock").exists()
