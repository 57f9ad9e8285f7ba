"""Each learner at its own learning rate: the choice, and that what is reported took no part in it."""

import importlib.util
import json
import pathlib

from pohp_neurd.experiment import grid, reproduction
from pohp_neurd.results import records, table

STUDY = pathlib.Path(__file__).resolve().parents[2] / "studies" / "own_rates"
_spec = importlib.util.spec_from_file_location("own_rates_choose", STUDY / "choose.py")
choose = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(choose)


def test_the_choice_is_made_again_from_its_rows():
    found = choose.choices()
    recorded = records.read_csv(STUDY / "choices.csv")
    assert [{name: str(value) for name, value in row.items()} for row in found] == recorded
    assert json.loads((STUDY / "report.json").read_text()) == choose.report(found)


def test_a_choice_is_the_best_mean_of_five_seeds_at_all_rates():
    """By hand, from the rows of one learner."""
    rows = records.read_csv(STUDY / "choose_results.csv")
    setting = {"environment": "catch", "common_mode": "dropped", "exploration": "0.1"}
    mine = [row for row in rows if all(row[name] == value for name, value in setting.items())]
    assert len(mine) == len(reproduction.PAPER_RATES) * 5
    means = {
        rate: sum(float(row["total_reward"]) for row in mine if float(row["learning_rate"]) == rate) / 5
        for rate in {float(row["learning_rate"]) for row in mine}
    }
    (chosen,) = (
        row for row in choose.choices() if all(str(row[name]) == value for name, value in setting.items())
    )
    assert means[chosen["learning_rate"]] == max(means.values())


def test_no_reported_seed_took_part_in_a_choice():
    chosen = {int(row["seed"]) for row in choose.rows()}
    reported = records.read_csv(STUDY / "report_results.csv")
    assert {int(row["seed"]) for row in reported} == set(choose.REPORTING)
    assert chosen == set(choose.CHOOSING)
    assert chosen.isdisjoint(choose.REPORTING)


def test_all_that_is_reported_was_run_at_the_chosen_rates():
    settings = {setting.id for setting in grid.settings(grid.read(STUDY / "report.json"))}
    reported = {row["id"] for row in records.read_csv(STUDY / "report_results.csv")}
    assert reported == settings


def test_the_tables_of_the_readme_are_those_of_the_rows():
    readme = (STUDY / "README.md").read_text(encoding="utf-8")
    for environment in ("catch", "cart_pole"):
        for row in table.read(STUDY / f"against_spg_{environment}.csv"):
            assert choose.line(row) in readme
    wanted = {setting.id for setting in grid.settings(grid.read(STUDY / "choose.json"))}
    left = wanted - {row["id"] for row in records.read_csv(STUDY / "choose_results.csv")}
    assert f"{len(left)} runs are left" in readme
