"""The bandit experiment: its configuration, its files, its table."""

import json
import os
import signal

import numpy as np
import pytest

from pohp_neurd import bandit as bandits
from pohp_neurd import checkpoint
from pohp_neurd.experiment import bandit, configs, run
from pohp_neurd.results import records, table


def some(names, quick):
    """All of the names; those that are not quick run with the slow tests."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.thorough
@pytest.mark.parametrize("problem", some(configs.PROBLEMS, ("shifting_rock_paper_scissors", "kuhn_learning")))
def test_every_problem_runs_and_leaves_its_files(problem, tmp_path):
    config = bandit.Config(problem=problem, horizon=40, seeds=8, arms=3, estimators=("importance", "cix"))
    bandit.run(config, tmp_path / "run")
    rows = table.read(tmp_path / "run" / "metrics.csv")
    assert records.read_json(tmp_path / "run" / "config.json")["problem"] == problem
    written = records.read_csv(tmp_path / "run" / "metrics.csv")
    assert tuple(written[0]) == bandit.COLUMNS
    assert [row["estimator"] for row in written] == ["importance"] * 40 + ["cix"] * 40
    assert int(written[-1]["updates"]) == 40
    assert written[0]["bound"] == ""
    assert float(written[-1]["bound"]) > 0
    assert (tmp_path / "run" / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert len(rows) == 80


@pytest.mark.parametrize("learner", some(configs.FULL_MONITORING, ("hedge", "regret_matching_plus")))
def test_rows_are_the_figures_of_the_simulation(learner, tmp_path):
    config = bandit.Config(
        problem="adaptive", learner=learner, horizon=200, seeds=64, estimators=("ix",), seed=3
    )
    bandit.run(config, tmp_path / "run")
    last = table.read(tmp_path / "run" / "metrics.csv")[-1]
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
    config = bandit.Config(horizon=30, seeds=4, arms=2)
    found = bandit.run(config, tmp_path / "run")
    lines = bandit.table(table.read(tmp_path / "run" / "metrics.csv")).splitlines()
    assert [line.split()[0] for line in lines] == ["estimator", "importance", "ix", "cix"]
    assert "none" in lines[1]
    assert len({len(line) for line in lines}) == 1
    figures = json.loads(json.dumps(found))
    assert figures["importance"]["bound"] is None
    assert figures["cix"]["bound"] > 0


def test_a_finished_run_is_not_overwritten_unasked(tmp_path):
    config = bandit.Config(horizon=5, seeds=2, arms=2, estimators=("cix",))
    bandit.run(config, tmp_path / "run")
    with pytest.raises(ValueError, match="already holds a run"):
        bandit.run(config, tmp_path / "run")
    bandit.run(config, tmp_path / "run", overwrite=True)


def test_a_signal_saves_and_the_run_goes_on_to_the_bit(tmp_path, monkeypatch):
    """It comes in the second estimator's ninth record, and checkpoints are due after every tenth."""
    config = bandit.Config(horizon=30, seeds=3, arms=2, estimators=("ix", "cix"))
    bandit.run(config, tmp_path / "whole")
    advanced, calls = bandits.simulation.advance, []

    def stopping(*arguments, **given):
        calls.append(given)
        if len(calls) == 30 + 9:
            os.kill(os.getpid(), signal.SIGTERM)
        return advanced(*arguments, **given)

    with monkeypatch.context() as patch:
        patch.setattr(bandits.simulation, "advance", stopping)
        with pytest.raises(run.Interrupted, match=r"after 39 records; go on with --resume in") as stop:
            bandit.run(config, tmp_path / "run")
    assert stop.value.exit_code == 128 + signal.SIGTERM
    assert checkpoint.steps(tmp_path / "run" / "checkpoints") == [30, 39]
    bandit.run(config, tmp_path / "run", resume=True)
    whole, cut = (table.read(tmp_path / name / "metrics.csv") for name in ("whole", "run"))
    assert [{**row, "seconds": 0} for row in whole] == [{**row, "seconds": 0} for row in cut]
    arrays = []
    for name in ("whole", "run"):
        with np.load(tmp_path / name / "checkpoints" / "step_000000060.npz") as file:
            arrays.append([file[key] for key in sorted(file.files)])
    for one, two in zip(*arrays, strict=True):
        np.testing.assert_array_equal(one, two)


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
        ({"seeds": 0}, "seeds must be at least 1"),
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
