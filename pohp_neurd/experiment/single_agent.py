"""The paper's single-agent experiment: catch or cart pole, one actor-critic, many seeds and settings.

Between `run_scripts/train_single_agent.py` and `pohp_neurd.online`. A run leaves config.json, metrics.csv,
checkpoints/ and curve.png. Runs are laid over the cores; none of their figures depends on how.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from pohp_neurd.experiment import configs, executor
from pohp_neurd.experiment import run as run_loop
from pohp_neurd.online import lifetimes
from pohp_neurd.results import figures, records

_SETTING = ("learning_rate", "exploration", "seed")
COLUMNS = (*run_loop.COUNTS, "reward", "total_reward", "entropy", "critic_error", *_SETTING)

# Threads within an operation would make a step slower, and its rounding a matter of their number.
ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}


Config = configs.SingleAgent


def run(config: Config, path: records.Path, *, num_cores: int = 1, **how: Any) -> dict[str, Any]:
    """Runs or resumes the experiment in the folder `path`, `how` as `run.finish` says; the final figures.

    The runs are laid over `num_cores` processes.
    """
    num_runs = config.seeds * len(config.learning_rates) * len(config.explorations)  # not yet made
    # Of each run its window, its weights and what Adam keeps of them.
    each = 1_000.0 + records.memory_of_layers((config.width,) * 2, copies=2)
    records.check_memory(num_runs * each, of=f"width={config.width} and {num_runs} runs")
    num_lanes = min(num_cores, num_runs)
    with executor.workers(num_lanes) as work:
        return run_loop.finish(lambda: task(config, work, num_lanes), path, **how)


class State(NamedTuple):
    """All lives, dealt into lanes, with the totals of the interval that led here."""

    parts: list["Lane"]
    intervals: int
    totals: lifetimes.Totals | None = None


def task(config: Config, work: Callable[..., Iterable[Any]], num_lanes: int) -> run_loop.Task:
    """The experiment as a run of intervals, with `work` a map over that many lanes."""
    advanced = functools.partial(advance, config)
    dealt, settings = deal(config.runs(), num_lanes), config.settings()

    def begin() -> State:
        return State([lane for lane, _ in work(advanced, [(part, None) for part in dealt])], 0)

    def advance_all(state: State, intervals: int) -> State:
        for _ in range(intervals):
            results = list(work(advanced, state.parts))
            totals = gather([part for _, part in results])
            state = State([lane for lane, _ in results], state.intervals + 1, totals)
            if diverged(config, state) is not None:
                break
        return state

    def again(lives: Any, intervals: int) -> State:
        return State(list(zip(dealt, deal(lives, num_lanes), strict=True)), intervals)

    def evaluate(state: State, interval: int, earlier: Sequence[run_loop.Row]) -> list[run_loop.Row]:
        totals, steps = state.totals, interval * config.interval
        assert totals is not None, "rows are of an interval"
        before = earlier[-len(settings) :] or [{"total_reward": 0.0, "episodes": 0}] * len(settings)
        options = config.options()
        # Entropy and error are 0 where there is no update: of 32 steps 31, of rollouts.
        mean_over = config.interval / (options.window if options.updated == "rollout" else 1)
        return [
            {
                "updates": options.updates(steps),
                "episodes": past["episodes"] + int(totals.episodes[index]),
                "steps": steps,
                "reward": float(totals.reward[index]),
                "total_reward": past["total_reward"] + float(totals.reward[index]),
                "entropy": round(float(totals.entropy[index]) / mean_over, 6),
                "critic_error": round(float(np.sqrt(totals.squared_error[index] / mean_over)), 6),
                **dict(zip(_SETTING, setting, strict=True)),
            }
            for index, (setting, past) in enumerate(zip(settings, before, strict=True))
        ]

    def finish(folder: records.RunFolder, rows: Sequence[run_loop.Row]) -> dict[str, Any]:
        name = config.environment.replace("_", " ")
        rates = ", ".join(f"{rate:g}" for rate in config.learning_rates)
        title = f"{name}: {config.learner}, common mode {config.common_mode}, learning rate {rates}"
        figures.reward(folder.curve, rows, title=title)
        return summary(config, rows)

    return run_loop.Task(
        dataclasses.asdict(config),
        run_loop.Pace(
            total=config.num_steps // config.interval,
            checkpoint_every=config.checkpoint_every,
            unit="step",
            size=config.interval * len(settings),
        ),
        COLUMNS,
        begin,
        advance_all,
        evaluate,
        finish,
        place=lambda row: int(row["steps"]) // config.interval,
        width=len(settings),
        diverged=functools.partial(diverged, config),
        kept=lambda state: gather([lives for _, lives in state.parts]),
        again=again,
        noun="step",
        step=config.interval,
    )


def summary(config: Config, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The final figures, over all runs and for every setting."""
    settings = []
    for rate, exploration in itertools.product(config.learning_rates, config.explorations):
        here = [r for r in rows if (r["learning_rate"], r["exploration"]) == (rate, exploration)]
        end = max(row["steps"] for row in here)
        late = [row for row in here if row["steps"] > 0.9 * end]
        totals = [row["total_reward"] for row in here if row["steps"] == end]
        span = len({row["steps"] for row in late}) * config.interval
        seeds = sorted({row["seed"] for row in here})
        ends = [-sum(row["reward"] for row in late if row["seed"] == seed) / span for seed in seeds]
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


def deal(tree: Any, count: int) -> list[Any]:
    """The runs of `tree`, along its leading axis, in `count` lanes of almost equal length."""
    shares = np.array_split(np.arange(len(jax.tree.leaves(tree)[0])), count)
    return [jax.tree.map(lambda leaf, s=s: leaf[s[0] : s[-1] + 1], tree) for s in shares]


def gather(trees: Sequence[Any]) -> Any:
    """The inverse of `deal`."""
    return jax.tree.map(lambda *parts: np.concatenate(parts), *trees)


Lane = tuple[lifetimes.Runs, Any]
"""Some runs, and their lives (None before they begin): what one process works on."""


def advance(config: Config, lane: Lane) -> tuple[Lane, lifetimes.Totals | None]:
    """The lane an interval later with its totals; where its lives had not begun, the lane as they begin."""
    runs, lives = lane
    # Seeds, learning rates and explorations are data, and compile nothing.
    one_of_each: Any = {"seeds": 1, "first_seed": 0, "explorations": (1.0,), "learning_rates": (1.0,)}
    begin, live = _compiled(dataclasses.replace(config, **one_of_each, num_steps=config.interval))
    if lives is None:
        return (runs, jax.device_get(begin(runs))), None
    lives, totals = jax.device_get(live(runs, lives))
    return (runs, lives), totals


@functools.lru_cache(maxsize=4)
def _compiled(config: Config) -> tuple[Any, Any]:
    world, options, torso = config.world(), config.options(), (config.width, config.width)

    def live(runs: lifetimes.Runs, lives: lifetimes.Life) -> tuple[lifetimes.Life, lifetimes.Totals]:
        return lifetimes.live_all(world, options, runs, lives, config.interval, torso=torso)

    begin = functools.partial(lifetimes.begin_all, world, options, torso=torso)
    return (
        jax.jit(begin, compiler_options=ONE_THREAD),
        jax.jit(live, donate_argnums=1, compiler_options=ONE_THREAD),
    )


def diverged(config: Config, state: State) -> tuple[str, str, str] | None:
    """Of which run the outputs, the parameters or the optimizer's state are not finite, if of any."""
    totals = state.totals
    if totals is None:
        return None
    lost = ~(np.isfinite(totals.squared_error) & np.isfinite(totals.entropy)) | totals.diverged
    if not lost.any():
        return None
    rate, exploration, seed = config.settings()[int(np.argmax(lost))]
    return (
        f"a value of seed {seed} at learning rate {rate:g} and exploration {exploration:g}",
        f"{state.intervals * config.interval:,} steps",
        "learning_rate",
    )
