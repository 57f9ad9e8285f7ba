"""The scripts of studies, run as their READMEs say, at a tiny scale; wrong flags get one sentence."""

import pathlib
import subprocess
import sys

import pytest

from pohp_neurd.experiment import single_agent
from pohp_neurd.results import table

ROOT = pathlib.Path(__file__).resolve().parents[2]
ABLATE, NETWORKS = "catch_collapse/ablate.py", "catch_collapse/networks.py"
CHANGING_GAME = "changing_game/study.py"


def ran(script, *arguments):
    command = [sys.executable, str(ROOT / "studies" / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
def test_a_game_that_changes_is_studied(tmp_path):
    tiny = ["--jump_every=20", "--cycles=1", "--batch_size=1", "--seeds=1", "--tuning_seeds=1"]
    done = ran(CHANGING_GAME, *tiny, f"--output_dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    rows = table.read(tmp_path / "summary.csv")
    # In self-play with and without a magnet, and in the bandit; two worlds, three baselines, ten learners.
    assert len(rows) == 3 * 2 * 3 * 10 * 6
    assert len(done.stdout.splitlines()) == len(rows) / 6
    recorded = table.read(ROOT / "studies" / "changing_game" / "summary.csv")
    assert list(rows[0]) == list(recorded[0])
    assert len(recorded) == len(rows)


@pytest.mark.slow
def test_the_networks_of_a_run_are_looked_at(tmp_path):
    config = single_agent.Config(seeds=2, num_steps=80, interval=40, width=8, explorations=(0.0, 1.0))
    single_agent.run(config, tmp_path / "catch")
    done = ran(NETWORKS, f"--run={tmp_path / 'catch'}")
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + 4, done.stderr
    recorded = (ROOT / "studies" / "catch_collapse" / "networks.csv").read_text().splitlines()[0]
    assert f"run,{lines[0]}" == recorded


@pytest.mark.slow
def test_options_are_ablated(tmp_path):
    tiny = [f"--output_dir={tmp_path}", "--seeds=2", "--until=1000", "--width=8", "--cores=1"]
    done = ran(ABLATE, *tiny, "--setting=spg", "--setting=neurd_cix,common_mode=dropped")
    assert done.returncode == 0, done.stderr
    rows = table.read(tmp_path / "ablation.csv")
    assert len(rows) == 2 * 2
    assert list(rows[0]) == list(table.read(ROOT / "studies" / "catch_collapse" / "ablation.csv")[0])
    assert (tmp_path / "ablation.png").stat().st_size > 10_000


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("script", "flag", "sentence"),
    [
        (CHANGING_GAME, "--jump_every=30", "jump_every must be a multiple of 20, but is 30."),
        (CHANGING_GAME, "--pace=3", "Unknown command line flag 'pace'"),
        (CHANGING_GAME, "--output_dir=/etc/passwd", "/etc/passwd is a file, but a run needs a folder."),
        (ABLATE, "--setting=sarsa", "learner must be one of spg, neurd, neurd_cix"),
        (ABLATE, "--until=7", "value should be one of <1000|2000|"),
        (NETWORKS, "--run=/nowhere", "there is no run in /nowhere."),
    ],
)
def test_a_wrong_flag_ends_with_a_sentence(script, flag, sentence):
    done = ran(script, flag)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
