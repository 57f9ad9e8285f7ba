"""Each learner's own best learning rate, chosen on some seeds; and the grid that is run at it on others.

    python studies/own_rates/choose.py

reads `choose_results.csv` (NeuRD-CIX) and ../paper/*/results.csv (SPG) and writes `choices.csv`, a row for
every environment and learner whose rates were all run, and `report.json`, for `sweep.py --grid`.
"""

import collections
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from pohp_neurd import files
from pohp_neurd.experiment import grid, reproduction
from pohp_neurd.results import records

HERE = pathlib.Path(__file__).resolve().parent
CHOOSING, REPORTING = range(5), range(100, 120)
"""Seeds. No run is in both."""
LEARNER = ("environment", "learner", "common_mode", "exploration")
SPG_MODE = "paper"  # SPG's direction sums to zero: it has no common mode


def rows() -> list[dict[str, str]]:
    """All runs to choose by, each with a common mode."""
    found = records.read_csv(HERE / "choose_results.csv")
    for environment in ("catch", "cart_pole"):
        recorded = records.read_csv(HERE.parent / "paper" / environment / "results.csv")
        found += [{**row, "common_mode": SPG_MODE} for row in recorded if row["learner"] == "spg"]
    return [row for row in found if int(row["seed"]) in CHOOSING]


def tried() -> dict[tuple[str, ...], set[float]]:
    """The learning rates that every learner chooses from."""
    found = collections.defaultdict(set)
    for setting in grid.settings(grid.read(HERE / "choose.json")):
        found[tuple(str(setting.flags[name]) for name in LEARNER)].add(setting.flags["learning_rate"])
    for environment in ("catch", "cart_pole"):
        found[environment, "spg", SPG_MODE, ""] = set(reproduction.PAPER_RATES)
    return found


def choices() -> list[dict[str, str | float]]:
    """The best rate of every learner by the mean of accumulated reward, where all of its runs are there."""
    rewards: dict[tuple[str, ...], dict[float, list[float]]] = collections.defaultdict(
        lambda: collections.defaultdict(list)
    )
    for row in rows():
        key = tuple(row[name] for name in LEARNER)
        rewards[key][float(row["learning_rate"])].append(float(row["total_reward"]))
    found: list[dict[str, str | float]] = []
    rates = tried()
    for key, by_rate in sorted(rewards.items()):
        whole = {rate for rate, each in by_rate.items() if len(each) == len(CHOOSING)}
        if whole >= rates[key]:
            means = {rate: float(np.mean(by_rate[rate])) for rate in sorted(rates[key])}
            best = max(means, key=lambda rate: means[rate])
            found.append({**dict(zip(LEARNER, key, strict=True)), "learning_rate": best, "mean": means[best]})
    return found


def report(chosen: list[dict[str, str | float]]) -> list[dict[str, object]]:
    """The grids of all learners at the chosen rates, on fresh seeds."""
    grids: list[dict[str, object]] = []
    for row in chosen:
        swept = {name: row[name] for name in (*LEARNER, "learning_rate")}
        if row["learner"] == "spg":
            del swept["exploration"]
        else:
            swept["exploration"] = float(row["exploration"])
        seeds = f"{REPORTING.start}:{REPORTING.stop}"
        sweep = {"num_steps": 300_000, "interval": 30_000, **swept, "seed": seeds}
        grids.append({"script": "train_single_agent", "sweep": sweep})
    return grids


def line(row: Mapping[str, Any]) -> str:
    """A row of the README's table, from one of `against_spg_*.csv`: the mean, and by how much it is ahead."""
    words, ahead = "SPG", ""
    if row["learner"] != "spg":
        mode = "as written" if row["common_mode"] == "paper" else "dropped"
        words = f"η = {float(row['exploration']):g}, common mode {mode}"
        ahead = _interval(row, "difference", "+,.0f")
    return f"| {words} | {float(row['learning_rate']):g} | {_interval(row, 'mean', ',.0f')} | {ahead} |"


def _interval(row: Mapping[str, Any], name: str, form: str) -> str:
    number, low, high = (format(float(row[key]), form) for key in (name, f"{name}_low", f"{name}_high"))
    return f"{number} [{low}, {high}]".replace("-", "−")


def main() -> None:
    """Writes both files."""
    chosen = choices()
    records.write_csv(HERE / "choices.csv", chosen, [*LEARNER, "learning_rate", "mean"])
    with files.atomic(HERE / "report.json") as file:
        json.dump(report(chosen), file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
