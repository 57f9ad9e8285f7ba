"""Which of the online agent's options keep it from collapsing in catch at the paper's learning rate.

A setting is a string: a learner and what is changed from `online.Options`, as in "spg,epsilon=0.01". Every
setting is a run folder of `single_agent` that stops at MARKS to be looked at by `catch_study`; a row for
every seed goes to ablation.csv each time. Called again, it goes on where it was.
"""

import math
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from pohp_neurd import checkpoint
from pohp_neurd.experiment import catch_study, records, run_folder, single_agent
from pohp_neurd.games import catch

LEARNING_RATE = 0.001797
"""SPG's best in catch, according to the paper."""

MARKS = (1_000, 2_000, 5_000, 20_000, 60_000, 150_000, 300_000)
"""Steps at which networks are looked at; the collapse is early, so they are dense there."""

SETTINGS = (
    "spg",
    "spg,baseline=none",
    "spg,bootstrapped=last",
    "spg,epsilon=0.0001",
    "spg,epsilon=0.01",
    "spg,epsilon=0.1",
    "spg,updated=all",
    "neurd_cix",
    "neurd_cix,common_mode=dropped",
    "neurd_cix,baseline=none",
    "neurd_cix,probability=update",
    "neurd_cix,bootstrapped=last",
    "neurd_cix,epsilon=0.01",
    "neurd_cix,updated=all",
)
"""One option at a time. SPG's direction neither has a common mode nor reads the probability.

`updated=all` takes about five times as long as the others."""

_FOUND = tuple(name for name in catch_study.COLUMNS if name not in ("learning_rate", "exploration", "seed"))
COLUMNS = ("setting", "seed", "steps", "total_reward", "late_misses", *_FOUND)
"""`late_misses`: the share of balls missed over the last tenth of the steps. The rest is `catch_study`'s."""

_OPTIONS: dict[str, Callable[[str], Any]] = {
    "updated": str,
    "baseline": str,
    "common_mode": str,
    "probability": str,
    "bootstrapped": str,
    "epsilon": float,
}


def config(setting: str, *, seeds: int, width: int = 256) -> single_agent.Config:
    """The experiment of a setting, with exploration 1; a ValueError where the string names none."""
    learner, *changes = setting.split(",")
    options = {}
    for change in changes:
        name, found, value = change.partition("=")
        if not found or name not in _OPTIONS:
            raise ValueError(f"a setting changes any of {', '.join(_OPTIONS)}, but one says {change!r}.")
        try:
            options[name] = _OPTIONS[name](value)
        except ValueError:
            raise ValueError(f"{name} must be a number, but is {value!r}.") from None
    return single_agent.Config(
        learner=learner,
        learning_rates=(LEARNING_RATE,),
        seeds=seeds,
        num_steps=MARKS[-1],
        interval=MARKS[0],
        width=width,
        **options,
    )


def run(
    path: records.Path,
    settings: Sequence[str] = SETTINGS,
    *,
    seeds: int = 5,
    until: int = MARKS[-1],
    width: int = 256,
    num_cores: int = 1,
) -> list[dict[str, Any]]:
    """Runs `settings` to the mark `until`, one after the other; all rows of the study in `path`."""
    if until not in MARKS:
        raise ValueError(f"until must be one of {', '.join(map(str, MARKS))}, but is {until}.")
    configs = {setting: config(setting, seeds=seeds, width=width) for setting in settings}
    folder = pathlib.Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "ablation.csv"
    rows = read_rows(table) if table.exists() else []
    for setting, chosen in configs.items():
        for mark in (mark for mark in MARKS if mark <= until):
            if any((row["setting"], row["steps"]) == (setting, mark) for row in rows):
                continue
            rows += _look(folder / setting, setting, chosen, mark, num_cores)
            # So that the file does not depend on the order of calls.
            rows.sort(key=lambda row: (row["setting"], row["steps"], row["seed"]))
            records.write_csv(table, rows, COLUMNS)
    return rows


def _look(
    path: pathlib.Path, setting: str, chosen: single_agent.Config, mark: int, num_cores: int
) -> list[dict[str, Any]]:
    """The rows of one setting at `mark`, once it has been brought there."""
    folder = run_folder.RunFolder(path)
    done = max(checkpoint.steps(folder.checkpoints), default=0)
    if done < mark:
        stop = (mark - done) // chosen.interval
        resume = folder.config.exists()
        single_agent.run(chosen, path, resume=resume, num_cores=num_cores, stop_after=stop)
    metrics = single_agent.read_rows(folder.metrics)
    # Whole intervals: at the earliest marks that is more than a tenth.
    span = chosen.interval * math.ceil(mark / 10 / chosen.interval)
    balls = span / (catch.Catch().rows - 1)
    rows = []
    for found in catch_study.study(path):
        mine = [row for row in metrics if row["seed"] == found["seed"]]
        late = [row["reward"] for row in mine if mark - span < row["steps"] <= mark]
        total = next(row["total_reward"] for row in mine if row["steps"] == mark)
        rows.append(
            {
                "setting": setting,
                "seed": found["seed"],
                "steps": mark,
                "total_reward": total,
                "late_misses": round(-sum(late) / balls, 5),
                **{name: found[name] for name in _FOUND},
            }
        )
    return rows


def read_rows(path: records.Path) -> list[dict[str, Any]]:
    """The rows of an ablation.csv, as numbers but for the setting."""
    whole = ("seed", "steps", "columns_missed")

    def read(name: str, text: str) -> Any:
        if name == "setting":
            return text
        return int(text) if name in whole else float(text)

    return [{name: read(name, text) for name, text in row.items()} for row in records.read_csv(path)]
