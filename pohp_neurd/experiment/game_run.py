"""A run of self-play in a game: it can be stopped at any moment, and goes on to the bit."""

import dataclasses
import signal
import sys
import time
from typing import Any

import tqdm

from pohp_neurd import checkpoint
from pohp_neurd.experiment import (
    divergence,
    event_file,
    game_config,
    game_trainer,
    interruption,
    records,
    run_folder,
)
from pohp_neurd.experiment.plot import nash_conv as picture
from pohp_neurd.openspiel import saved

COLUMNS = ("updates", "episodes", "steps", "seconds", "nash_conv", "nash_conv_average")
_PATIENCE = 0.5  # seconds between two looks at the clock, the signals and the bar


class Interrupted(Exception):
    """The run was asked to stop, and did so with a checkpoint."""

    def __init__(self, number: int, path: records.Path, updates: int) -> None:
        name = signal.Signals(number).name
        super().__init__(f"Stopped by {name} after {updates:,} updates; go on with --resume in {path}.")
        self.exit_code = 128 + number


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
    config, trainer = game_trainer.build(config)
    folder = run_folder.open_run(path, dataclasses.asdict(config), resume=resume, overwrite=overwrite)
    state, rows = trainer.init(), []
    if resume:
        restored = checkpoint.restore(folder.checkpoints, state)
        if restored is not None:
            for sentence in restored.damaged:
                print(f"Passed over a damaged checkpoint: {sentence}", file=sys.stderr)
            state = restored.tree
            # A run that was stopped before its first evaluation has a checkpoint, but no rows.
            known = read_rows(folder.metrics) if folder.metrics.exists() else []
            rows = [row for row in known if row["updates"] <= restored.step]
    with event_file.opened(folder.events if tensorboard else None) as events, interruption.watched() as asked:
        rows = _Progress(config, trainer, folder, rows, events, asked).finish(state)
    figures = {name: None if value == "" else value for name, value in rows[-1].items()}
    picture.draw(folder.curve, rows, title=f"{_NAMES[config.learner]} in {config.game}, {config.policy}")
    return {"game": config.game, **figures, "curve": str(folder.curve)}


_NAMES = {"spg": "SPG", "neurd": "NeuRD", "neurd_cix": "NeuRD-CIX"}


def read_rows(path: records.Path) -> list[dict[str, Any]]:
    """The rows of a metrics file, as numbers; empty where there is no figure."""
    whole = ("updates", "episodes", "steps")
    return [
        {name: int(text) if name in whole else float(text) if text else "" for name, text in row.items()}
        for row in records.read_csv(path)
    ]


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
        self._batch = config.batch_size or 1
        self._total = game_config.updates(config)
        self._between = max(1, (config.eval_every or 1) // self._batch)
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
                kept = None if self._saved is None else f"update {self._saved}"
                raise divergence.Diverged(
                    "a parameter", after=f"update {first + 1}", kept=kept, remedy="step_size"
                )
            updates -= piece
            bar.update(piece * self._batch)
            number = self._asked()
            if number is not None:
                self._save(state)
                raise Interrupted(number, self._folder.path, self._trainer.counts(state)["updates"])
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
        bar.set_postfix({_SHORT.get(name, name): f"{value:.4f}" for name, value in figures.items()})

    def _save(self, state: Any) -> None:
        self._saved = self._trainer.counts(state)["updates"]
        checkpoint.save(self._folder.checkpoints, self._saved, state)
        saved.save(self._folder.policy, self._saved, self._trainer.export(state))


_SHORT = {
    "nash_conv": "NashConv",
    "nash_conv_average": "average",
    "return_against_uniform": "against uniform",
    "mean_return": "return",
}
