"""What is said of live play is what its rows say, and the study's script runs."""

import pathlib
import subprocess
import sys

import pytest

from pohp_neurd.results import table

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUDY = ROOT / "studies" / "live"


def test_staleness_is_told_of_as_it_was_measured():
    rows, text = table.read(STUDY / "staleness.csv"), (STUDY / "README.md").read_text("utf-8")
    fresh, stale = ([row for row in rows if row["staleness"] == number] for number in (0, 1))
    assert [row["seed"] for row in fresh] == [row["seed"] for row in stale] == list(range(10))
    for name, column in (("current", "nash_conv"), ("average", "nash_conv_average")):
        means = [sum(row[column] for row in side) / 10 for side in (fresh, stale)]
        mean, low, high = table.difference(stale, fresh, column)
        line = f"| {name} | {means[0]:.3f} | {means[1]:.3f} | {mean:+.3f} [{low:.3f}, {high:.3f}] |"
        assert line in text
    assert f"+{table.difference(stale, fresh, 'nash_conv')[0]:.2f}" in (
        ROOT / "docs" / "self_play.md"
    ).read_text("utf-8")


@pytest.mark.parametrize("document", ["studies/live/README.md", "docs/self_play.md"])
def test_lower_bounds_stand_beside_the_exact_value(document):
    rows, text = table.read(STUDY / "responders.csv"), (ROOT / document).read_text("utf-8")
    for row in rows:
        assert row["low"] < row["lower_bound"] < row["high"] < row["nash_conv"]
        found = f"{row['lower_bound']:.3f} [{row['low']:.3f}, {row['high']:.3f}]".replace("-", "−")
        line = f"| {row['response_updates']} | {row['response_seeds']} | {found} | {row['nash_conv']:.4f} |"
        assert line in text


@pytest.mark.thorough
def test_the_script_writes_such_rows():
    command = [sys.executable, str(STUDY / "staleness.py"), "--seeds=1", "--episodes=512"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head == (STUDY / "staleness.csv").read_text("utf-8").splitlines()[0]
    assert [row.split(",")[:3] for row in rows] == [["0", "0", "512"], ["1", "0", "512"]]
