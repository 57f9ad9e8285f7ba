"""Who plays the blocks of live training: this process, processes beside it, or actors on a Ray cluster.

Whoever does changes no figure: a block is a function of the parameters, the key, the update and its number,
and the learner adds blocks up in their order. One that a worker dies under is played again. `local_actors`
and `ray_actors` have the workers.
"""

import collections
import importlib.metadata
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
    words: Any
    """Of the key, as whole numbers."""
    told: Any
    """Whether figures are asked for."""


class Died(Exception):
    """A worker has gone, and says how."""


class Crew:
    """Workers that play blocks; `collect` is a `train.Collect`.

    A worker has `take(job, order)`, `answer()`, which is the evidence of the oldest job that it has taken or
    raises Died, and `end()`. `ready(workers, patient)` are those that have an answer; it waits for one if
    `patient`. With `own`, a Player, this process plays blocks as well.
    """

    def __init__(
        self,
        hire: Callable[[], Any],
        count: int,
        ready: Callable[[list[Any], bool], list[Any]],
        pack: Any,
        own: Any = None,
    ) -> None:
        self._hire, self._ready, self._pack, self._own = hire, ready, pack, own
        self._jobs: dict[Any, collections.deque[Job]] = {hire(): collections.deque() for _ in range(count)}
        self._waiting: collections.deque[Job] = collections.deque()
        self._orders: dict[int, tuple[Order, Any]] = {}
        self._found: dict[Job, Any] = {}
        self._tries: collections.Counter[Job] = collections.Counter()
        self._begun, self._waited = time.perf_counter(), 0.0

    def collect(
        self,
        trainer: Any,
        known: Any,
        words: Sequence[int],
        update: int,
        told: bool = True,
        following: Any = None,
    ) -> list[Any]:
        """The evidence of every block of `update`; with `following`, the next update's are begun as well."""
        for number, shown in ((update, known), (update + 1, following)):
            if shown is not None and number not in self._orders:
                order = Order(shown, words, told or number > update)  # who knows what is asked for then
                self._orders[number] = order, self._pack(order)
                self._waiting.extend(Job(number, block) for block in range(trainer.blocks))
        jobs = [Job(update, block) for block in range(trainer.blocks)]
        self._hand_out()
        last = None
        while any(job not in self._found for job in jobs):
            mine = self._waiting.popleft() if self._own and self._waiting else None
            if mine:
                last, order = mine, self._orders[mine.update][0]
                self._found[mine] = self._own.play(mine, order)
            begun = time.perf_counter()
            busy = [worker for worker, taken in self._jobs.items() if taken]
            ready = self._ready(busy, False) if self._own else []
            if not ready and not mine:
                if last:  # there is time for the block that may be the next one here
                    self._own.begin(Job(last.update + 1, last.block), order)
                ready = self._ready(busy, True)
            for worker in ready:
                self._hear(worker)
            self._waited += time.perf_counter() - begun
            self._hand_out()
        del self._orders[update]
        return [self._found.pop(job) for job in jobs]

    def _hand_out(self) -> None:
        """A block for each who has none, and one more if this process may be busy when that is played."""
        spare = len(self._jobs) + 1
        for most in (1, 2) if self._own else (1,):
            for worker, taken in self._jobs.items():
                if len(taken) < most and len(self._waiting) > (spare if most > 1 else 0):
                    taken.append(job := self._waiting.popleft())
                    worker.take(job, self._orders[job.update][1])

    def _hear(self, worker: Any) -> None:
        job, *others = self._jobs[worker]
        try:
            self._found[job] = worker.answer()
            self._jobs[worker].popleft()
        except Died as death:
            del self._jobs[worker]
            worker.end()
            self._tries[job] += 1
            if self._tries[job] >= executor.TRIES:
                raise run_loop.Lost(
                    f"Block {job.block} of update {job.update + 1} was begun {executor.TRIES} times, and "
                    f"each time its worker died, the last time {death}."
                ) from None
            # The first to be handed out, and so to a worker: this process has more to lose by it.
            self._waiting.extendleft((*reversed(others), job))
            self._jobs[self._hire()] = collections.deque()

    def status(self) -> dict[str, str]:
        """What the progress bar shows: the share of the time that the learner has waited for blocks."""
        passed = max(time.perf_counter() - self._begun, 1e-9)
        return {"waiting": f"{100 * self._waited / passed:.0f}%"}

    def close(self) -> None:
        """Ends all workers."""
        for worker in self._jobs:
            worker.end()


class Player:
    """A worker's own side: it has a trainer, which it builds unless it is given one, and plays blocks."""

    def __init__(self, config: game_config.Config, trainer: Any = None) -> None:
        from pohp_neurd.openspiel.live import train

        if trainer is None:
            executor.make_small_calls()
            from pohp_neurd.experiment import live

            trainer = live.trainer(config)
        self._train, self._trainer = train, trainer
        self._ahead: tuple[Job, Any] | None = None

    def play(self, job: Job, order: Order) -> Any:
        """The evidence of a block."""
        ahead, self._ahead = self._ahead, None  # its streams are used up by playing
        begun = ahead[1] if ahead and ahead[0] == job else None
        return self._train.evidence(
            self._trainer, order.known, order.words, *job, told=bool(order.told), begun=begun
        )

    def begin(self, job: Job, order: Order) -> None:
        """Does for the block that may be next what takes no parameters, while the learner works on them."""
        if not self._ahead or self._ahead[0] != job:
            self._ahead = job, self._train.begin(self._trainer, order.words, *job)

    def versions(self) -> dict[str, str]:
        """Those of this worker."""
        return versions()


def versions() -> dict[str, str]:
    """Of all packages that a block depends on."""
    return {name: importlib.metadata.version(name) for name in _TOGETHER}
