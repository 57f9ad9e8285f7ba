"""Which of the online agent's options keep it from collapsing in catch at the paper's learning rate.

A setting is a string: a learner and what is changed from `online.Options`, as in "spg,epsilon=0.01". Every
setting is a run folder of `single_agent` that stops at MARKS to be looked at by `catch_study`; a row for
every seed goes to ablation.csv each time. Called again, it goes on where it was.
"""

import math
import pathlib
from typing import Any

from pohp_neurd import checkpoint, files
from pohp_neurd.experiment import catch_ablation_config, catch_study, records, run_folder, single_agent
from pohp_neurd.experiment import table as tables
from pohp_neurd.games import catch

_FOUND = tuple(name for name in catch_study.COLUMNS if name not in ("learning_rate", "exploration", "seed"))
COLUMNS = ("setting", "seed", "steps", "total_reward", "late_misses", *_FOUND)
"""`late_misses`: the share of balls missed over the last tenth of the steps. The rest is `catch_study`'s."""


def run(
    path: records.Path, config: catch_ablation_config.Config, *, num_cores: int = 1
) -> list[dict[str, Any]]:
    """Runs the settings to their last mark, one after the other; all rows of the study in `path`."""
    folder = pathlib.Path(path)
    table = folder / "ablation.csv"
    with files.locked(folder, what="study"):
        rows = read_rows(table) if table.exists() else []
        for setting in config.settings:
            for mark in (mark for mark in catch_ablation_config.MARKS if mark <= config.until):
                if any((row["setting"], row["steps"]) == (setting, mark) for row in rows):
                    continue
                rows += _look(folder / setting, setting, config.experiment(setting), mark, num_cores)
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
    return tables.figures(path, COLUMNS, text=["setting"])
