"""The paper's single-agent experiment: catch or cart pole, one actor-critic, many seeds and settings.

Between `run_scripts/train_single_agent.py` and `pohp_neurd.online`. A run leaves config.json, metrics.csv,
checkpoints/ and curve.png. Runs are laid over the cores; none of their figures depends on how.
"""

import dataclasses
import functools
import itertools
import sys
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import tqdm

from pohp_neurd import checkpoint, checks, lifetimes, online, process
from pohp_neurd.experiment import lanes, records, run_folder
from pohp_neurd.experiment.plot import learning_curve
from pohp_neurd.games import cart_pole, catch

ENVIRONMENTS = ("catch", "cart_pole")

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

_OPTIONS = (
    *("learner", "updated", "baseline", "common_mode", "probability", "bootstrapped", "epsilon"),
    *("exploration_decay", "decay_start"),
)

# Threads within an operation would make a step slower, and its rounding a matter of their number.
ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}


@dataclasses.dataclass(frozen=True)
class Config:
    """What makes a single-agent experiment. Wrong values raise a ValueError here, before any work."""

    environment: str = "catch"
    learner: str = "neurd_cix"
    explorations: tuple[float, ...] = (1.0,)
    learning_rates: tuple[float, ...] = (0.00003,)
    seeds: int = 20
    first_seed: int = 0
    num_steps: int = 300_000
    interval: int = 1_000
    """Steps between two rows of metrics."""
    checkpoint_every: int = 50
    """Intervals between two checkpoints."""
    horizon: int | None = None
    """None: continuing, as in the paper. Otherwise the decisions of an episode at most."""
    swap_every: int | None = None
    """Of catch: steps after which left and right change their meanings, and again; None: never."""
    updated: str = "oldest"
    baseline: str = "critic"
    common_mode: str = "paper"
    probability: str = "acting"
    bootstrapped: str = "every"
    epsilon: float = 1e-8
    exploration_decay: float = 0.0
    """p of the factor (1 + t / decay_start)^-p on the exploration at update t."""
    decay_start: int = 1_000
    width: int = 256
    """Units of each hidden layer."""

    def __post_init__(self) -> None:
        checks.one_of("environment", self.environment, ENVIRONMENTS)
        self.options()  # checks its own
        for name in ("explorations", "learning_rates"):
            values = getattr(self, name)
            if not values:
                raise ValueError(f"{name} must hold at least one number, but is empty.")
            if len(set(values)) < len(values):
                raise ValueError(f"{name} must differ, but are {', '.join(f'{v:g}' for v in values)}.")
        for exploration in self.explorations:
            checks.in_unit_interval("exploration", exploration)
        for rate in self.learning_rates:
            checks.positive("learning_rate", rate)
        for name in ("seeds", "num_steps", "interval", "checkpoint_every", "width"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, but is {getattr(self, name)}.")
        checks.seed("first_seed", self.first_seed)
        checks.seed("the last seed", self.first_seed + self.seeds - 1)
        if self.num_steps % self.interval:
            raise ValueError(
                f"num_steps must be a multiple of interval, but {self.num_steps} is none of {self.interval}."
            )
        self.world()  # checks what is its own

    def options(self) -> online.Options:
        """The agent's options."""
        return online.Options(**{name: getattr(self, name) for name in _OPTIONS})

    def world(self) -> process.Process:
        """The environment."""
        if self.environment == "catch":
            return catch.Catch(horizon=self.horizon, swap_every=self.swap_every)
        if self.swap_every is not None:
            raise ValueError("swap_every is for environment=catch.")
        return cart_pole.CartPole(horizon=self.horizon)

    def runs(self) -> lifetimes.Runs:
        """Every learning rate with every exploration and every seed, the seeds innermost."""
        rates, explorations, seeds = zip(*self.settings(), strict=True)
        return lifetimes.Runs(
            np.array(seeds, np.int32), np.array(rates, np.float32), np.array(explorations, np.float32)
        )

    def settings(self) -> list[tuple[float, float, int]]:
        """Learning rate, exploration and seed of every run."""
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        return list(itertools.product(self.learning_rates, self.explorations, seeds))


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

    `stop_after` ends the work after so many intervals with a checkpoint, to be resumed.
    """
    folder = run_folder.open_run(path, dataclasses.asdict(config), resume=resume, overwrite=overwrite)
    runs = config.runs()
    num_lanes = min(num_cores, len(runs.seed))
    with lanes.workers(num_lanes) as work:
        advanced = functools.partial(advance, config)
        parts = [lane for lane, _ in work(advanced, [(part, None) for part in lanes.deal(runs, num_lanes)])]
        rows: list[dict[str, Any]] = []
        done = 0
        restored = None
        if resume:
            restored = checkpoint.restore(folder.checkpoints, lanes.gather([lives for _, lives in parts]))
        if restored is not None:
            for sentence in restored.damaged:
                print(f"Passed over a damaged checkpoint: {sentence}", file=sys.stderr)
            parts = list(zip(lanes.deal(runs, num_lanes), lanes.deal(restored.tree, num_lanes), strict=True))
            done = restored.step // config.interval
            rows = [row for row in read_rows(folder.metrics) if row["steps"] <= restored.step]
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
                bar.update(steps_each_round)
                if (index + 1) % config.checkpoint_every == 0 or index + 1 == last:
                    # Rows first: a resume drops those beyond its checkpoint, but could not make missing ones.
                    records.write_csv(folder.metrics, rows, COLUMNS)
                    lives = lanes.gather([lives for _, lives in parts])
                    checkpoint.save(folder.checkpoints, (index + 1) * config.interval, lives)
    figures = summary(config, rows)
    learning_curve.draw(folder.curve, rows, title=_title(config))
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
    whole = ("updates", "episodes", "steps", "seed")
    return [
        {name: int(text) if name in whole else float(text) for name, text in row.items()}
        for row in records.read_csv(path)
    ]


def _title(config: Config) -> str:
    name = config.environment.replace("_", " ")
    rates = ", ".join(f"{rate:g}" for rate in config.learning_rates)
    return f"{name}: {config.learner}, common mode {config.common_mode}, learning rate {rates}"
