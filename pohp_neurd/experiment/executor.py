"""Where work is done, which changes no figure: on the cores of this machine, or on a Ray cluster.

Of a sweep, one worker process for each core takes one setting after another. From a cluster the files of a
run come back through Ray: no disk need be shared.
"""

import concurrent.futures
import contextlib
import ctypes
import functools
import importlib.util
import multiprocessing
import os
import pathlib
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing import connection
from typing import Any

from pohp_neurd import checks, files
from pohp_neurd.experiment import grid, sweep

TRIES = 3
"""How often a setting is begun whose worker dies under it."""
PATIENCE = 20.0
"""Seconds that a process may take to end, or a cluster to answer."""


def available(wanted: int | None) -> int:
    """`wanted` cores, checked; by default all that this process may use."""
    most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if wanted is None:
        return most
    if not 1 <= wanted <= most:
        raise ValueError(f"cores must be between 1 and {most} on this machine, but is {wanted}.")
    return wanted


def use_one_core() -> None:
    """Tells JAX, before its first computation, to keep to one thread in this process."""
    os.environ["PJRT_NPROC"] = "1"


def make_small_calls() -> None:
    """Tells JAX, before its first computation, and malloc, that this process has many small ones to make."""
    import jax

    use_one_core()
    # Another thread would have to wake up for each of them.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    # Arrays of some 100 KB come and go at every update. By default they may go back to the system each time,
    # and come again as pages that have to be cleared: microseconds for each.
    with contextlib.suppress(OSError, AttributeError):  # where malloc is not that of glibc
        for parameter in (_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD):
            ctypes.CDLL(None).mallopt(parameter, 1 << 25)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h


@contextlib.contextmanager
def workers(count: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """A `map` over `count` processes, one for each core; over this process if it is alone.

    Processes and not host devices: a JAX process that sees more than one core hands every little operation to
    its pool of threads, and a step takes almost twice as long.
    """
    if count == 1:
        yield map
        return
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(count, context, initializer=begin) as pool:
        yield pool.map


def begin() -> None:
    """The beginning of a process: Ctrl-C and a closed terminal are for who has started it, and will save."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    use_one_core()


def build(name: str = "local", *, cores: int | None = None, address: str | None = None) -> sweep.Execute:
    """The executor of that name: the cores of this machine, or a Ray cluster here or at `address`."""
    checks.one_of("executor", name, ("local", "ray"))
    if name == "ray":
        if address and cores:
            raise ValueError("cores are of a Ray cluster that is started here: address excludes them.")
        if cores is not None:
            checks.at_least("cores", cores)
        check_ray(address)
        return functools.partial(run_on_ray, address=address, num_workers=cores)
    if address:
        raise ValueError("address is of a Ray cluster: it needs executor=ray.")
    return functools.partial(run_here, num_workers=available(cores))


def check_ray(address: str | None) -> None:
    """Raises a ValueError if Ray is not installed, or if nothing listens at `address`."""
    if importlib.util.find_spec("ray") is None:
        raise ValueError("executor=ray needs Ray, which is not installed: pip install 'pohp_neurd[ray]'.")
    if address:
        _check_reachable(address)


def run_here(
    settings: Sequence[grid.Setting], runs: pathlib.Path, *, num_workers: int
) -> Iterator[tuple[grid.Setting, grid.Outcome]]:
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
                    told = f"Its worker process died {TRIES} times, the last time with exit code"
                    outcome, died = grid.Outcome(None, f"{told} {worker.end()}.", 0.0), True
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
        self._process.join(PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return self._process.exitcode


def _work(pipe: Any, log: pathlib.Path) -> None:
    """The life of a worker: settings in, outcomes out, until there are no more."""
    use_one_core()
    die_with_parent()
    # What runs print, and their progress bars, would disturb the sweep's own.
    with open(log, "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    while True:
        try:
            setting, path = pipe.recv()
        except EOFError:
            return
        pipe.send(grid.attempt(setting.script, setting.flags, path))


def die_with_parent() -> None:
    """From now on this process, a worker, ends as soon as its parent does, in whatever way."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a parent"

    def wait() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def run_on_ray(
    settings: Sequence[grid.Setting], runs: pathlib.Path, *, address: str | None, num_workers: int | None
) -> Iterator[tuple[grid.Setting, grid.Outcome]]:
    """As `run_here`, on the cluster at `address`, or on one of `num_workers` here if there is none.

    A setting whose worker or machine dies is begun again elsewhere.
    """
    with connected(address, num_workers):
        import ray

        attempt = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_attempt)
        pending = {attempt.remote(setting.script, dict(setting.flags)): setting for setting in settings}
        while pending:
            (ready,), _ = ray.wait(list(pending), num_returns=1)
            setting = pending.pop(ready)
            try:
                outcome, content = ray.get(ready)
                for name, data in content.items():
                    (runs / setting.id / name).parent.mkdir(parents=True, exist_ok=True)
                    with files.atomic(runs / setting.id / name, binary=True) as file:
                        file.write(data)
            except ray.exceptions.RayError as error:
                told = str(error).strip().partition("\n")[0]
                if not isinstance(error, ray.exceptions.RayTaskError):
                    told = f"Its worker died {TRIES} times: {told}"
                outcome = grid.Outcome(None, told, 0.0)
            except OSError as error:
                told = f"{error.strerror}: {error.filename or runs / setting.id}."
                outcome = grid.Outcome(None, told, outcome.seconds)
            yield setting, outcome


@contextlib.contextmanager
def connected(address: str | None, num_workers: int | None) -> Iterator[None]:
    """Within the block, Ray is there: the cluster at `address`, or else one of `num_workers` here."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    chosen = {"address": address} if address else {"num_cpus": num_workers, "include_dashboard": False}
    try:
        ray.init(**chosen, log_to_driver=False, configure_logging=False)
    except ConnectionError as error:
        raise ValueError(
            f"the Ray cluster at {address} does not answer ({error}): if it has tokens, set RAY_AUTH_MODE "
            "and RAY_AUTH_TOKEN as it does."
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raises a ValueError if nothing listens there: Ray itself would try for minutes."""
    host, found, port = address.removeprefix("ray://").rpartition(":")
    if not (found and port.isdecimal()):
        return  # a name, such as auto, that Ray resolves at once
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise ValueError(f"there is no Ray cluster at {address}: {error.strerror or error}.") from None


def _attempt(script: str, flags: Mapping[str, Any]) -> tuple[grid.Outcome, dict[str, bytes]]:
    """Runs a setting where Ray has put it; the outcome, and the files of its folder but for checkpoints."""
    use_one_core()
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "run"
        outcome = grid.attempt(script, flags, path)
        found = {
            file.relative_to(path).as_posix(): file.read_bytes()
            for file in sorted(path.rglob("*"))
            if file.is_file() and "checkpoints" not in file.relative_to(path).parts
        }
    return outcome, found
