"""What all runs of games are as tasks: their rows, policies on disk, and picture."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from pohp_neurd import learners
from pohp_neurd.experiment import game_config
from pohp_neurd.experiment import run as run_loop
from pohp_neurd.openspiel import saved
from pohp_neurd.results import figures, records

JUDGED = ("nash_conv", "nash_conv_average")
COLUMNS = (*run_loop.COUNTS, *JUDGED)
INFO = tuple(name for name in learners.Info._fields if name != "exploration")
"""What there is to plot of the last update."""

_GRID, _SHARE = 200, 0.1  # where evaluations cost much: at most so many, in at most that share of the time
_SHORT = {
    "nash_conv": "NashConv",
    "nash_conv_average": "average",
    "return_against_uniform": "against uniform",
    "mean_return": "return",
}


def task(
    config: game_config.Config,
    columns: Sequence[str],
    begin: Callable[[], Any],
    advance: Callable[[Any, int], Any],
    evaluate: Callable[[Any], run_loop.Row],
    policies: Callable[[Any], saved.Saved],
    lost: Callable[[Any], int | None],
    **more: Any,
) -> run_loop.Task:
    """The run whose rows `evaluate` makes, `lost` at the first update that it finds, if any."""

    def finish(folder: records.RunFolder, rows: Sequence[run_loop.Row]) -> dict[str, Any]:
        last = {name: None if value == "" else value for name, value in rows[-1].items()}
        title = f"{figures.name(['learner'], [config.learner])} in {config.game}, {config.policy}"
        figures.nash_conv(folder.curve, rows, title=title)
        figures_found = [row[name] for row in rows for name in JUDGED if row.get(name, "") != ""]
        best = {"nash_conv_best": min(figures_found)} if figures_found else {}
        return {"game": config.game, **last, **best, "curve": str(folder.curve)}

    def diverged(state: Any) -> tuple[str, str, str] | None:
        update = lost(state)
        what = "a parameter or the optimizer's state"
        return None if update is None else (what, f"update {update}", "step_size")

    return run_loop.Task(
        dataclasses.asdict(config),
        run_loop.Pace(
            total=game_config.updates(config),
            every=max(1, (config.eval_every or config.budget // _GRID) // (config.batch_size or 1)),
            share=None if config.eval_every else _SHARE,
            checkpoint_every=config.checkpoint_every,
            unit="episode" if config.update == "sampled" else "iteration",
            size=config.batch_size or 1,
        ),
        (*COLUMNS, *columns),
        begin,
        advance,
        lambda state, done, earlier: [evaluate(state)],
        finish,
        diverged=diverged,
        export=lambda folder, done, state: saved.save(folder.policy, done, policies(state)),
        empty=(*COLUMNS[4:], *columns),
        shown=_SHORT,
        **more,
    )


def info_row(info: learners.Info | None) -> dict[str, float]:
    """The part of a row that is of the last update; empty before the first."""
    return {} if info is None else {name: float(getattr(info, name)) for name in INFO}


def networks(
    config: game_config.Config, current: Sequence[Any], average: Sequence[Any], world: Any = None
) -> saved.Saved:
    """The networks of a run, one or one for each seat, as they are saved."""
    about = saved.About(
        *(config.game, "neural", config.hidden_layers, has_critic(config), len(current)),
        compiled="tree" if world is None else "graph",
    )
    return saved.Saved(about, current, average, world=world)


def has_critic(config: game_config.Config) -> bool:
    """Whether a network has one."""
    return config.baseline and config.baseline_of == "state"
