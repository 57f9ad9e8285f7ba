"""A bandit experiment: one problem, one learner, several estimators, thousands of runs, Theorem 1's bound.

Between `run_scripts/bandit.py` and `pohp_neurd.bandit`. A run leaves config.json, metrics.csv and curve.png.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from pohp_neurd import bandit, directions, openspiel, types
from pohp_neurd.experiment import configs
from pohp_neurd.experiment import run as run_loop
from pohp_neurd.results import figures, records

_REGRETS, _BOUND = ("regret_median", "regret_95", "regret_worst"), ("bound", "violations", "violation_limit")
COLUMNS = (*run_loop.COUNTS, "estimator", *_REGRETS, *_BOUND)

Config = configs.Bandit


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


def run(config: Config, path: records.Path, **how: Any) -> dict[str, Any]:
    """Runs or resumes the experiment in the folder `path`, `how` as `run.finish` says; the final figures."""
    needed = 8.0 * (config.seeds * config.arms + config.horizon)
    records.check_memory(needed, of=f"{config.seeds} runs of {config.horizon} rounds")
    # The bound is about sums of thousands of terms: float64.
    with jax.enable_x64(True):
        return run_loop.finish(lambda: task(config), path, **how)


class State(NamedTuple):
    """How many records there are, of one estimator after the other, and the runs of the last one."""

    records: int
    runs: Any


def task(config: Config) -> run_loop.Task:
    """The experiment as a run of records, one estimator after the other."""
    rounds = record_rounds(config.horizon)
    problem = build_problem(config)
    learner = build_learner(config, problem)
    schedule = build_schedule(config, problem.num_arms)
    players = [bandit.reduction(learner, estimator, schedule) for estimator in config.estimators]
    bounds = [
        bandit.regret.bound_curve(
            learner, config.horizon, problem.num_arms, problem.max_return, config.delta, player.schedule
        )
        for player in players
    ]
    places = {place: index + 1 for index, place in enumerate(itertools.product(config.estimators, rounds))}
    # The same key for every estimator: they differ in the estimator alone.
    key = jax.random.key(config.seed)

    def advance(state: State, count: int) -> State:
        for _ in range(count):
            number, index = divmod(state.records, len(rounds))
            player, runs = players[number], state.runs
            if index == 0:
                runs = bandit.simulation.begin(problem, player, config.seeds)
            start = rounds[index - 1] if index else 0
            runs = bandit.simulation.advance(
                problem, player, config.seeds, runs, key=key, start=start, stop=rounds[index]
            )
            state = State(state.records + 1, runs)
        return state

    def evaluate(state: State, done: int, earlier: Sequence[run_loop.Row]) -> list[run_loop.Row]:
        number, index = divmod(done - 1, len(rounds))
        count, bound = rounds[index], float(bounds[number][rounds[index] - 1])
        regrets = bandit.regret.worst_regret(jax.tree.map(np.asarray, state.runs.totals))
        limits: tuple[Any, ...] = (
            "",
            "",
            "",
        )  # without exploration there is no bound, and nothing to violate
        if np.isfinite(bound):
            violations = int(np.sum(regrets > bound))
            limits = bound, violations, bandit.regret.violation_limit(violations, len(regrets))
        found = *np.quantile(regrets, [0.5, 0.95, 1.0]).tolist(), *limits
        row = {"updates": count, "episodes": count, "steps": count, "estimator": config.estimators[number]}
        return [row | dict(zip((*_REGRETS, *_BOUND), found, strict=True))]

    def finish(folder: records.RunFolder, rows: Sequence[run_loop.Row]) -> dict[str, Any]:
        names = f"{problem.name}: {config.learner}".replace("_", " ")
        title = f"{names}, {problem.num_arms} arms, {config.seeds:,} runs"
        figures.regret(folder.curve, rows, title=title, delta=config.delta)
        final: dict[str, Any] = {"problem": config.problem, "horizon": config.horizon, "runs": config.seeds}
        for row in final_rows(rows):  # null where an estimator has no bound
            measured = {name: None if row[name] == "" else row[name] for name in COLUMNS[5:]}
            final[row["estimator"]] = measured
        return final

    return run_loop.Task(
        dataclasses.asdict(config),
        run_loop.Pace(total=len(rounds) * len(players), checkpoint_every=10, unit="record"),
        COLUMNS,
        lambda: State(0, bandit.simulation.begin(problem, players[0], config.seeds)),
        advance,
        evaluate,
        finish,
        place=lambda row: places.get((row["estimator"], row["updates"]), 0),
        kept=lambda state: state.runs,
        again=lambda runs, done: State(done, runs),
        noun="record",
        empty=_BOUND,
        text=("estimator",),
    )


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The last row of each estimator, for people."""
    heads = ("estimator", "median", "95%", "worst", "bound", "violations", "P(violation) below")
    lines = [heads]
    for row in final_rows(rows):
        limits = ["none", "-", "-"]
        if row["bound"] != "":
            limits = [f"{row['bound']:,.1f}", str(row["violations"]), f"{row['violation_limit']:.4f}"]
        lines.append((row["estimator"], *(f"{row[name]:,.1f}" for name in _REGRETS), *limits))
    first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
    return "\n".join("  ".join([line[0].ljust(first), *map(str.rjust, line[1:], others)]) for line in lines)


def final_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The row of the last round of each estimator."""
    return list({row["estimator"]: row for row in rows}.values())
