"""Which of the online agent's options keep it from collapsing in catch at the paper's learning rate.

    python studies/catch_collapse/ablate.py --output_dir=runs/catch_ablation
    python studies/catch_collapse/ablate.py --output_dir=runs/catch_ablation --setting=spg,epsilon=0.1

A setting is a learner and what is changed from `online.Options`. Each is a run folder of `single_agent` that
stops at MARKS for a look at its networks (networks.py): ablation.csv gets a row for every seed there, and
ablation.png shows the last marks. Called again with more settings or a later --until, it resumes.
"""

import math
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import figure
import networks
from absl import app, flags, logging
from pohp_neurd.games import catch

from pohp_neurd import checkpoint, files
from pohp_neurd.experiment import executor, single_agent
from pohp_neurd.experiment import run as run_loop
from pohp_neurd.results import records, table

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

_OPTIONS: dict[str, Callable[[str], Any]] = {
    "updated": str,
    "baseline": str,
    "common_mode": str,
    "probability": str,
    "bootstrapped": str,
    "epsilon": float,
}

_LOOKS = tuple(name for name in networks.COLUMNS if name not in ("learning_rate", "exploration", "seed"))
COLUMNS = ("setting", "seed", "steps", "total_reward", "late_misses", *_LOOKS)
"""`late_misses`: the share of balls missed over the last tenth of the steps. The rest: `networks.study`."""


def experiment(setting: str, *, seeds: int, width: int) -> single_agent.Config:
    """The run of a setting, with exploration 1; a ValueError where the string names none."""
    learner, *changes = setting.split(",")
    options: dict[str, Any] = {"common_mode": "paper"}
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
    experiments: dict[str, single_agent.Config],
    *,
    until: int = MARKS[-1],
    num_cores: int = 1,
) -> list[dict[str, Any]]:
    """Runs `experiments`, by setting, to the mark `until`; all rows of the study in `path`."""
    folder = pathlib.Path(path)
    written = folder / "ablation.csv"
    with files.locked(folder, what="study"):
        rows = table.figures(written, COLUMNS, text=["setting"]) if written.exists() else []
        for setting, chosen in experiments.items():
            for mark in (mark for mark in MARKS if mark <= until):
                if any((row["setting"], row["steps"]) == (setting, mark) for row in rows):
                    continue
                rows += _look(folder / setting, setting, chosen, mark, num_cores)
                # So that the file does not depend on the order of calls.
                rows.sort(key=lambda row: (row["setting"], row["steps"], row["seed"]))
                records.write_csv(written, rows, COLUMNS)
    return rows


def _look(
    path: pathlib.Path, setting: str, chosen: single_agent.Config, mark: int, num_cores: int
) -> list[dict[str, Any]]:
    """The rows of one setting at `mark`, once it has been brought there."""
    folder = records.RunFolder(path)
    done = max(checkpoint.steps(folder.checkpoints), default=0)
    if done < mark:
        stop = (mark - done) // chosen.interval
        resume = folder.config.exists()
        single_agent.run(chosen, path, resume=resume, num_cores=num_cores, stop_after=stop)
    metrics = table.read(folder.metrics)
    # Whole intervals: at the earliest marks that is more than a tenth.
    span = chosen.interval * math.ceil(mark / 10 / chosen.interval)
    balls = span / (catch.Catch().rows - 1)
    rows = []
    for found in networks.study(path):
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
                **{name: found[name] for name in _LOOKS},
            }
        )
    return rows


def main(_: Sequence[str]) -> None:
    """Turns flags into the study, and draws it."""
    values = flags.FLAGS
    settings = values.setting or SETTINGS
    try:
        chosen = {name: experiment(name, seeds=values.seeds, width=values.width) for name in settings}
        num_cores = executor.available(values.cores)
        records.check_writable(values.output_dir)
        executor.use_one_core()
        rows = run(values.output_dir, chosen, until=int(values.until), num_cores=num_cores)
    except (ValueError, FloatingPointError, run_loop.Interrupted) as error:
        sys.exit(str(error))
    figure.draw(f"{values.output_dir}/ablation.png", rows)


if __name__ == "__main__":
    flags.DEFINE_multi_string("setting", [], "A learner and its changed options; by default all of SETTINGS.")
    flags.DEFINE_integer("seeds", 5, "Seeds of each setting.")
    flags.DEFINE_enum("until", str(MARKS[-1]), list(map(str, MARKS)), "The last mark.")
    flags.DEFINE_integer("width", 256, "Units of each hidden layer.")
    flags.DEFINE_string("output_dir", "runs/catch_ablation", "The folder of the study.")
    flags.DEFINE_integer("cores", None, "Cores to use, by default all. No row depends on it.")
    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    app.run(main)
