"""The scripts that read runs of train_single_agent.py, called in-process."""

import importlib.util
import pathlib

import pytest
from absl import flags
from absl.testing import flagsaver

from pohp_neurd.experiment import single_agent

pytestmark = pytest.mark.thorough

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "run_scripts"


def call(name, arguments):
    known = set(flags.FLAGS)
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        with flagsaver.flagsaver():
            module.main(flags.FLAGS([name, *arguments]))
    finally:
        for added in set(flags.FLAGS) - known:
            delattr(flags.FLAGS, added)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "catch"
    config = single_agent.Config(seeds=2, num_steps=80, interval=40, width=8, explorations=(0.0, 1.0))
    single_agent.run(config, folder)
    return folder


def test_a_run_is_studied(run, capsys):
    call("study_catch", [f"--run={run}"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 4
    assert lines[0].startswith("learning_rate,exploration,seed,misses")


def test_a_missing_run_gets_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        call("study_catch", [f"--run={tmp_path / 'nowhere'}"])
    assert caught.value.code == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.slow
def test_options_are_ablated(tmp_path, capsys):
    given = [f"--output_dir={tmp_path}", "--seeds=2", "--until=1000", "--width=8", "--cores=1"]
    call("ablate_catch", [*given, "--setting=spg", "--setting=neurd_cix,common_mode=dropped"])
    assert len((tmp_path / "ablation.csv").read_text().splitlines()) == 1 + 2 * 2
    assert (tmp_path / "ablation.png").stat().st_size > 10_000
    with pytest.raises(SystemExit) as caught:
        call("ablate_catch", [*given, "--setting=sarsa"])
    assert caught.value.code == 2
    assert "learner must be one of" in capsys.readouterr().err
