"""What exploration does when the game changes: step sizes chosen on some seeds, figures on others.

    python studies/changing_game/study.py --output_dir=runs/changing_game
    python studies/changing_game/study.py --jump_every=200 --cycles=20 --output_dir=runs/fast

A study of an open question of Morrill et al. (2022), Section 6: how does the IX parameter impact performance
in non-stationary environments? SPG, NeuRD and NeuRD-CIX learn rock-paper-scissors whose bias jumps
(`changing_game`), and for comparison the same game standing still, to tell what exploration does for change
from what it does for learning. Prints a row for each setting, the mean over seeds with its 95% interval;
writes runs.csv (a row for each run), summary.csv, step_sizes.csv, curves.csv, config.json and two figures.
"""

import dataclasses
import itertools
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import changing_game
import figures
import numpy as np
import tqdm
from absl import app, flags, logging

from pohp_neurd import checks
from pohp_neurd.results import records, table


@dataclasses.dataclass(frozen=True)
class Config:
    """The whole study: every learner in every world, over exploration and step sizes."""

    bias: float = 5.0
    jump_every: int = 1_000
    cycles: int = 4
    batch_size: int = 4
    explorations: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
    """Constant ones; 0 is NeuRD."""
    decreasing: tuple[float, ...] = (0.1, 0.3, 1.0)
    """First values of explorations that fall as 1 / √(1 + t / decay_start), the rate of Theorem 1."""
    decay_start: float = 100.0
    step_sizes: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
    """On returns that are scaled to [−1, 0]."""
    magnet_strengths: tuple[float, ...] = (0.0, 0.05)
    """For self-play; the bandit has none."""
    baselines: tuple[str, ...] = changing_game.BASELINES
    magnet_speed: float = 0.02
    baseline_speed: float = 0.05
    """Of the running mean of returns."""
    seeds: int = 20
    tuning_seeds: int = 10
    """Seeds on which step sizes are chosen; others than those that are reported."""
    seed: int = 0

    def __post_init__(self) -> None:
        checks.positive("bias", self.bias)
        checks.positive("decay_start", self.decay_start)
        for name in ("explorations", "decreasing", "magnet_speed", "baseline_speed"):
            checks.in_unit_interval(name, getattr(self, name))
        checks.positive("step_sizes", self.step_sizes)
        checks.non_negative("magnet_strengths", self.magnet_strengths)
        for baseline in self.baselines:
            checks.one_of("baselines", baseline, changing_game.BASELINES)
        for name in ("jump_every", "cycles", "batch_size", "seeds", "tuning_seeds"):
            checks.count(name, getattr(self, name))
        checks.seed("seed", self.seed)
        checks.seed("the last tuning seed", self.seed + self.seeds + self.tuning_seeds - 1)
        if self.seeds % self.tuning_seeds:
            raise ValueError(
                f"seeds must be a multiple of tuning_seeds, {self.tuning_seeds}, but is {self.seeds}."
            )
        if self.jump_every % changing_game.POINTS:
            raise ValueError(
                f"jump_every must be a multiple of {changing_game.POINTS}, but is {self.jump_every}."
            )


class Variant(NamedTuple):
    """A learner as the study compares it: everything but its step size."""

    reading: str
    world: str
    magnet_strength: float
    baseline: str
    learner: str
    schedule: str
    exploration: float | str
    """Empty for SPG, which has none."""


def variants(config: Config, reading: str, kind: str, learner: str) -> list[Variant]:
    """All variants of one compiled function, in the order of the tables."""
    magnets = config.magnet_strengths if reading == "self_play" else (0.0,)
    plans: list[tuple[str, float | str]] = [("constant", "")]
    if learner != "spg":
        plans = [("constant", value) for value in config.explorations]
        plans += [("decreasing", value) for value in config.decreasing]
    return [
        Variant(reading, kind, magnet, baseline, learner, schedule, exploration)
        for magnet, baseline, (schedule, exploration) in itertools.product(magnets, config.baselines, plans)
    ]


def setting(variants: Sequence[Variant], step_sizes: Sequence[float]) -> changing_game.Setting:
    """`variants` as arrays for `changing_game.play`, each with its step size."""
    columns = zip(
        *[
            (
                variant.exploration or 0.0,
                0.5 if variant.schedule == "decreasing" else 0.0,
                step_size,
                variant.magnet_strength,
                changing_game.BASELINES.index(variant.baseline),
            )
            for variant, step_size in zip(variants, step_sizes, strict=True)
        ],
        strict=True,
    )
    return changing_game.Setting(*[np.asarray(column, np.float32) for column in columns])


MERITS = ("tracking", "reacting", "settling", "first_cycle", "last_cycle", "collapsed")
"""NashConv (the bandit: regret) over the run, in phases' first and last quarters, in the first and the last
cycle; the share of updates at which a policy had collapsed."""

COLUMNS = (*Variant._fields, "step_size", "seed", *MERITS)
STEP_COLUMNS = (*Variant._fields, "step_size", "seeds", "chosen", *MERITS)
CURVE_COLUMNS = (*Variant._fields, "step_size", "update", "gap")


class Tables(NamedTuple):
    """What the study found, as rows of CSV files."""

    runs: list[dict[str, Any]]
    """A row for each reported run, at its variant's chosen step size."""
    step_sizes: list[dict[str, Any]]
    """Means over the tuning seeds, at every step size."""
    curves: list[dict[str, Any]]
    """The last cycle of constant explorations in the world that jumps, mean over the reported seeds."""


def study(config: Config, *, progress: bool | None = None) -> Tables:
    """Chooses each variant's step size on the tuning seeds, by the least mean `tracking`; reports on others.

    Seeds `seed` to `seed` + `seeds` − 1 are reported, the `tuning_seeds` after them are for the choice. All
    calls of `play` with one learner in one reading have the same shapes, and so one compilation.
    """
    tables = Tables([], [], [])
    pace = changing_game.Pace(**{name: getattr(config, name) for name in changing_game.Pace._fields})
    reported = np.arange(config.seeds).reshape(-1, config.tuning_seeds) + config.seed
    tuning = np.arange(config.tuning_seeds) + config.seed + config.seeds
    jobs = list(itertools.product(changing_game.READINGS, changing_game.LEARNERS, changing_game.WORLDS))
    calls = len(jobs) * (len(config.step_sizes) + len(reported))
    # None: tqdm shows itself in a terminal only.
    with tqdm.tqdm(total=calls, disable=None if progress is None else not progress) as bar:
        for reading, learner, kind in jobs:
            chosen = variants(config, reading, kind, learner)
            place = changing_game.world(kind, bias=config.bias, cycles=config.cycles)
            trials = []
            for size in config.step_sizes:
                found = _played(place, chosen, [size] * len(chosen), tuning, pace)
                trials.append(merits(*found).mean(0))
                bar.update()
            best = np.argmin(np.stack(trials)[:, :, 0], axis=0)
            sizes = [config.step_sizes[index] for index in best]
            parts = []
            for seeds in reported:
                parts.append(_played(place, chosen, sizes, seeds, pace))
                bar.update()
            gaps, collapsed = (np.concatenate(part) for part in zip(*parts, strict=True))
            _collect(tables, config, chosen, sizes, np.stack(trials), gaps, collapsed)
    return tables


def _played(
    world: changing_game.World,
    chosen: Sequence[Variant],
    step_sizes: Sequence[float],
    seeds: np.ndarray,
    pace: changing_game.Pace,
) -> tuple[np.ndarray, np.ndarray]:
    """`changing_game.play` of variants of one learner in one reading."""
    settings = setting(chosen, step_sizes)
    learner, reading = chosen[0].learner, chosen[0].reading
    gaps, collapsed = changing_game.play(world, settings, seeds, learner=learner, reading=reading, pace=pace)
    return np.asarray(gaps, np.float64), np.asarray(collapsed, np.float64)


def merits(gaps: np.ndarray, collapsed: np.ndarray) -> np.ndarray:
    """The figures of MERITS, [seeds, variants, merits]."""
    cycle = len(changing_game.WINNERS) * changing_game.POINTS
    phases = gaps.reshape(*gaps.shape[:-1], -1, changing_game.POINTS)
    first, last = phases[..., : changing_game.POINTS // 4], phases[..., -changing_game.POINTS // 4 :]
    means = [
        gaps.mean(-1),
        first.mean((-2, -1)),
        last.mean((-2, -1)),
        gaps[..., :cycle].mean(-1),
        gaps[..., -cycle:].mean(-1),
        collapsed.mean(-1),
    ]
    return np.stack(means, axis=-1)


def _collect(
    tables: Tables,
    config: Config,
    chosen: Sequence[Variant],
    sizes: Sequence[float],
    trials: np.ndarray,
    gaps: np.ndarray,
    collapsed: np.ndarray,
) -> None:
    """Adds one job's figures to the tables."""
    found = merits(gaps, collapsed)
    cycle = len(changing_game.WINNERS) * changing_game.POINTS
    for place, (variant, size) in enumerate(zip(chosen, sizes, strict=True)):
        name = variant._asdict()
        for index, trial in enumerate(config.step_sizes):
            row = {"step_size": trial, "seeds": config.tuning_seeds, "chosen": int(trial == size)}
            tables.step_sizes.append(name | row | _figures(trials[index, place]))
        for seed, each in enumerate(found[:, place]):
            row = {"step_size": size, "seed": config.seed + seed}
            tables.runs.append(name | row | _figures(each))
        if variant.world == "jumping" and variant.schedule == "constant":
            for point, gap in enumerate(gaps[:, place, -cycle:].mean(0)):
                # The middle of the point's updates, counted from the last cycle's start.
                update = int((point + 0.5) * config.jump_every / changing_game.POINTS)
                tables.curves.append(
                    name | {"step_size": size, "update": update, "gap": round(float(gap), 4)}
                )


def _figures(merits: np.ndarray) -> dict[str, float]:
    return {name: round(float(value), 5) for name, value in zip(MERITS, merits, strict=True)}


_SUMMARY = ("runs", "mean", "mean_low", "mean_high", "iqm", "iqm_low", "iqm_high")
SUMMARY_COLUMNS = (*Variant._fields, "step_size", "merit", *_SUMMARY)


def summaries(runs: Sequence[table.Row]) -> list[dict[str, Any]]:
    """Mean and interquartile mean of every merit of every variant, with 95% bootstrap intervals."""
    by = (*Variant._fields, "step_size")
    rows = []
    for merit in MERITS:
        for found in table.summarise(runs, by=by, value=merit):
            rounded = {n: round(found[n], 5) if isinstance(found[n], float) else found[n] for n in _SUMMARY}
            rows.append({name: found[name] for name in by} | {"merit": merit} | rounded)
    return rows


def run(config: Config, folder: records.Path) -> list[dict[str, Any]]:
    """The rows of the study's summary; tables and figures are left in `folder`."""
    tables = study(config)
    rows = summaries(tables.runs)
    place = pathlib.Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    records.write_csv(place / "runs.csv", tables.runs, COLUMNS)
    records.write_csv(place / "step_sizes.csv", tables.step_sizes, STEP_COLUMNS)
    records.write_csv(place / "curves.csv", tables.curves, CURVE_COLUMNS)
    records.write_csv(place / "summary.csv", rows, SUMMARY_COLUMNS)
    records.write_json(place / "config.json", dataclasses.asdict(config))
    figures.draw(place / "exploration.png", tables.runs)
    figures.draw_curves(place / "curves.png", tables.curves, jump_every=config.jump_every)
    return rows


def line(row: table.Row) -> str:
    """A row of the summary for people; a dash where there is no interval, as of one seed."""
    learner = "SPG" if row["learner"] == "spg" else f"NeuRD-CIX({row['exploration']:g})"
    schedule = " decreasing" if row["schedule"] == "decreasing" else ""
    low, high = row["mean_low"], row["mean_high"]
    interval = "–" if "" in (low, high) else f"[{low:.3f}, {high:.3f}]"
    return (
        f"{row['reading']:<9} {row['world']:<7} magnet {row['magnet_strength']:<4g} "
        f"baseline {row['baseline']:<5} "
        f"{learner + schedule:<27} step size {row['step_size']:<5g} {row['mean']:.3f} {interval}"
    )


_MEANINGS = {
    "bias": "How many times the favoured win counts.",
    "jump_every": "Updates between two jumps; a multiple of 20.",
    "cycles": "How often the three phases are gone through.",
    "batch_size": "Games of one update.",
    "decay_start": "Decreasing exploration falls as 1 / sqrt(1 + t / decay_start) at update t.",
    "magnet_speed": "How far the magnet moves to the policy in an update.",
    "baseline_speed": "How far the running mean of returns moves in an update.",
    "seeds": "Reported seeds, a multiple of --tuning_seeds.",
    "tuning_seeds": "Seeds after those, on which step sizes are chosen.",
    "seed": "The first seed.",
}


def main(_: Sequence[str]) -> None:
    """Turns flags into a config, runs the study and prints its summary."""
    folder = flags.FLAGS.output_dir
    try:
        chosen: dict[str, Any] = {name: flags.FLAGS[name].value for name in _MEANINGS}
        config = Config(**chosen)
        records.check_writable(folder)
    except ValueError as error:
        sys.exit(str(error))
    for row in run(config, folder):
        if row["merit"] == "tracking":
            print(line(row))


if __name__ == "__main__":
    for _name, _meaning in _MEANINGS.items():
        _default = getattr(Config, _name)
        _define = flags.DEFINE_integer if isinstance(_default, int) else flags.DEFINE_float
        _define(_name, _default, _meaning)
    flags.DEFINE_string("output_dir", "runs/changing_game", "The folder for tables and figures.")
    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    app.run(main)
