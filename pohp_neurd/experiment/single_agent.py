"""The paper's single-agent experiment: catch or cart pole, one actor-critic, many seeds and settings.

Between `run_scripts/train_single_agent.py` and `pohp_neurd.online`. A run leaves config.json, metrics.csv,
checkpoints/ and curve.png. Runs are laid over the cores; none of their figures depends on how.
"""

import dataclasses
import functools
import itertools
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import tqdm

from pohp_neurd import checkpoint, checks
from pohp_neurd.experiment import (
    interruption,
    lanes,
    memory,
    records,
    run_folder,
    single_agent_config,
    table,
)
from pohp_neurd.experiment.figures import curves
from pohp_neurd.online import lifetimes

COLUMNS = (
    "updates",
    "episodes",
    "steps",
    "seconds",
    "reward",
    "total_reward",
    "entropy",
    "critic_error",
    "learning_rate",
    "exploration",
    "seed",
)

# Threads within an operation would make a step slower, and its rounding a matter of their number.
ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}


Config = single_agent_config.Config


def run(
    config: Config,
    path: records.Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    num_cores: int = 1,
    stop_after: int | None = None,
) -> dict[str, Any]:
    """Runs or resumes the experiment in the folder `path`; the final figures.

    `stop_after` ends the work after so many intervals with a checkpoint, to be resumed; so do signals.
    """
    num_runs = config.seeds * len(config.learning_rates) * len(config.explorations)
    # Of each run its window, its weights and what Adam keeps of them.
    each = 1_000.0 + memory.of_layers((config.width,) * 2, copies=2)
    memory.check(num_runs * each, of=f"width={config.width} and {num_runs} runs")
    chosen = {"resume": resume, "overwrite": overwrite}
    with (
        run_folder.opened(path, dataclasses.asdict(config), **chosen) as folder,
        interruption.watched() as asked,
    ):
        return _run(config, folder, resume, num_cores, stop_after, asked)


def _run(
    config: Config,
    folder: run_folder.RunFolder,
    resume: bool,
    num_cores: int,
    stop_after: int | None,
    asked: Callable[[], int | None],
) -> dict[str, Any]:
    digest = folder.digest
    runs = config.runs()
    num_lanes = min(num_cores, len(runs.seed))
    with lanes.workers(num_lanes) as work:
        advanced = functools.partial(advance, config)
        parts = [lane for lane, _ in work(advanced, [(part, None) for part in lanes.deal(runs, num_lanes)])]
        rows: list[dict[str, Any]] = []
        done = 0
        restored = None
        if resume:
            begun = lanes.gather([lives for _, lives in parts])
            restored = checkpoint.restore(folder.checkpoints, begun, run=digest)
        if restored is not None:
            for sentence in restored.damaged:
                print(f"Passed over a damaged checkpoint: {sentence}", file=sys.stderr)
            parts = list(zip(lanes.deal(runs, num_lanes), lanes.deal(restored.tree, num_lanes), strict=True))
            done = restored.step // config.interval
            rows = [row for row in read_rows(folder.metrics) if row["steps"] <= restored.step]
            if len(rows) != done * len(config.settings()):
                raise ValueError(
                    f"{folder.metrics} must have {done * len(config.settings()):,} rows up to step "
                    f"{restored.step:,}, but has {len(rows):,}."
                )
        started = time.perf_counter() - max((row["seconds"] for row in rows), default=0.0)
        total = config.num_steps // config.interval
        last = total if stop_after is None else min(total, done + stop_after)
        steps_each_round = config.interval * len(runs.seed)
        with tqdm.tqdm(
            total=total * steps_each_round,
            initial=done * steps_each_round,
            unit="step",
            unit_scale=True,
            disable=None,
        ) as bar:
            for index in range(done, last):
                results = list(work(advanced, parts))
                parts = [lane for lane, _ in results]
                totals = lanes.gather([part for _, part in results])
                _check_finite(config, totals, index + 1, checkpoint.steps(folder.checkpoints))
                rows += _rows(config, rows, totals, index + 1, time.perf_counter() - started)
                signal = asked()
                if (index + 1) % config.checkpoint_every == 0 or index + 1 == last or signal is not None:
                    # Rows first: a resume drops those beyond its checkpoint, but could not make missing ones.
                    records.write_csv(folder.metrics, rows, COLUMNS)
                    lives = lanes.gather([lives for _, lives in parts])
                    steps = (index + 1) * config.interval
                    checkpoint.save(folder.checkpoints, steps, lives, run=digest)
                if signal is not None and index + 1 < last:
                    told = f"{steps:,} steps; go on with --resume in {folder.path}"
                    raise interruption.Interrupted(signal, told)
                bar.update(steps_each_round)
    figures = summary(config, rows)
    curves.reward(folder.curve, rows, title=_title(config))
    return figures


def summary(config: Config, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The final figures, over all runs and for every setting."""
    settings = []
    for rate, exploration in itertools.product(config.learning_rates, config.explorations):
        here = [r for r in rows if (r["learning_rate"], r["exploration"]) == (rate, exploration)]
        end = max(row["steps"] for row in here)
        late = [row for row in here if row["steps"] > 0.9 * end]
        totals = [row["total_reward"] for row in here if row["steps"] == end]
        span = len({row["steps"] for row in late}) * config.interval
        ends = [
            -sum(row["reward"] for row in late if row["seed"] == seed) / span
            for seed in sorted({row["seed"] for row in here})
        ]
        settings.append(
            {
                "learning_rate": rate,
                "exploration": exploration,
                "total_reward_mean": float(np.mean(totals)),
                "total_reward_worst": float(np.min(totals)),
                "total_reward_best": float(np.max(totals)),
                "losses_per_step_at_end": ends,
            }
        )
    return {
        "environment": config.environment,
        "learner": config.learner,
        "common_mode": config.common_mode,
        "steps": max(row["steps"] for row in rows),
        "seconds": round(max(row["seconds"] for row in rows), 3),
        "settings": settings,
    }


Lane = tuple[lifetimes.Runs, Any]
"""Some runs, and their lives (None before they begin): what one process works on."""


def advance(config: Config, lane: Lane) -> tuple[Lane, lifetimes.Totals | None]:
    """The lane an interval later with its totals; where its lives had not begun, the lane as they begin."""
    runs, lives = lane
    begin, live = _compiled(_shared(config))
    if lives is None:
        return (runs, jax.device_get(begin(runs))), None
    lives, totals = jax.device_get(live(runs, lives))
    return (runs, lives), totals


def _shared(config: Config) -> Config:
    """`config` but for its seeds, learning rates and explorations: these are data, and compile nothing."""
    return dataclasses.replace(
        config, seeds=1, first_seed=0, explorations=(1.0,), learning_rates=(1.0,), num_steps=config.interval
    )


@functools.lru_cache(maxsize=4)
def _compiled(config: Config) -> tuple[Any, Any]:
    world, options, torso = config.world(), config.options(), (config.width, config.width)

    def begin(runs: lifetimes.Runs) -> lifetimes.Life:
        return lifetimes.begin_all(world, options, runs, torso=torso)

    def live(runs: lifetimes.Runs, lives: lifetimes.Life) -> tuple[lifetimes.Life, lifetimes.Totals]:
        return lifetimes.live_all(world, options, runs, lives, config.interval, torso=torso)

    return (
        jax.jit(begin, compiler_options=ONE_THREAD),
        jax.jit(live, donate_argnums=1, compiler_options=ONE_THREAD),
    )


def _check_finite(config: Config, totals: lifetimes.Totals, interval: int, saved: Sequence[int]) -> None:
    """Raises Diverged if a run's outputs, its parameters or its optimizer's state are not finite."""
    lost = ~(np.isfinite(totals.squared_error) & np.isfinite(totals.entropy)) | totals.diverged
    if not lost.any():
        return
    rate, exploration, seed = config.settings()[int(np.argmax(lost))]
    raise checks.Diverged(
        f"a value of seed {seed} at learning rate {rate:g} and exploration {exploration:g}",
        after=f"{interval * config.interval:,} steps",
        remedy="learning_rate",
        checkpoint=f"the checkpoint of step {saved[-1]:,} is good" if saved else "there is no checkpoint yet",
    )


def _rows(
    config: Config, earlier: Sequence[dict[str, Any]], totals: lifetimes.Totals, interval: int, seconds: float
) -> list[dict[str, Any]]:
    settings = config.settings()
    before = earlier[-len(settings) :] or [{"total_reward": 0.0, "episodes": 0}] * len(settings)
    steps = interval * config.interval
    first = 1 if config.updated == "all" else config.options().window
    rows = []
    for index, (rate, exploration, seed) in enumerate(settings):
        reward = float(totals.reward[index])
        rows.append(
            {
                "updates": max(0, steps - first),
                "episodes": before[index]["episodes"] + int(totals.episodes[index]),
                "steps": steps,
                "seconds": round(seconds, 3),
                "reward": reward,
                "total_reward": before[index]["total_reward"] + reward,
                "entropy": round(float(totals.entropy[index]) / config.interval, 6),
                "critic_error": round(float(np.sqrt(totals.squared_error[index] / config.interval)), 6),
                "learning_rate": rate,
                "exploration": exploration,
                "seed": seed,
            }
        )
    return rows


def read_rows(path: records.Path) -> list[dict[str, Any]]:
    """The rows of a metrics file, as numbers."""
    return table.figures(path, COLUMNS)


def _title(config: Config) -> str:
    name = config.environment.replace("_", " ")
    rates = ", ".join(f"{rate:g}" for rate in config.learning_rates)
    return f"{name}: {config.learner}, common mode {config.common_mode}, learning rate {rates}"
