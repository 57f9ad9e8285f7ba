"""Workers of live play beside this process, on the cores of this machine.

Arrays are in memory that all of them share: a pipe would carry them in many small pieces. Pipes carry a few
bytes, which say that there is something to read, and end with their process.
"""

import contextlib
import functools
import itertools
import multiprocessing
import os
import select
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from pohp_neurd.experiment import actors, executor, game_config
from pohp_neurd.experiment import run as run_loop

_PROCESSES = multiprocessing.get_context("spawn")
_SPIN = 0.002
"""Seconds for which a process asks again and again, on a core of its own, before it sleeps: to wake one takes
a good part of what a block takes."""
_JOB = struct.Struct("<qqq")
"""Update, block, and on which shelf the order is."""
_NO_MEMORY = "MemoryError"


@contextlib.contextmanager
def crew(
    config: game_config.Config, count: int, forms: tuple[Any, Any], own: actors.Player
) -> Iterator[actors.Crew]:
    """`count` workers: this process, as `own`, which would have nothing to do meanwhile, and others.

    `forms` are trees of the shapes of an order, and of the evidence of a block.
    """
    # Two: with staleness one is written while the one before is read; that is done with by the next.
    orders = [_Shelf(forms[0]) for _ in range(2)]
    turn = itertools.cycle(range(2))

    def pack(order: actors.Order) -> int:
        which = next(turn)
        orders[which].put(order)
        return which

    cores = _own_cores(count)
    with _on_core(cores.pop() if cores else None):

        def hire() -> Any:
            return _Worker(config, orders, [_Shelf(forms[1]) for _ in range(2)], cores)

        ready = functools.partial(_ready, spin=_SPIN if len(cores) == count - 1 else 0.0)
        with contextlib.closing(actors.Crew(hire, count - 1, ready, pack, own)) as made:
            yield made


def _own_cores(count: int) -> list[int]:
    """The cores of this process, if as many workers are to share them; else none is anyone's own.

    Left to the system they are slower: it may wake several on the core of the process that woke them.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return cores if len(cores) == count else []


@contextlib.contextmanager
def _on_core(core: int | None) -> Iterator[None]:
    """This process on that core; with None wherever it was."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class _Shelf:
    """Room in shared memory for trees of arrays of one form; numbers are arrays without an axis."""

    def __init__(self, form: Any) -> None:
        leaves, structure = jax.tree.flatten(form)
        self._structure: Any = structure
        self._kinds = [(leaf.shape, np.dtype(leaf.dtype)) for leaf in leaves]
        self._shared = _PROCESSES.RawArray("B", sum(self._sizes()))

    def _sizes(self) -> list[int]:
        """In bytes; each array begins where a line of the processor's memory does, or nearly so."""
        return [-(-max(1, int(np.prod(shape))) * kind.itemsize // 64) * 64 for shape, kind in self._kinds]

    @functools.cached_property
    def _arrays(self) -> list[np.ndarray]:
        places = itertools.accumulate(self._sizes(), initial=0)
        return [
            np.frombuffer(self._shared, kind, int(np.prod(shape)), place).reshape(shape)
            for (shape, kind), place in zip(self._kinds, places, strict=False)
        ]

    def __getstate__(self) -> dict[str, Any]:
        # Arrays would go to another process as copies.
        return {name: value for name, value in self.__dict__.items() if name != "_arrays"}

    def put(self, tree: Any) -> None:
        """Leaves the arrays of `tree` here."""
        for mine, array in zip(self._arrays, self._structure.flatten_up_to(tree), strict=True):
            mine[...] = array

    def get(self, *, kept: bool) -> Any:
        """What was put here; where it is `kept` after the shelf is filled anew, with arrays of its own."""
        arrays = [array.copy() for array in self._arrays] if kept else self._arrays
        return self._structure.unflatten(arrays)


class _Worker:
    """A process beside this one."""

    def __init__(
        self,
        config: game_config.Config,
        orders: Sequence[_Shelf],
        answers: Sequence[_Shelf],
        cores: list[int],
    ) -> None:
        # Of answers too there are two: one may be written before the one before has been read.
        self.pipe, theirs = multiprocessing.Pipe()
        self._cores, self._core = cores, cores.pop() if cores else None
        args = (theirs, config, orders, answers, self._core)
        self.process = _PROCESSES.Process(target=_work, args=args, daemon=True)
        self.process.start()
        theirs.close()
        self._answers = answers

    def take(self, job: actors.Job, shelf: int) -> None:
        # If it has died already, what waits for its answer will see so.
        with contextlib.suppress(OSError):
            self.pipe.send_bytes(_JOB.pack(*job, shelf))

    def answer(self) -> Any:
        try:
            shelf, *problem = self.pipe.recv_bytes()
        except (EOFError, OSError):
            self.process.join(executor.PATIENCE)
            code = self.process.exitcode
            raise actors.Died(_of_signal(code) if code and code < 0 else f"with exit code {code}") from None
        if problem:
            raise _problem(bytes(problem).decode())
        return self._answers[shelf].get(kept=True)

    def end(self) -> None:
        if self._core is not None:
            self._cores.append(self._core)
        self.pipe.close()
        self.process.kill()  # it has nothing to save
        self.process.join()


def _of_signal(code: int) -> str:
    killed = ", as the system does where memory runs out" if code == -9 else ""
    return f"by signal {-code}{killed}"


def _problem(problem: str) -> Exception:
    if problem == _NO_MEMORY:
        return actors.Died("for want of memory")
    return run_loop.Lost(f"A worker cannot play: {problem}")


def _work(
    pipe: Any,
    config: game_config.Config,
    orders: Sequence[_Shelf],
    answers: Sequence[_Shelf],
    core: int | None,
) -> None:
    """The life of a worker process: jobs in, evidence out, until its parent has gone."""
    executor.begin()
    if core is not None:
        os.sched_setaffinity(0, {core})
    executor.die_with_parent()
    player: actors.Player | None = None
    turn = itertools.cycle(range(len(answers)))
    while True:
        try:
            _awaited([pipe], _SPIN if core is not None else 0.0)
            *numbers, shelf = _JOB.unpack(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        job = actors.Job(*numbers)
        which, problem = next(turn), ""
        try:
            player = player or actors.Player(config)
            # An order's shelf is filled anew when all blocks of its update have been played.
            order = orders[shelf].get(kept=False)
            answers[which].put(player.play(job, order))
        except MemoryError:
            problem = _NO_MEMORY
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        pipe.send_bytes(bytes([which]) + problem.encode())
        if player and not problem and not pipe.poll():
            player.begin(actors.Job(job.update + 1, job.block), order)


def _ready(workers: list[_Worker], patient: bool, *, spin: float) -> list[_Worker]:
    by_pipe = {worker.pipe: worker for worker in workers}
    return [by_pipe[pipe] for pipe in _awaited(list(by_pipe), spin if patient else None)]


def _awaited(pipes: list[Any], spin: float | None) -> list[Any]:
    """Those of `pipes` that have something to read, as soon as any has; with None, those that have now."""
    by_number = {pipe.fileno(): pipe for pipe in pipes}
    poll = select.poll()
    for number in by_number:
        poll.register(number, select.POLLIN)
    found = poll.poll(0)
    end = time.perf_counter() + (spin or 0.0)
    while spin is not None and not found:
        found = poll.poll(0 if time.perf_counter() < end else None)
    return [by_number[number] for number, _ in found]
