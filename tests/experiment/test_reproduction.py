"""The paper's experiment at its smallest, and what the larger scales would run."""

import numpy as np
import pytest

from pohp_neurd.experiment import grid, reproduction, schema
from pohp_neurd.results import records, table

pytestmark = pytest.mark.thorough


class Here:
    """Runs settings in this process, and counts them."""

    def __init__(self):
        self.count = 0

    def __call__(self, todo, runs):
        for setting in todo:
            self.count += 1
            yield setting, grid.attempt(setting.script, setting.flags, runs / setting.id)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder, here = tmp_path_factory.mktemp("paper") / "catch", Here()
    return folder, here, reproduction.run(reproduction.Config(scale="smoke"), folder, here)


def test_from_the_sweep_to_the_figure(smoke):
    folder, here, figures = smoke
    # Two rates with two seeds, of which the better one is SPG's own run; then two explorations.
    assert here.count == 4 + 4
    rows = table.read(folder / "results.csv")
    means = {
        rate: np.mean(
            [r["total_reward"] for r in rows if (r["learner"], r["learning_rate"]) == ("spg", rate)]
        )
        for rate in (0.00003, 0.001)
    }
    assert figures["learning_rate"] == max(means, key=means.get)
    assert figures["spg_mean"] == figures["spg_best_mean"] == max(means.values())
    for exploration, mean in figures["neurd_cix_means"].items():
        runs = [r for r in rows if r["learner"] == "neurd_cix" and r["exploration"] == float(exploration)]
        assert len(runs) == 2
        assert all(run["learning_rate"] == figures["learning_rate"] for run in runs)
        assert mean == np.mean([run["total_reward"] for run in runs])
    assert figures["failed"] == []
    assert figures["learning_rate"] in (0.001, 0.00003)
    name = f"explorations_{'0.001' if figures['learning_rate'] == 0.001 else '0.00003'}_smoke"
    written = records.read_csv(folder / f"{name}.csv")
    assert [(row["learner"], row["exploration"]) for row in written] == [
        ("SPG", ""),
        ("NeuRD-CIX", "0.0"),
        ("NeuRD-CIX", "1.0"),
    ]
    assert len((folder / f"{name}.md").read_text().splitlines()) == 2 + 3
    for picture in (f"{name}.png", "learning_rates_smoke.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def test_the_same_command_again_runs_nothing(smoke):
    folder, here, figures = smoke
    before = here.count
    assert reproduction.run(reproduction.Config(scale="smoke"), folder, here) == figures
    assert here.count == before


@pytest.mark.slow
def test_another_reading_leaves_other_tables(smoke):
    folder, here, _ = smoke
    before = {path.name: path.read_bytes() for path in folder.glob("*.md")}
    config = reproduction.Config(scale="smoke", learning_rate="0.001", baseline="none")
    other = reproduction.run(config, folder, here)
    assert other["failed"] == []
    assert other["table"] == str(folder / "explorations_0.001_smoke_baseline_none.md")
    assert all((folder / name).read_bytes() == content for name, content in before.items())
    assert reproduction.Config(common_mode="dropped").title == "catch, common_mode=dropped"
    assert reproduction.Config().suffix == ""


def test_a_rate_at_which_a_seed_failed_is_not_the_best(smoke, tmp_path):
    config = reproduction.Config(scale="smoke")
    best = smoke[2]["learning_rate"]
    here = Here()

    def failing(todo, runs):
        for setting, outcome in here(todo, runs):
            lost = setting.flags["learning_rate"] == best and setting.flags["seed"] == 1
            yield setting, outcome._replace(figures=None, sentence="Lost.") if lost else outcome

    found = reproduction.run(config, tmp_path / "paper", failing)
    assert found["learning_rate"] != best
    assert len(found["failed"]) == 1
    again = reproduction.run(config, tmp_path / "paper", here, retry_failed=True)
    assert again["learning_rate"] == best


def test_at_a_rate_of_ones_own_there_is_no_sweep(smoke):
    folder, here, figures = smoke
    before = here.count
    other = reproduction.run(reproduction.Config(scale="smoke", learning_rate="0.00003"), folder, here)
    assert other["learning_rate"] == 0.00003
    assert "spg_best_mean" not in other
    # SPG at that rate is in the sweep already.
    assert here.count - before == (0 if figures["learning_rate"] == 0.00003 else 4)


def test_what_the_scales_run():
    paper = reproduction.Config(environment="cart_pole", scale="full")
    small = reproduction.Config(environment="cart_pole", scale="small")
    # The paper's 29 rates, one of which it names twice.
    assert len(reproduction.rate_settings(paper)) == 28 * 20
    assert len(reproduction.exploration_settings(paper, 0.00005)) == (11 + 1) * 20
    assert len(reproduction.rate_settings(small)) == 28 * 5
    assert len(reproduction.exploration_settings(small, 0.00005)) == (6 + 1) * 20
    # What is finished at one scale counts at the other.
    ids = [
        {s.id for s in (*reproduction.rate_settings(c), *reproduction.exploration_settings(c, 0.00005))}
        for c in (small, paper)
    ]
    assert ids[0] < ids[1]
    flags = reproduction.exploration_settings(small, 0.00005)[-1].flags
    config = schema.of_setting(grid.JOBS["train_single_agent"].config, "train_single_agent", flags)[0]
    assert (config.width, config.num_steps, config.common_mode) == (256, 300_000, "paper")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"environment": "pong"}, "environment must be one of catch, cart_pole, but is 'pong'"),
        ({"scale": "huge"}, "scale must be one of smoke, small, full, but is 'huge'"),
        ({"learning_rate": "-1"}, "learning_rate must be best, paper or a number above 0, but is '-1'"),
        ({"learning_rate": "fast"}, "learning_rate must be best, paper or a number above 0, but is 'fast'"),
        ({"common_mode": "none"}, "common_mode must be one of paper, dropped"),
    ],
)
def test_what_cannot_be_run(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        reproduction.Config(**given)
