"""Who plays the blocks of live training: this process, workers beside it, or actors on a Ray cluster.

Whoever does changes no figure: a block is a function of the parameters, the key, the update and its number,
and the learner adds blocks up in their order. One that a worker dies under is played again.
"""

import collections
import contextlib
import importlib.metadata
import itertools
import multiprocessing
import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection
from typing import Any, NamedTuple

import numpy as np

from pohp_neurd.experiment import executor, game_config
from pohp_neurd.experiment import run as run_loop

_TOGETHER = ("pohp_neurd", "jax", "jaxlib", "numpy", "numba", "open_spiel")
"""Packages whose versions must be the same everywhere, or figures would not be."""


class Job(NamedTuple):
    """One block of one update."""

    update: int
    block: int


class Order(NamedTuple):
    """What the blocks of one update are played with."""

    known: Any
    words: Sequence[int]


class Died(Exception):
    """A worker has gone, and says how."""


class Crew:
    """Workers that play blocks; `collect` is a `train.Collect`.

    A worker has `take(job, order)`, `answer()`, which is (job, its evidence) or raises Died, and `end()`.
    """

    def __init__(
        self, hire: Callable[[], Any], count: int, ready: Callable[[list[Any]], list[Any]], pack: Any
    ) -> None:
        self._hire, self._ready, self._pack = hire, ready, pack
        self._idle = [hire() for _ in range(count)]
        self._busy: dict[Any, Job] = {}
        self._waiting: collections.deque[Job] = collections.deque()
        self._orders: dict[int, Any] = {}
        self._found: dict[Job, Any] = {}
        self._tries: collections.Counter[Job] = collections.Counter()
        self._begun, self._waited = time.perf_counter(), 0.0

    def collect(
        self, trainer: Any, known: Any, words: Sequence[int], update: int, following: Any = None
    ) -> list[Any]:
        """The evidence of every block of `update`; with `following`, the next update's are begun as well."""
        for number, shown in ((update, known), (update + 1, following)):
            if shown is not None and number not in self._orders:
                self._orders[number] = self._pack(Order(shown, words))
                self._waiting.extend(Job(number, block) for block in range(trainer.blocks))
        begun = time.perf_counter()
        jobs = [Job(update, block) for block in range(trainer.blocks)]
        self._hand_out()
        while any(job not in self._found for job in jobs):
            for worker in self._ready(list(self._busy)):
                self._hear(worker)
            self._hand_out()
        self._waited += time.perf_counter() - begun
        del self._orders[update]
        return [self._found.pop(job) for job in jobs]

    def _hand_out(self) -> None:
        while self._idle and self._waiting:
            worker, job = self._idle.pop(), self._waiting.popleft()
            self._busy[worker] = job
            worker.take(job, self._orders[job.update])

    def _hear(self, worker: Any) -> None:
        job = self._busy.pop(worker)
        try:
            self._found[job] = worker.answer()
            self._idle.append(worker)
        except Died as death:
            worker.end()
            self._tries[job] += 1
            if self._tries[job] >= executor.TRIES:
                raise run_loop.Lost(
                    f"Block {job.block} of update {job.update + 1} was begun {executor.TRIES} times, and "
                    f"each time its worker died, the last time {death}."
                ) from None
            self._waiting.appendleft(job)
            self._idle.append(self._hire())

    def status(self) -> dict[str, str]:
        """What the progress bar shows: the share of the time that the learner has waited for blocks."""
        passed = max(time.perf_counter() - self._begun, 1e-9)
        return {"waiting": f"{100 * self._waited / passed:.0f}%"}

    def end(self) -> None:
        for worker in (*self._idle, *self._busy):
            worker.end()


@contextlib.contextmanager
def crew(config: game_config.Config, chosen: game_config.Actors, room: int) -> Iterator[Crew | None]:
    """Workers for a live run, as `chosen`; None where this process plays alone.

    `room` is in bytes, for what blocks are played with, and for a gradient.
    """
    if chosen.executor == "local" and (chosen.workers or 1) == 1:
        yield None
        return
    if chosen.executor == "local":
        count = executor.available(chosen.workers)
        # Two: with staleness one is written while the one before is read; that is done with by the next.
        shelves = [_Shelf(room) for _ in range(2)]
        turn = itertools.cycle(range(2))
        pack = lambda order: _Packed(which := next(turn), shelves[which].put(order))  # noqa: E731
        cores = _own_cores(count)
        made = Crew(lambda: _Worker(config, shelves, _Shelf(room), cores), count, _ready, pack)
        with contextlib.closing(_Closing(made)):
            yield made
        return
    executor.check_ray(chosen.address)
    with executor.connected(chosen.address, chosen.workers):
        import ray

        player = ray.remote(num_cpus=1, max_restarts=0)(_Player)
        count = chosen.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        first = _Actor(player.remote(config))
        first.check()
        hired = iter([first])
        hire = lambda: next(hired, None) or _Actor(player.remote(config))  # noqa: E731
        made = Crew(hire, count, _ready_on_ray, ray.put)
        with contextlib.closing(_Closing(made)):
            yield made


def _own_cores(count: int) -> list[int]:
    """The cores of this process, if as many workers are to share them; else none is anyone's own.

    Left to the system they are slower: it may wake several on the core of the process that woke them.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return cores if len(cores) == count else []


class _Closing:
    def __init__(self, made: Crew) -> None:
        self.close = made.end


class _Player:
    """A worker's own side: it builds the trainer once, and then plays blocks."""

    def __init__(self, config: game_config.Config) -> None:
        executor.use_one_core()
        from pohp_neurd.experiment import live
        from pohp_neurd.openspiel.live import train

        self._trainer, self._evidence = live.trainer(config), train.evidence

    def play(self, job: Job, order: Order) -> Any:
        return self._evidence(self._trainer, order.known, order.words, *job)

    def versions(self) -> dict[str, str]:
        return versions()


def versions() -> dict[str, str]:
    """Of all packages that a block depends on."""
    return {name: importlib.metadata.version(name) for name in _TOGETHER}


_PROCESSES = multiprocessing.get_context("spawn")


class _Shelf:
    """Memory that processes share, for arrays: a pipe would carry them in many small pieces."""

    def __init__(self, size: int) -> None:
        self._shared = _PROCESSES.RawArray("B", size)

    def put(self, thing: Any) -> tuple[bytes, list[slice]]:
        """Leaves the arrays of `thing` here, and returns a note of the rest, and of where they are."""
        arrays: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(thing, protocol=5, buffer_callback=arrays.append)
        memory, places, at = np.frombuffer(self._shared, np.uint8), [], 0
        for array in arrays:
            data = array.raw()
            places.append(slice(at, at + data.nbytes))
            memory[places[-1]] = data
            at += data.nbytes
        return rest, places

    def get(self, note: tuple[bytes, list[slice]]) -> Any:
        """What was put here, with arrays of its own: the shelf may be filled anew."""
        rest, places = note
        memory = np.frombuffer(self._shared, np.uint8)
        return pickle.loads(rest, buffers=[memory[place].copy() for place in places])


class _Packed(NamedTuple):
    """An order, on one of the shelves for orders."""

    shelf: int
    note: tuple[bytes, list[slice]]


class _Worker:
    """A process beside this one."""

    def __init__(
        self,
        config: game_config.Config,
        orders: Sequence[_Shelf],
        answers: _Shelf,
        cores: list[int],
    ) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self._cores, self._core = cores, cores.pop() if cores else None
        args = (theirs, config, orders, answers, self._core)
        self.process = _PROCESSES.Process(target=_work, args=args, daemon=True)
        self.process.start()
        theirs.close()
        self._answers = answers
        self._shown: _Packed | None = None

    def take(self, job: Job, order: _Packed) -> None:
        # Parameters travel once an update. If it has died already, what waits for its answer will see so.
        with contextlib.suppress(OSError):
            self.pipe.send((job, None if order is self._shown else order))
        self._shown = order

    def answer(self) -> Any:
        try:
            found, problem = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(executor.PATIENCE)
            code = self.process.exitcode
            raise Died(_of_signal(code) if code and code < 0 else f"with exit code {code}") from None
        if problem is not None:
            raise _problem(problem)
        return self._answers.get(found)

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
    if problem == "MemoryError":
        return Died("for want of memory")
    return run_loop.Lost(f"A worker cannot play: {problem}")


def _work(
    pipe: Any, config: game_config.Config, orders: Sequence[_Shelf], answers: _Shelf, core: int | None
) -> None:
    """The life of a worker process: jobs in, evidence out, until its parent has gone."""
    executor.begin()
    if core is not None:
        os.sched_setaffinity(0, {core})
    executor.die_with_parent()
    player: _Player | None = None
    order: Any = None
    answer: Any = None
    while True:
        try:
            job, shown = pipe.recv()
        except (EOFError, OSError):
            return
        order = orders[shown.shelf].get(shown.note) if shown else order
        try:
            player = player or _Player(config)
            answer = (answers.put(player.play(job, order)), None)
        except MemoryError:
            answer = (None, "MemoryError")
        except Exception as error:
            answer = (None, f"{type(error).__name__}: {error}")
        pipe.send(answer)


def _ready(workers: list[_Worker]) -> list[_Worker]:
    by_pipe: dict[Any, _Worker] = {worker.pipe: worker for worker in workers}
    return [by_pipe[pipe] for pipe in connection.wait(list(by_pipe))]


class _Actor:
    """An actor on a Ray cluster."""

    def __init__(self, handle: Any) -> None:
        self.handle: Any = handle
        self.answered: Any = None

    def check(self) -> None:
        """Raises a ValueError where the cluster has not what this machine has."""
        import ray

        try:
            theirs = ray.get(self.handle.versions.remote())
        except ray.exceptions.RayError as error:
            told = str(error).strip().splitlines()[-1]
            raise ValueError(f"the Ray cluster cannot play: {told}") from None
        for name, version in versions().items():
            if theirs[name] != version:
                raise ValueError(
                    f"the Ray cluster has {name} {theirs[name]}, but this machine {version}: a run needs the "
                    "same everywhere."
                )

    def take(self, job: Job, order: Any) -> None:
        self.answered = self.handle.play.remote(job, order)

    def answer(self) -> Any:
        import ray

        try:
            return ray.get(self.answered)
        except (ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError) as error:
            raise Died(f"with {str(error).strip().partition(chr(10))[0]}") from None
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, MemoryError):
                raise Died("for want of memory") from None
            raise run_loop.Lost(f"A worker cannot play: {error.cause!r}") from None
        except (ray.exceptions.RayError, ConnectionError) as error:
            raise _gone(error) from None

    def end(self) -> None:
        import ray

        with contextlib.suppress(Exception):  # a cluster that has gone needs no goodbye
            ray.kill(self.handle)


def _ready_on_ray(actors: list[_Actor]) -> list[_Actor]:
    import ray

    by_answer: dict[Any, _Actor] = {actor.answered: actor for actor in actors}
    try:
        ready, _ = ray.wait(list(by_answer), num_returns=1, timeout=executor.PATIENCE)
        if not ready and not any(node["Alive"] for node in ray.nodes()):
            raise ConnectionError("no node is alive")
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise _gone(error) from None
    return [by_answer[answer] for answer in ready]


def _gone(error: Exception) -> run_loop.Lost:
    told = str(error).strip().partition("\n")[0]
    return run_loop.Lost(f"The Ray cluster has gone ({told}).")
