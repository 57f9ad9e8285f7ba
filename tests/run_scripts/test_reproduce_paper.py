"""run_scripts/reproduce_paper.py as a shell starts it, at its smallest: tables, pictures, a line of JSON."""

import json
import pathlib
import subprocess
import sys

import pytest

from pohp_neurd.results import records

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "run_scripts" / "reproduce_paper.py"


@pytest.mark.thorough
def test_it_runs_what_is_missing_and_ends_with_json(tmp_path):
    flags = ["--scale=smoke", "--learning_rate=0.001", "--cores=1", "--output_dir=paper"]
    told = []
    for _ in range(2):  # the second time there is nothing left to run
        done = subprocess.run(
            [sys.executable, str(SCRIPT), *flags], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        told.append(json.loads(done.stdout.splitlines()[-1]))
    assert told[0] == told[1]
    assert (told[0]["environment"], told[0]["scale"], told[0]["failed"]) == ("catch", "smoke", 0)
    assert told[0]["learning_rate"] == 0.001
    rows = records.read_csv(tmp_path / "paper" / "results.csv")
    assert len(rows) == 2 + 2 * 2  # SPG, and NeuRD-CIX at two explorations, with two seeds each
    assert {row["common_mode"] for row in rows} == {"paper"}
    assert (tmp_path / told[0]["table"]).read_text().count("NeuRD-CIX") == 2
    assert (tmp_path / told[0]["picture"]).read_bytes().startswith(b"\x89PNG")
