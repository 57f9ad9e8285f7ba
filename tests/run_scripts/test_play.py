"""run_scripts/play.py as a shell starts it: one game on the standard input, and one line of JSON."""

import json
import pathlib
import subprocess
import sys

import pytest

from pohp_neurd import exact, openspiel
from pohp_neurd.openspiel import saved

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "run_scripts" / "play.py"

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the uniform policy in Kuhn poker, as a run leaves it."""
    place = tmp_path_factory.mktemp("run")
    table = exact.uniform(openspiel.compile_game("kuhn_poker"))
    saved.save(place / "policy", 1, saved.Saved(saved.About("kuhn_poker", "tabular"), table, table))
    return place


def call(folder, typed, *flags):
    command = [sys.executable, str(SCRIPT), f"--checkpoint={folder}", *flags]
    return subprocess.run(command, input=typed, capture_output=True, text=True, check=False, timeout=300)


def test_a_game_is_played_to_its_end(folder):
    """Always betting: Kuhn poker then ends after two or three moves."""
    done = call(folder, "?\n1\n1\n1\n", "--seat=0", "--seed=3")
    assert done.returncode == 0, done.stderr
    assert "Pass 50.0%, Bet 50.0%" in done.stdout  # the policy's own probabilities
    figures = json.loads(done.stdout.splitlines()[-1])
    assert (figures["game"], figures["seat"]) == ("kuhn_poker", 0)
    assert sum(figures["returns"]) == 0
    assert abs(figures["returns"][0]) in (1, 2)


def test_who_leaves_gets_no_returns(folder):
    for typed in ("q\n", ""):
        done = call(folder, typed)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["returns"] is None
