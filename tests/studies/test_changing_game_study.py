"""The study of the changing game: who is compared, how step sizes are chosen, what the tables hold."""

import dataclasses

import numpy as np
import pytest
import study

from pohp_neurd.results import table

TINY = study.Config(
    jump_every=20,
    cycles=1,
    batch_size=1,
    explorations=(0.0, 0.5),
    decreasing=(1.0,),
    step_sizes=(0.1, 1.0),
    magnet_strengths=(0.0,),
    baselines=("none",),
    seeds=4,
    tuning_seeds=2,
)

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def tables():
    return study.study(TINY, progress=False)


def _variant(row):
    return tuple(row[name] for name in study.Variant._fields)


def test_tables_have_a_row_for_every_run_step_size_and_point(tables):
    # 2 readings x 2 worlds x (SPG, two constant explorations, a decreasing one).
    assert len({_variant(row) for row in tables.runs}) == 16
    assert len(tables.runs) == 16 * 4
    assert len(tables.step_sizes) == 16 * 2
    assert len(tables.curves) == 2 * 3 * 60
    assert {row["seed"] for row in tables.runs} == {0, 1, 2, 3}


def test_the_step_size_is_the_best_of_the_tuning_seeds(tables):
    trials = table.groups(tables.step_sizes, study.Variant._fields)
    for row in tables.runs:
        mine = trials[_variant(row)]
        best = min(mine, key=lambda trial: trial["tracking"])
        assert row["step_size"] == best["step_size"]
        assert [trial["chosen"] for trial in mine] == [int(trial is best) for trial in mine]


def test_tuning_seeds_are_not_reported(tables):
    """A study that reports the other's tuning seeds finds in single runs what that one found in the mean."""
    config = dataclasses.replace(TINY, seeds=2, seed=4, step_sizes=(1.0,))
    other = study.study(config, progress=False)
    trials = [row for row in tables.step_sizes if row["step_size"] == 1.0]
    runs = table.groups(other.runs, study.Variant._fields)
    for trial in trials:
        mean = np.mean([row["tracking"] for row in runs[_variant(trial)]])
        np.testing.assert_allclose(trial["tracking"], mean, atol=2e-5)


def test_merits_are_of_the_right_quarters_and_cycles():
    """Two cycles, six phases of 20 points, worth 0 to 19 in the first and 100 more in each that follows."""
    gaps = np.concatenate([np.arange(20.0) + 100 * phase for phase in range(6)])[None, None]
    collapsed = np.repeat([0.0, 1.0], [90, 30])[None, None]
    found = study.merits(gaps, collapsed)
    np.testing.assert_allclose(found, [[[259.5, 252.0, 267.0, 109.5, 409.5, 0.25]]])


def test_a_study_leaves_its_tables_and_figures(tmp_path, monkeypatch, tables):
    monkeypatch.setattr(study, "study", lambda config: tables)
    rows = study.run(TINY, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("runs.csv", "summary.csv", "step_sizes.csv", "curves.csv"),
        *("config.json", "exploration.png", "curves.png"),
    }
    assert table.read(tmp_path / "runs.csv") == tables.runs
    assert table.read(tmp_path / "summary.csv") == rows
    assert len(rows) == 16 * len(study.MERITS)
    first = next(row for row in rows if row["merit"] == "tracking")
    mine = [row["tracking"] for row in tables.runs if _variant(row) == _variant(first)]
    assert first["runs"] == 4
    assert first["mean"] == pytest.approx(np.mean(mine), abs=1e-5)
    assert first["mean_low"] <= first["mean"] <= first["mean_high"]
    assert "SPG" in study.line(first)


@pytest.mark.slow
def test_a_study_of_one_seed_has_no_intervals(tmp_path):
    config = dataclasses.replace(TINY, seeds=1, tuning_seeds=1, step_sizes=(1.0,))
    rows = study.run(config, tmp_path)
    assert {row["mean_low"] for row in rows} == {""}
    for row in rows:
        assert study.line(row).endswith(f" {row['mean']:.3f} –")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"bias": 0.0}, "bias must be a finite number above 0, but is 0"),
        ({"jump_every": 30}, "jump_every must be a multiple of 20, but is 30"),
        ({"cycles": 0}, "cycles must be at least 1, but is 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, but is 0"),
        ({"explorations": (0.1, 2.0)}, r"explorations must lie in \[0, 1\]"),
        ({"decreasing": (-0.1,)}, r"decreasing must lie in \[0, 1\], but is -0.1"),
        ({"decay_start": 0.0}, "decay_start must be a finite number above 0, but is 0"),
        ({"step_sizes": (0.0,)}, "step_sizes must be a finite number above 0, but is 0"),
        ({"magnet_strengths": (-1.0,)}, "magnet_strengths must be a finite number of at least 0, but is -1"),
        ({"magnet_speed": 2.0}, r"magnet_speed must lie in \[0, 1\], but is 2"),
        ({"baseline_speed": -1.0}, r"baseline_speed must lie in \[0, 1\], but is -1"),
        ({"baselines": ("critic",)}, "baselines must be one of none, mean, value, but is 'critic'"),
        ({"seed": -1}, "seed must be a whole number from 0 to 2147483647, but is -1"),
        ({"seed": 2**31 - 20}, "the last tuning seed must be a whole number from 0 to 2147483647"),
        ({"seeds": 5, "tuning_seeds": 2}, "seeds must be a multiple of tuning_seeds, 2, but is 5"),
    ],
)
def test_a_wrong_config_is_refused_in_one_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        study.Config(**wrong)
