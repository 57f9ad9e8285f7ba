"""run_scripts/agent_loop.py: trains, goes on from a checkpoint, refuses bad flags."""

import json
import os
import signal

import pytest
from absl.testing import flagsaver

from pohp_neurd import openspiel


@pytest.mark.thorough
def test_it_trains_and_goes_on(script, tmp_path, capsys):
    with flagsaver.flagsaver(episodes=64, reports=2, network="table", checkpoint_dir=str(tmp_path)):
        script.main([])
        _, *lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines[:2]] == ["32", "64"]
        figures = json.loads(lines[-1])
        assert figures["episodes"] == 64
        assert 0 < figures["nash_conv"] < 0.92  # what uniform play has
        script.main([])
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["episodes"] == 128


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"game": "kuhn_pokr"}, "OpenSpiel knows no game 'kuhn_pokr' (did you mean kuhn_poker"),
        ({"exploration": 1.5}, "exploration must lie in [0, 1], but is 1.5."),
        ({"batch_size": 0}, "batch_size must be at least 1, but is 0."),
    ],
)
def test_bad_flags(script, given, sentence, capsys):
    with flagsaver.flagsaver(**given), pytest.raises(SystemExit) as stop:
        script.main([])
    assert stop.value.code == 2
    assert capsys.readouterr().err.strip().startswith(sentence)


@pytest.mark.thorough
def test_a_signal_keeps_the_agents(script, tmp_path, capsys, monkeypatch):
    """It comes with the first report, after 32 episodes, and is heard in the next one."""
    judged = openspiel.nash_conv

    def stopping(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return judged(*arguments)

    with flagsaver.flagsaver(
        episodes=64, reports=2, network="table", checkpoint_dir=str(tmp_path / "agents")
    ):
        with monkeypatch.context() as patch:
            patch.setattr(openspiel, "nash_conv", stopping)
            with pytest.raises(SystemExit) as stop:
                script.main([])
        assert stop.value.code == 143
        told = capsys.readouterr().err
        assert (
            told
            == f"Stopped by SIGTERM after 33 episodes; the same command goes on from {tmp_path / 'agents'}.\n"
        )
        script.main([])
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["episodes"] == 33 + 64
