"""A run of self-play in a game: its trainer as the task of a run, with policies and picture."""

import dataclasses
import functools
from collections.abc import Collection, Sequence
from typing import Any

from pohp_neurd import openspiel
from pohp_neurd.experiment import game_config, game_trainer, schema
from pohp_neurd.experiment import run as run_loop
from pohp_neurd.openspiel import saved
from pohp_neurd.results import curves, records, run_folder, table

COLUMNS = ("updates", "episodes", "steps", "seconds", "nash_conv", "nash_conv_average")
_NAMES = {"spg": "SPG", "neurd": "NeuRD", "neurd_cix": "NeuRD-CIX"}
_SHORT = {
    "nash_conv": "NashConv",
    "nash_conv_average": "average",
    "return_against_uniform": "against uniform",
    "mean_return": "return",
}


def run(
    config: game_config.Config,
    path: records.Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    tensorboard: bool = False,
    given: Collection[str] = (),
) -> dict[str, Any]:
    """Runs or resumes self-play in the folder `path`.

    Args:
      config: what is trained; what it leaves open is chosen for the kind of run.
      path: the folder of the run.
      resume: go on with the run that is there.
      overwrite: throw that run away.
      tensorboard: write event files, too.
      given: the fields that somebody has set: refused where the run does not read them.

    Returns:
      The final figures.
    """
    if tensorboard:
        run_loop.check_tensorboard()
    run_folder.check_open(path, resume=resume, overwrite=overwrite)
    _check_memory(config)
    config, trainer = game_trainer.build(config)
    schema.refuse_unread(config, given)
    chosen = {"resume": resume, "overwrite": overwrite, "tensorboard": tensorboard}
    return run_loop.finish(task(config, trainer), path, **chosen)


def task(config: game_config.Config, trainer: game_trainer.Trainer) -> run_loop.Task:
    """The run of a trainer; `config` has nothing left open."""
    columns = (*COLUMNS, *trainer.columns)

    def evaluate(state: Any, done: int, earlier: Sequence[Any]) -> list[dict[str, Any]]:
        return [{**trainer.counts(state), **trainer.evaluate(state)}]

    def diverged(state: Any) -> run_loop.Loss | None:
        first = trainer.diverged(state)
        if first is None:
            return None
        return run_loop.Loss("a parameter or the optimizer's state", f"update {first + 1}", "step_size")

    def export(folder: run_folder.RunFolder, done: int, state: Any) -> None:
        saved.save(folder.policy, done, trainer.export(state))

    return run_loop.Task(
        dataclasses.asdict(config),
        run_loop.Pace(
            total=game_config.updates(config),
            every=game_config.between(config),
            checkpoint_every=config.checkpoint_every,
            unit="episode" if config.update == "sampled" else "iteration",
            size=config.batch_size or 1,
        ),
        columns,
        trainer.init,
        trainer.advance,
        evaluate,
        functools.partial(_finish, config),
        diverged=diverged,
        export=export,
        empty=columns[4:],
        shown=_SHORT,
    )


def _finish(
    config: game_config.Config, folder: run_folder.RunFolder, rows: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    figures = {name: None if value == "" else value for name, value in rows[-1].items()}
    curves.nash_conv(folder.curve, rows, title=f"{_NAMES[config.learner]} in {config.game}, {config.policy}")
    return {"game": config.game, **figures, "curve": str(folder.curve)}


def _check_memory(config: game_config.Config) -> None:
    """Measured: 42 to 44 bytes for a step of an episode in a batch, and ten copies of a network's weights."""
    steps = (config.batch_size or 1) * openspiel.load_game(config.game).max_game_length()
    run_folder.check_memory(40.0 * steps, of=f"batch_size={config.batch_size} in {config.game}")
    if config.policy == "neural":
        layers = ",".join(map(str, config.hidden_layers))
        needed = run_folder.memory_of_layers(config.hidden_layers, copies=8)
        run_folder.check_memory(needed, of=f"hidden_layers={layers}")


def read_rows(path: records.Path, columns: Sequence[str] = COLUMNS) -> list[dict[str, Any]]:
    """The rows of a metrics file, as numbers; empty where there is no figure."""
    return table.figures(path, columns, empty=columns[4:])
