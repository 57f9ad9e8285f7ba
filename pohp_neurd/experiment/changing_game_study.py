"""What exploration does when the game changes: step sizes chosen on some seeds, figures on others.

A study of an open question of Morrill et al. (2022), Section 6: how does the IX parameter impact performance
in non-stationary environments? SPG, NeuRD and NeuRD-CIX learn rock-paper-scissors whose bias jumps
(`changing_game`), and for comparison the same game standing still, to tell what exploration does for change
from what it does for learning.
"""

import dataclasses
import itertools
import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tqdm

from pohp_neurd.experiment import changing_game, changing_game_config, records, run_folder, summary, table
from pohp_neurd.experiment.plot import changing_game as picture

Config = changing_game_config.Config


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
    figures = merits(gaps, collapsed)
    cycle = len(changing_game.WINNERS) * changing_game.POINTS
    for place, (variant, size) in enumerate(zip(chosen, sizes, strict=True)):
        name = variant._asdict()
        for index, trial in enumerate(config.step_sizes):
            row = {"step_size": trial, "seeds": config.tuning_seeds, "chosen": int(trial == size)}
            tables.step_sizes.append(name | row | _figures(trials[index, place]))
        for seed, found in enumerate(figures[:, place]):
            row = {"step_size": size, "seed": config.seed + seed}
            tables.runs.append(name | row | _figures(found))
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
        for found in summary.summarise(runs, by=by, value=merit):
            figures = {name: found[name] for name in _SUMMARY}
            rounded = {n: round(v, 5) if isinstance(v, float) else v for n, v in figures.items()}
            rows.append({name: found[name] for name in by} | {"merit": merit} | rounded)
    return rows


def run(config: Config, folder: records.Path, name: str = "rock_paper_scissors") -> list[dict[str, Any]]:
    """The rows of the study's summary; tables and picture are left in `folder`, as NAME*.csv and NAME.png."""
    # The draws of an update of one call of `changing_game.play`, and the points that are kept of all seeds.
    points = len(changing_game.WINNERS) * changing_game.POINTS * config.cycles
    needed = 4.0 * (config.tuning_seeds * config.batch_size + (config.seeds + config.tuning_seeds) * points)
    run_folder.check_memory(
        needed, of=f"batch_size={config.batch_size}, cycles={config.cycles} and seeds={config.seeds}"
    )
    place = _made(folder, name)
    tables = study(config)
    rows = summaries(tables.runs)
    records.write_csv(place / f"{name}.csv", tables.runs, COLUMNS)
    records.write_csv(place / f"{name}_step_sizes.csv", tables.step_sizes, STEP_COLUMNS)
    records.write_csv(place / f"{name}_curves.csv", tables.curves, CURVE_COLUMNS)
    records.write_csv(place / f"{name}_summary.csv", rows, SUMMARY_COLUMNS)
    records.write_json(place / f"{name}.json", dataclasses.asdict(config))
    picture.draw(place / f"{name}.png", tables.runs)
    picture.draw_curves(place / f"{name}_curves.png", tables.curves, jump_every=config.jump_every)
    return rows


def _made(folder: records.Path, name: str) -> pathlib.Path:
    """The folder, made; a ValueError if files of that name cannot stand there: not after the whole study."""
    place = pathlib.Path(folder)
    if name != pathlib.Path(name).name or name in ("", ".."):
        raise ValueError(f"name must be a plain file name, but is {name!r}.")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{place} cannot be made: {error.strerror}.") from None
    if not os.access(place, os.W_OK | os.X_OK):
        raise ValueError(f"{place} must be a folder that may be written to, but is not.")
    return place


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
