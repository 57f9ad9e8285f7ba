"""The paper's experiment is made again from its recorded rows, without a run."""

import pathlib

import pytest

from pohp_neurd.experiment import reproduction

STUDY = pathlib.Path(__file__).resolve().parents[2] / "studies" / "paper"


def nothing(todo, runs):
    raise AssertionError(f"{len(todo)} settings would be run")


@pytest.mark.parametrize("environment", ["catch", "cart_pole"])
@pytest.mark.parametrize(
    ("scale", "learning_rate", "tables"), [("full", "best", 2), ("small", "best", 1), ("small", "paper", 1)]
)
def test_recorded_rows_are_not_run_again(environment, scale, learning_rate, tables, tmp_path):
    config = reproduction.Config(environment=environment, scale=scale, learning_rate=learning_rate)
    recorded = STUDY / environment
    found = reproduction.run(config, tmp_path, nothing, known_from=[recorded / "results.csv"])
    assert found["failed"] == []
    # Learning rates are recorded with the seeds of `full`; `small` has some of its explorations.
    kinds = ("explorations", "learning_rates") if scale == "full" else ("explorations",)
    written = [path for path in tmp_path.glob("*.csv") if path.name.startswith(kinds)]
    assert len(written) == tables
    for path in written:
        lines, wanted = ((folder / path.name).read_text().splitlines() for folder in (tmp_path, recorded))
        assert lines == [line for line in wanted if line in lines], path.name
        assert len(lines) == len(wanted) or scale == "small"
