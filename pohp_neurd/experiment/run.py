"""The loop of every training run: it can be stopped at any moment, and goes on to the bit.

It advances, evaluates, writes rows and checkpoints, shows a progress bar, and hears signals: Ctrl-C, SIGTERM,
and SIGHUP, which comes when the terminal is closed, end a run with a checkpoint. JAX is loaded when a run
begins, not with this file, which is read before flags are checked.
"""

import contextlib
import importlib.util
import pathlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tqdm

from pohp_neurd import checks
from pohp_neurd.results import records, table

Row = dict[str, Any]
COUNTS = ("updates", "episodes", "steps", "seconds")
"""The first columns of every metrics.csv."""

_QUIET = 5.0  # seconds at least between two lines of progress
_PATIENCE = 0.5  # seconds between two looks at the clock, the signals and the bar
_SHARE = 0.05  # of the time may go into writing all rows anew, apart from checkpoints


class Interrupted(Exception):
    """A run was asked to stop, and did so with a checkpoint; `after` says how far it is, and how to go on."""

    def __init__(self, number: int, after: str) -> None:
        super().__init__(f"Stopped by {signal.Signals(number).name} after {after}.")
        self.exit_code = 128 + number


class Lost(Interrupted):
    """What a run needs beside itself has gone, such as its workers: `advance` may raise this."""

    def __init__(self, why: str, after: str = "") -> None:
        Exception.__init__(self, f"{why} Stopped after {after}." if after else why)
        self.why, self.exit_code = why, 1


class Pace(NamedTuple):
    """How long a run is, in units that it can be cut into, such as updates."""

    total: int
    every: int = 1
    """Units between two evaluations. There is one at the end, too."""
    checkpoint_every: int = 1
    """Evaluations between two checkpoints. There is one at the end, too."""
    unit: str = "update"
    """What the bar counts."""
    size: int = 1
    """How many of these a unit has."""
    share: float | None = None
    """Of the time, what evaluations may take: those that would take more are left out."""


class Task(NamedTuple):
    """A run, as the loop sees it."""

    config: Mapping[str, Any]
    """What config.json says."""
    pace: Pace
    columns: tuple[str, ...]
    """Of metrics.csv: COUNTS, and what is measured."""
    begin: Callable[[], Any]
    advance: Callable[[Any, int], Any]
    """(state, units) -> state; where calls are cut makes no difference."""
    evaluate: Callable[[Any, int, Sequence[Row]], Sequence[Row]]
    """(state, units done, rows so far) -> rows of this moment. Columns that one leaves out are empty."""
    finish: Callable[[records.RunFolder, Sequence[Row]], dict[str, Any]]
    """Draws what there is to draw; the final figures."""
    place: Callable[[Row], int] = lambda row: int(row["updates"])
    """The units that were done at a row."""
    width: int = 1
    """Rows of each evaluation."""
    diverged: Callable[[Any], tuple[str, str, str] | None] = lambda state: None
    """Why a run cannot go on: what is not finite, after which moment, and what should be smaller."""
    kept: Callable[[Any], Any] = lambda state: state
    """What a checkpoint has of a state: one pytree of arrays."""
    again: Callable[[Any, int], Any] = lambda kept, done: kept
    """(what was kept, units done) -> state."""
    export: Callable[[records.RunFolder, int, Any], None] = lambda folder, done, state: None
    """Saves beside a checkpoint what is of use without the training."""
    judged: Callable[[records.RunFolder, int, Any, Row], None] = lambda folder, done, state, row: None
    """Saves after an evaluation what its last row asks to be saved."""
    noun: str = "update"
    step: int = 1
    """What checkpoints count, and how many of these a unit has."""
    empty: tuple[str, ...] = ()
    """Columns that may be empty."""
    text: tuple[str, ...] = ()
    """Columns of words."""
    shown: Mapping[str, str] = {}
    """Columns that the bar shows, with their short names."""
    opening: str = ""
    """What a run says of itself as it begins."""
    status: Callable[[], Mapping[str, str]] = dict
    """What else the bar shows, and no file has: how the work goes, not what comes of it."""


def finish(
    make: Callable[[], Task],
    path: records.Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    tensorboard: bool = False,
    stop_after: int | None = None,
    tell: Callable[[str], Any] = lambda sentence: None,
) -> dict[str, Any]:
    """Runs or resumes a task in the folder `path`.

    Args:
      make: makes the task, once the folder is known to be free.
      path: the folder; `records.opened` says when it is refused.
      resume: go on with the run that is there.
      overwrite: throw that run away.
      tensorboard: write event files beside the rows.
      stop_after: ends the work after so many units with a checkpoint, to be resumed; so do signals.
      tell: gets the task's opening, once nothing can be refused any more.

    Returns:
      The final figures.
    """
    if tensorboard and importlib.util.find_spec("tensorboardX") is None:
        raise ValueError(
            "event files need tensorboardX: install it with pip install 'pohp_neurd[tensorboard]'."
        )
    records.check_open(path, resume=resume, overwrite=overwrite)
    task = make()
    with (
        records.opened(path, task.config, resume=resume, overwrite=overwrite) as folder,
        watched() as asked,
        events(folder.events if tensorboard else None) as write_events,
    ):
        state, done, rows = _restored(task, folder) if resume else (task.begin(), 0, [])
        if task.opening:
            tell(task.opening)
        book = _Book(task, folder, rows, done or None, write_events)

        def advance(state: Any, units: int) -> Any:
            state = task.advance(state, units)
            loss = task.diverged(state)
            if loss is not None:
                what, after, remedy = loss
                raise checks.Diverged(what, after=after, remedy=remedy, checkpoint=book.newest())
            return state

        last = task.pace.total if stop_after is None else min(task.pace.total, done + stop_after)
        loop(task.pace, advance, state, done, last, asked=asked, evaluate=book.evaluate, save=book.save)
        return task.finish(folder, book.rows)


def loop(
    pace: Pace,
    advance: Callable[[Any, int], Any],
    state: Any,
    done: int,
    last: int,
    *,
    asked: Callable[[], int | None],
    evaluate: Callable[[Any, int, Any], None],
    save: Callable[[Any, int], str],
) -> None:
    """Advances, evaluates and saves; raises Interrupted, once all is saved, where it is asked to stop.

    Args:
      pace: how long, and how often.
      advance: (state, units) -> state.
      state: where it begins.
      done: the units that led there.
      last: the units after which it ends.
      asked: the number of a signal that came, or None.
      evaluate: is told (state, units done, the bar), where pace says so.
      save: is told (state, units done), where pace says so; says how far it is and how to go on.
    """
    bar = progress(pace.total * pace.size, done * pace.size, pace.unit)
    begun_at, evaluating, longest = time.perf_counter(), 0.0, 0.0
    with bar:
        while done < last:
            following = min(last, (done // pace.every + 1) * pace.every)
            piece, number = 1, None
            while done < following and number is None:
                # In pieces that take about as long as one is willing to wait for an answer.
                begun = time.perf_counter()
                piece = min(piece, following - done)
                try:
                    state = advance(state, piece)
                except Lost as lost:
                    raise Lost(lost.why, save(state, done)) from None
                done += piece
                number = asked()  # before the bar: where the terminal was closed, it can no longer be drawn
                if number is None:
                    bar.update(piece * pace.size)
                if time.perf_counter() - begun < _PATIENCE:
                    piece *= 2
            due = done % pace.every == 0 or done == pace.total
            before = time.perf_counter()
            allowed = (pace.share or 1.0) * (before - begun_at)
            if due and (pace.share is None or done == pace.total or evaluating + longest <= allowed):
                evaluate(state, done, bar if number is None else None)
                took = time.perf_counter() - before
                evaluating, longest = evaluating + took, max(longest, took)
            often = due and done // pace.every % pace.checkpoint_every == 0
            if often or done == last or number is not None:
                after = save(state, done)
                if number is not None and done < last:
                    raise Interrupted(number, after)


def progress(total: int, initial: int, unit: str) -> Any:
    """A bar in a terminal; elsewhere, as in a log file, a line now and then."""
    if sys.stderr.isatty():
        return tqdm.tqdm(total=total, initial=initial, unit=unit, unit_scale=total > 999)
    return _Lines(total, initial, unit)


class _Lines:
    """As much of tqdm as is called here: a line after five seconds, then one for each tenth of the time."""

    def __init__(self, total: int, initial: int, unit: str) -> None:
        self._total, self._done, self._unit = total, initial, unit
        self._begun = self._told = time.perf_counter()
        self._compiled: tuple[float, int] | None = None
        self._figures = ""

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, *_: Any) -> None:
        """Says nothing: what follows tells how it ended."""

    def update(self, count: int = 1) -> None:
        self._done += count
        now = time.perf_counter()
        if self._compiled is None:  # the first piece compiles, and says nothing on how long the others take
            self._compiled = now, self._done
        since, done = self._compiled
        spent = now - self._begun
        if now - self._told < max(_QUIET, 0.1 * spent):
            return
        self._told = now
        clock = tqdm.tqdm.format_interval
        left = (now - since) * (self._total - self._done) / (self._done - done) if self._done > done else None
        about = "" if left is None else f", about {clock(left)} left"
        counted = f"{self._done:,} of {self._total:,} {self._unit}s in {clock(spent)}"
        print(f"{counted}{about}{self._figures}", file=sys.stderr, flush=True)

    def set_postfix(self, figures: Mapping[str, Any]) -> None:
        self._figures = "".join(f", {name} {value}" for name, value in figures.items())


class _Book:
    """What a run writes down as it goes."""

    def __init__(
        self,
        task: Task,
        folder: records.RunFolder,
        rows: list[Row],
        saved: int | None,
        write_events: Callable[[int, Mapping[str, float]], None],
    ) -> None:
        self.rows = rows
        self._task, self._folder, self._saved, self._write_events = task, folder, saved, write_events
        self._digest = folder.digest
        self._begun = time.perf_counter() - max((row["seconds"] for row in rows), default=0.0)
        self._unwritten, self._next_write = False, 0.0

    def evaluate(self, state: Any, done: int, bar: Any) -> None:
        found = self._task.evaluate(state, done, self.rows)
        seconds = round(time.perf_counter() - self._begun, 3)
        blank = dict.fromkeys(self._task.columns, "")
        self.rows += [{**blank, **row, "seconds": seconds} for row in found]
        self._unwritten = True
        if time.perf_counter() >= self._next_write:
            self._write()
        self._task.judged(self._folder, done, state, found[-1])
        measured = {name: found[-1][name] for name in self._task.columns[4:] if name in found[-1]}
        self._write_events(done * self._task.step, measured)
        if bar is not None:
            shown = {name: short for name, short in self._task.shown.items() if name in measured}
            figures = {short: f"{measured[name]:.4f}" for name, short in shown.items()}
            bar.set_postfix({**figures, **self._task.status()})

    def save(self, state: Any, done: int) -> str:
        if self._unwritten:  # rows first: a resume drops those beyond its checkpoint, but could not make any
            self._write()
        from pohp_neurd import checkpoint

        checkpoint.save(
            self._folder.checkpoints, done * self._task.step, self._task.kept(state), run=self._digest
        )
        self._task.export(self._folder, done, state)
        self._saved = done
        return f"{done * self._task.step:,} {self._task.noun}s; go on with --resume in {self._folder.path}"

    def newest(self) -> str:
        """What there is to say of the newest checkpoint."""
        if self._saved is None:
            return "there is no checkpoint yet"
        return f"the checkpoint of {self._task.noun} {self._saved * self._task.step:,} is good"

    def _write(self) -> None:
        begun = time.perf_counter()
        records.write_csv(self._folder.metrics, self.rows, self._task.columns)
        ended = time.perf_counter()
        self._unwritten, self._next_write = False, ended + (ended - begun) / _SHARE


def _restored(task: Task, folder: records.RunFolder) -> tuple[Any, int, list[Row]]:
    """The state of the newest checkpoint, its units, and the rows until then."""
    from pohp_neurd import checkpoint

    state = task.begin()
    restored = checkpoint.restore(folder.checkpoints, task.kept(state), run=folder.digest)
    if restored is None:
        return state, 0, []
    for sentence in restored.damaged:
        print(f"Passed over a damaged checkpoint: {sentence}", file=sys.stderr)
    done = restored.step // task.step
    # A run that was stopped before its first evaluation has a checkpoint, but no rows.
    known = []
    if folder.metrics.exists():
        known = table.figures(folder.metrics, task.columns, empty=task.empty, text=task.text)
    rows = [row for row in known if task.place(row) <= done]
    due = list(range(task.pace.every, done + 1, task.pace.every))
    if done == task.pace.total and done % task.pace.every:
        due.append(done)
    found = [task.place(row) for row in rows]
    if task.pace.share is not None:
        due = [unit for unit in due if unit in found]
    if found != [unit for unit in due for _ in range(task.width)]:
        needed = "a row" if task.width == 1 else f"{task.width} rows"
        raise ValueError(
            f"{folder.metrics} must have {needed} of each of {len(due)} evaluations, but has not."
        )
    return task.again(restored.tree, done), done, rows


@contextlib.contextmanager
def events(folder: pathlib.Path | None) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """A function that adds the figures of one step to event files in `folder`; to nothing without one."""
    if folder is None:
        yield lambda step, figures: None
        return
    import tensorboardX

    with contextlib.closing(tensorboardX.SummaryWriter(str(folder))) as writer:

        def write(step: int, figures: Mapping[str, float]) -> None:
            for name, value in figures.items():
                writer.add_scalar(name, value, step)

        yield write


@contextlib.contextmanager
def watched() -> Iterator[Callable[[], int | None]]:
    """Within the block, the function that it gives tells the number of a signal that came, or None.

    A second Ctrl-C interrupts at once. Outside the main thread, where Python hands over no signals, it
    always tells None.
    """
    came: list[int] = []

    def remember(number: int, _: Any) -> None:
        # What ends a process politely may follow a Ctrl-C that went to all of its group.
        if came and number == signal.SIGINT:
            raise KeyboardInterrupt
        came.append(number)

    with _handled(remember, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
        yield lambda: came[0] if came else None


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP raise a KeyboardInterrupt, as Ctrl-C does."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with _handled(interrupt, (signal.SIGTERM, signal.SIGHUP)):
        yield


@contextlib.contextmanager
def _handled(handler: Callable[[int, Any], None], numbers: tuple[signal.Signals, ...]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What is ignored stays so: nohup asks for a run that outlives its terminal.
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
