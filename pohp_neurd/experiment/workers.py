"""Settings over the cores of this machine: one worker process for each, which takes one after another."""

import contextlib
import multiprocessing
import os
import pathlib
import threading
from collections.abc import Iterator, Sequence
from multiprocessing import connection
from typing import Any

from pohp_neurd.experiment import grid, jobs, lanes

TRIES = 3
"""How often a setting is begun whose worker dies under it."""


def run(
    settings: Sequence[grid.Setting], runs: pathlib.Path, *, num_workers: int
) -> Iterator[tuple[grid.Setting, jobs.Outcome]]:
    """Runs every setting in a folder of its own in `runs`; each with its outcome, as they finish.

    A worker that dies, killed or out of memory, is replaced, and its setting goes on from its checkpoint.
    When this process ends, in whatever way, its workers end as well.
    """
    waiting, tries = list(reversed(settings)), dict.fromkeys((s.id for s in settings), 0)
    crew: dict[Any, _Worker] = {}
    logs = runs.parent / "logs"
    try:
        for number in range(min(num_workers, len(settings))):
            worker = _Worker(logs / f"worker_{number}.log")
            crew[worker.pipe] = worker
            worker.take(waiting.pop(), runs)
        while crew:
            for pipe in connection.wait(list(crew)):
                worker = crew.pop(pipe)
                setting = worker.setting
                try:
                    outcome, died = worker.pipe.recv(), False
                except (EOFError, OSError):
                    outcome, died = jobs.Outcome(None, _death(worker.end()), 0.0), True
                    tries[setting.id] += 1
                if died and tries[setting.id] < TRIES:
                    waiting.append(setting)
                else:
                    yield setting, outcome
                if waiting:
                    worker = _Worker(worker.log) if died else worker
                    worker.take(waiting.pop(), runs)
                    crew[worker.pipe] = worker
                elif not died:
                    worker.end(idle=True)
    finally:
        for worker in crew.values():
            worker.end()


def _death(code: int | None) -> str:
    return f"Its worker process died {TRIES} times, the last time with exit code {code}."


class _Worker:
    """A process that is at work on a setting."""

    setting: grid.Setting

    def __init__(self, log: pathlib.Path) -> None:
        self.log = log
        self.pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_work, args=(theirs, log), daemon=True)
        self._process.start()
        theirs.close()

    def take(self, setting: grid.Setting, runs: pathlib.Path) -> None:
        self.setting = setting
        # If it has died already, what waits for its answer will see so.
        with contextlib.suppress(OSError):
            self.pipe.send((setting, runs / setting.id))

    def end(self, *, idle: bool = False) -> int | None:
        """Ends the process, with time for it to save what it is at; its exit code."""
        self.pipe.close()
        if not idle:
            self._process.terminate()
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return self._process.exitcode


_PATIENCE = 20.0


def _work(pipe: Any, log: pathlib.Path) -> None:
    """The life of a worker: settings in, outcomes out, until there are no more."""
    lanes.use_one_core()
    threading.Thread(target=_die_with_parent, daemon=True).start()
    # What runs print, and their progress bars, would disturb the sweep's own.
    with open(log, "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    while True:
        try:
            setting, path = pipe.recv()
        except EOFError:
            return
        pipe.send(jobs.attempt(setting.script, setting.flags, path))


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a parent"
    connection.wait([parent.sentinel])
    os._exit(1)
