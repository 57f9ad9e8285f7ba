"""The bandit experiment: its configuration, its files, its table."""

import json

import numpy as np
import pytest

from pohp_neurd import bandit as bandits
from pohp_neurd.experiment import bandit, bandit_config, records


def some(names, quick):
    """All of the names; those that are not quick run with the slow tests."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "problem", some(bandit_config.PROBLEMS, ("shifting_rock_paper_scissors", "kuhn_learning"))
)
def test_every_problem_runs_and_leaves_its_files(problem, tmp_path):
    config = bandit.Config(problem=problem, horizon=40, runs=8, arms=3, estimators=("importance", "cix"))
    rows = bandit.run(config, tmp_path / "run")
    assert records.read_json(tmp_path / "run" / "config.json")["problem"] == problem
    written = records.read_csv(tmp_path / "run" / "metrics.csv")
    assert tuple(written[0]) == bandit.COLUMNS
    assert [row["estimator"] for row in written] == ["importance"] * 40 + ["cix"] * 40
    assert int(written[-1]["updates"]) == 40
    assert written[0]["bound"] == ""
    assert float(written[-1]["bound"]) > 0
    assert (tmp_path / "run" / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert len(rows) == 80


@pytest.mark.parametrize("learner", some(bandit_config.LEARNERS, ("hedge", "regret_matching_plus")))
def test_rows_are_the_figures_of_the_simulation(learner, tmp_path):
    config = bandit.Config(
        problem="adaptive", learner=learner, horizon=200, runs=64, estimators=("ix",), seed=3
    )
    last = bandit.run(config, tmp_path / "run")[-1]
    problem = bandit.build_problem(config)
    player = bandits.reduction(
        bandit.build_learner(config, problem), "ix", bandit.build_schedule(config, problem.num_arms)
    )
    bound = bandits.regret.bound_curve(player.learner, 200, 5, 1.0, config.delta, player.schedule)[-1]
    assert last["bound"] == bound
    assert last["regret_median"] <= last["regret_95"] <= last["regret_worst"] <= 200
    assert last["violations"] == 0
    assert last["violation_limit"] == bandits.regret.violation_limit(0, 64)


@pytest.mark.thorough
def test_the_table_has_a_line_for_every_estimator(tmp_path):
    config = bandit.Config(horizon=30, runs=4, arms=2)
    rows = bandit.run(config, tmp_path / "run")
    lines = bandit.table(rows).splitlines()
    assert [line.split()[0] for line in lines] == ["estimator", "importance", "ix", "cix"]
    assert "none" in lines[1]
    assert len({len(line) for line in lines}) == 1
    figures = json.loads(json.dumps(bandit.final_figures(config, rows)))
    assert figures["importance"]["bound"] is None
    assert figures["cix"]["bound"] > 0


def test_a_finished_run_is_not_overwritten_unasked(tmp_path):
    config = bandit.Config(horizon=5, runs=2, arms=2, estimators=("cix",))
    bandit.run(config, tmp_path / "run")
    with pytest.raises(ValueError, match="already holds a run"):
        bandit.run(config, tmp_path / "run")
    bandit.run(config, tmp_path / "run", overwrite=True)


@pytest.mark.parametrize(
    ("given", "value"), [({}, None), ({"xi": 0.5}, 0.5 / np.sqrt(3)), ({"exploration": 0.3}, 0.3)]
)
def test_schedules(given, value):
    schedule = bandit.build_schedule(bandit.Config(**given), 3)
    expected = bandits.best_xi(3, 0.05) / np.sqrt(3) if value is None else value
    np.testing.assert_allclose(float(schedule(0)), expected, rtol=1e-6)


def test_record_rounds_end_at_the_horizon():
    assert bandit.record_rounds(3) == [1, 2, 3]
    rounds = bandit.record_rounds(10_000)
    assert rounds[-1] == 10_000
    assert len(rounds) == 60


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"problem": "poker"}, "problem must be one of bernoulli"),
        ({"learner": "exp3"}, "learner must be one of hedge"),
        ({"estimators": ()}, "at least one"),
        ({"estimators": ("cix", "cix")}, "must differ"),
        ({"estimators": ("icx",)}, "estimator must be one of"),
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"runs": 0}, "runs must be at least 1"),
        ({"arms": 1}, "arms must be at least 2"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"delta": 0.0}, "delta must lie strictly"),
        ({"xi": -1.0}, "xi must be"),
        ({"xi": 1.0, "exploration": 0.1}, "exclude each other"),
        ({"exploration": 1.5}, "exploration must lie"),
        ({"exploration": 0.0}, "exploration must be a finite number above 0"),
    ],
)
def test_wrong_settings_are_refused_before_any_work(given, message):
    with pytest.raises(ValueError, match=message):
        bandit.Config(**given)
