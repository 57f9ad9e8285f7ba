"""A bandit experiment: one problem, one learner, several estimators, thousands of runs, Theorem 1's bound.

Between `run_scripts/bandit.py` and `pohp_neurd.bandit`. A run leaves config.json, metrics.csv and curve.png.
"""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import tqdm

from pohp_neurd import bandit, directions, openspiel, types
from pohp_neurd.experiment import bandit_config, memory, records, run_folder
from pohp_neurd.experiment.figures import curves

COLUMNS = (
    "updates",
    "episodes",
    "steps",
    "seconds",
    "estimator",
    "regret_median",
    "regret_95",
    "regret_worst",
    "bound",
    "violations",
    "violation_limit",
)


Config = bandit_config.Config


def build_problem(config: Config) -> bandit.problems.Problem:
    """The problem that `config` names."""
    # Long enough to be learnt, short enough that the best arm changes several times.
    period = max(1, config.horizon // 8)
    if config.problem == "bernoulli":
        return bandit.problems.bernoulli([0.4] + [0.5] * (config.arms - 1))
    if config.problem == "switching":
        return bandit.problems.switching(config.arms, period)
    if config.problem == "adaptive":
        return bandit.problems.adaptive(config.arms)
    if config.problem == "rock_paper_scissors":
        return bandit.problems.rock_paper_scissors()
    if config.problem == "shifting_rock_paper_scissors":
        return bandit.problems.rock_paper_scissors(period=period)
    world = openspiel.compile_game("kuhn_poker")
    if config.problem == "kuhn":
        uniform = world.legal / world.legal.sum(axis=1, keepdims=True)
        return bandit.problems.against_fixed(world, 0, uniform)
    return bandit.problems.against_learner(world, bandit.learners.regret_matching_plus())


def build_learner(config: Config, problem: bandit.problems.Problem) -> bandit.learners.Learner:
    """The full-monitoring learner that `config` names, with step sizes for the problem."""
    arms, largest = problem.num_arms, problem.max_return
    if config.learner == "hedge":
        return bandit.learners.hedge(bandit.learners.anytime_step_size(arms, largest))
    if config.learner == "hedge_fixed":
        return bandit.learners.hedge(bandit.learners.fixed_step_size(arms, largest, config.horizon))
    if config.learner == "regret_matching":
        return bandit.learners.regret_matching()
    return bandit.learners.regret_matching_plus()


def build_schedule(config: Config, num_arms: int) -> types.Schedule:
    """The exploration of each round: constant, by ξ, or by the best ξ for `delta`."""
    if config.exploration is not None:
        return directions.constant(config.exploration)
    xi = bandit.best_xi(num_arms, config.delta) if config.xi is None else config.xi
    return directions.theorem1_exploration(xi, num_arms)


def record_rounds(horizon: int, count: int = 60) -> list[int]:
    """Rounds to look at: evenly spread, the last included."""
    return sorted(set(np.linspace(0, horizon, min(count, horizon) + 1, dtype=int)[1:].tolist()))


def run(config: Config, path: records.Path, *, overwrite: bool = False) -> list[dict[str, Any]]:
    """Runs the experiment, writes its files into the folder `path`, and returns the rows of metrics.csv."""
    memory.check(
        8.0 * (config.runs * config.arms + config.horizon),
        of=f"{config.runs} runs of {config.horizon} rounds",
    )
    with run_folder.opened(path, dataclasses.asdict(config), overwrite=overwrite) as folder:
        return _run(config, folder)


def _run(config: Config, folder: run_folder.RunFolder) -> list[dict[str, Any]]:
    rounds = record_rounds(config.horizon)
    rows: list[dict[str, Any]] = []
    # The bound is about sums of thousands of terms: float64.
    with (
        jax.enable_x64(True),
        tqdm.tqdm(total=len(rounds) * len(config.estimators), disable=None, unit="record") as progress,
    ):
        problem = build_problem(config)
        learner = build_learner(config, problem)
        schedule = build_schedule(config, problem.num_arms)
        for estimator in config.estimators:
            progress.set_description(estimator)
            player = bandit.reduction(learner, estimator, schedule)
            bounds = bandit.regret.bound_curve(
                learner, config.horizon, problem.num_arms, problem.max_return, config.delta, player.schedule
            )
            start = time.perf_counter()
            # The same key for every estimator: they differ in the estimator alone.
            key = jax.random.key(config.seed)
            played = bandit.simulation.play(problem, player, rounds, config.runs, key=key)
            for count, totals in zip(rounds, played, strict=True):
                seconds = time.perf_counter() - start
                rows.append(_row(estimator, count, seconds, totals, float(bounds[count - 1])))
                progress.update()
    records.write_csv(folder.metrics, rows, COLUMNS)
    names = f"{problem.name}: {config.learner}".replace("_", " ")
    title = f"{names}, {problem.num_arms} arms, {config.runs:,} runs"
    curves.regret(folder.curve, rows, title=title, delta=config.delta)
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The last row of each estimator, for people."""
    heads = ("estimator", "median", "95%", "worst", "bound", "violations", "P(violation) below")
    lines = [heads]
    for row in final_rows(rows):
        bounded = row["bound"] != ""
        lines.append(
            (
                row["estimator"],
                f"{row['regret_median']:,.1f}",
                f"{row['regret_95']:,.1f}",
                f"{row['regret_worst']:,.1f}",
                f"{row['bound']:,.1f}" if bounded else "none",
                str(row["violations"]) if bounded else "-",
                f"{row['violation_limit']:.4f}" if bounded else "-",
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def final_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The row of the last round of each estimator."""
    return list({row["estimator"]: row for row in rows}.values())


def final_figures(config: Config, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a run came to, for machines: null where an estimator has no bound."""
    figures: dict[str, Any] = {"problem": config.problem, "horizon": config.horizon, "runs": config.runs}
    for row in final_rows(rows):
        figures[row["estimator"]] = {name: None if row[name] == "" else row[name] for name in COLUMNS[5:]}
    return figures


def _row(
    estimator: str, count: int, seconds: float, totals: bandit.simulation.Totals, bound: float
) -> dict[str, Any]:
    regrets = bandit.regret.worst_regret(totals)
    bounded = bool(np.isfinite(bound))
    violations = int(np.sum(regrets > bound))
    median, high, worst = np.quantile(regrets, [0.5, 0.95, 1.0])
    return {
        "updates": count,
        "episodes": count,
        "steps": count,
        "seconds": round(seconds, 3),
        "estimator": estimator,
        "regret_median": float(median),
        "regret_95": float(high),
        "regret_worst": float(worst),
        # Without exploration there is no bound, and nothing to violate.
        "bound": bound if bounded else "",
        "violations": violations if bounded else "",
        "violation_limit": bandit.regret.violation_limit(violations, len(regrets)) if bounded else "",
    }
