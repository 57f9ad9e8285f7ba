"""The paper's experiment is made again from its recorded rows, without a run."""

import pathlib

import pytest

from pohp_neurd.experiment import reproduction

STUDY = pathlib.Path(__file__).resolve().parents[2] / "studies" / "paper"


def nothing(todo, runs):
    raise AssertionError(f"{len(todo)} settings would be run")


@pytest.mark.parametrize("environment", ["catch", "cart_pole"])
@pytest.mark.parametrize("learning_rate", ["best", "paper"])
def test_recorded_rows_are_not_run_again(environment, learning_rate, tmp_path):
    config = reproduction.Config(environment=environment, learning_rate=learning_rate)
    recorded = STUDY / environment
    found = reproduction.run(config, tmp_path, nothing, known_from=[recorded / "results.csv"])
    assert found["failed"] == []
    written = sorted(
        path.name for path in tmp_path.glob("*.csv") if path.name.startswith(("expl", "learning"))
    )
    assert len(written) == (2 if learning_rate == "best" else 1)
    for name in written:
        assert (tmp_path / name).read_bytes() == (recorded / name).read_bytes(), name
