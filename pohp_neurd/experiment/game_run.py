"""A run of self-play in a game: it can be stopped at any moment, and goes on to the bit."""

import dataclasses
import sys
import time
from collections.abc import Sequence
from typing import Any

import tqdm

from pohp_neurd import checkpoint, checks, openspiel
from pohp_neurd.experiment import (
    event_file,
    game_config,
    game_trainer,
    interruption,
    memory,
    records,
    run_folder,
    table,
)
from pohp_neurd.experiment.figures import curves
from pohp_neurd.openspiel import saved

COLUMNS = ("updates", "episodes", "steps", "seconds", "nash_conv", "nash_conv_average")
_PATIENCE = 0.5  # seconds between two looks at the clock, the signals and the bar


def run(
    config: game_config.Config,
    path: records.Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    tensorboard: bool = False,
) -> dict[str, Any]:
    """Runs or resumes self-play in the folder `path`; the final figures."""
    if tensorboard:
        event_file.check_available()
    run_folder.check_open(path, resume=resume, overwrite=overwrite)
    _check_memory(config)
    config, trainer = game_trainer.build(config)
    chosen = {"resume": resume, "overwrite": overwrite}
    with run_folder.opened(path, dataclasses.asdict(config), **chosen) as folder:
        state, rows = _restored(config, trainer, folder) if resume else (trainer.init(), [])
        with (
            event_file.opened(folder.events if tensorboard else None) as events,
            interruption.watched() as asked,
        ):
            rows = _Progress(config, trainer, folder, rows, events, asked).finish(state)
        figures = {name: None if value == "" else value for name, value in rows[-1].items()}
        curves.nash_conv(
            folder.curve, rows, title=f"{_NAMES[config.learner]} in {config.game}, {config.policy}"
        )
    return {"game": config.game, **figures, "curve": str(folder.curve)}


def _check_memory(config: game_config.Config) -> None:
    """Measured: 42 to 44 bytes for a step of an episode in a batch, and ten copies of a network's weights."""
    steps = (config.batch_size or 1) * openspiel.load_game(config.game).max_game_length()
    memory.check(40.0 * steps, of=f"batch_size={config.batch_size} in {config.game}")
    if config.policy == "neural":
        layers = ",".join(map(str, config.hidden_layers))
        memory.check(memory.of_layers(config.hidden_layers, copies=8), of=f"hidden_layers={layers}")


def _restored(
    config: game_config.Config, trainer: game_trainer.Trainer, folder: run_folder.RunFolder
) -> tuple[Any, list[dict[str, Any]]]:
    """The state of the newest checkpoint, and the rows until then."""
    state = trainer.init()
    restored = checkpoint.restore(folder.checkpoints, state, run=folder.digest)
    if restored is None:
        return state, []
    for sentence in restored.damaged:
        print(f"Passed over a damaged checkpoint: {sentence}", file=sys.stderr)
    # A run that was stopped before its first evaluation has a checkpoint, but no rows.
    columns = (*COLUMNS, *trainer.columns)
    known = read_rows(folder.metrics, columns) if folder.metrics.exists() else []
    rows = [row for row in known if row["updates"] <= restored.step]
    total, between = game_config.updates(config), game_config.between(config)
    due = [update for update in range(1, restored.step + 1) if update % between == 0 or update == total]
    if [row["updates"] for row in rows] != due:
        raise ValueError(f"{folder.metrics} must have a row of each of {len(due)} evaluations, but has not.")
    return restored.tree, rows


_NAMES = {"spg": "SPG", "neurd": "NeuRD", "neurd_cix": "NeuRD-CIX"}


def read_rows(path: records.Path, columns: Sequence[str] = COLUMNS) -> list[dict[str, Any]]:
    """The rows of a metrics file, as numbers; empty where there is no figure."""
    return table.figures(path, columns, empty=columns[4:])


class _Progress:
    """The loop of a run, with what it has to look after."""

    def __init__(
        self,
        config: game_config.Config,
        trainer: game_trainer.Trainer,
        folder: run_folder.RunFolder,
        rows: list[dict[str, Any]],
        events: event_file.Events,
        asked: Any,
    ) -> None:
        self._config, self._trainer, self._folder = config, trainer, folder
        self._rows, self._events, self._asked = rows, events, asked
        self._columns = (*COLUMNS, *trainer.columns)
        self._run = folder.digest
        self._batch = config.batch_size or 1
        self._total = game_config.updates(config)
        self._between = game_config.between(config)
        self._begun = time.perf_counter() - (rows[-1]["seconds"] if rows else 0.0)
        self._saved: int | None = rows[-1]["updates"] if rows else None

    def finish(self, state: Any) -> list[dict[str, Any]]:
        """Trains to the end; the rows of the whole run."""
        done = self._trainer.counts(state)["updates"]
        unit = "episode" if self._config.update == "sampled" else "iteration"
        with tqdm.tqdm(
            total=self._total * self._batch,
            initial=done * self._batch,
            unit=unit,
            unit_scale=True,
            disable=None,
        ) as bar:
            while done < self._total:
                following = min(self._total, (done // self._between + 1) * self._between)
                state = self._advance(state, following - done, bar)
                done = following
                self._evaluate(state, bar)
                ended = done == self._total
                if ended or done // self._between % self._config.checkpoint_every == 0:
                    self._save(state)
        return self._rows

    def _advance(self, state: Any, updates: int, bar: Any) -> Any:
        """`updates` more, in pieces that take about as long as one is willing to wait for an answer."""
        piece = 1
        while updates:
            begun = time.perf_counter()
            piece = min(piece, updates)
            state = self._trainer.advance(state, piece)
            first = self._trainer.diverged(state)
            if first is not None:
                good = f"the checkpoint of update {self._saved} is good"
                raise checks.Diverged(
                    "a parameter or the optimizer's state",
                    after=f"update {first + 1}",
                    remedy="step_size",
                    checkpoint="there is no checkpoint yet" if self._saved is None else good,
                )
            updates -= piece
            number = self._asked()  # before the bar: where the terminal was closed, it can no longer be drawn
            if number is not None:
                self._save(state)
                done = f"{self._trainer.counts(state)['updates']:,} updates"
                raise interruption.Interrupted(number, f"{done}; go on with --resume in {self._folder.path}")
            bar.update(piece * self._batch)
            if time.perf_counter() - begun < _PATIENCE:
                piece *= 2
        return state

    def _evaluate(self, state: Any, bar: Any) -> None:
        figures, counts = self._trainer.evaluate(state), self._trainer.counts(state)
        seconds = round(time.perf_counter() - self._begun, 3)
        row = {
            **dict.fromkeys(self._columns, ""),
            **counts,
            "seconds": seconds,
            **figures,
        }
        self._rows.append(row)
        records.write_csv(self._folder.metrics, self._rows, self._columns)
        self._events.write(counts["updates"], figures)
        shown = {_SHORT[name]: f"{value:.4f}" for name, value in figures.items() if name in _SHORT}
        bar.set_postfix(shown)

    def _save(self, state: Any) -> None:
        self._saved = self._trainer.counts(state)["updates"]
        checkpoint.save(self._folder.checkpoints, self._saved, state, run=self._run)
        saved.save(self._folder.policy, self._saved, self._trainer.export(state))


_SHORT = {
    "nash_conv": "NashConv",
    "nash_conv_average": "average",
    "return_against_uniform": "against uniform",
    "mean_return": "return",
    "half_width": "half width",
}
