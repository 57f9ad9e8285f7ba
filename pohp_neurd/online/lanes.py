"""Lanes: many independent runs laid over the cores, a process for each; results do not depend on it."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np


def cores(wanted: int | None) -> int:
    """`wanted` cores, checked; by default all that this process may use."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if wanted is None:
        return available
    if not 1 <= wanted <= available:
        raise ValueError(f"cores must be between 1 and {available} on this machine, but is {wanted}.")
    return wanted


def deal(tree: Any, count: int) -> list[Any]:
    """The runs of `tree`, along its leading axis, in `count` lanes of almost equal length."""
    import jax

    size = len(jax.tree.leaves(tree)[0])
    shares = np.array_split(np.arange(size), count)
    return [jax.tree.map(lambda leaf, s=s: leaf[s[0] : s[-1] + 1], tree) for s in shares]


def gather(trees: Sequence[Any]) -> Any:
    """The inverse of `deal`."""
    import jax

    return jax.tree.map(lambda *parts: np.concatenate(parts), *trees)


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
    with concurrent.futures.ProcessPoolExecutor(count, context, initializer=_begin) as pool:
        yield pool.map


def _begin() -> None:
    """The beginning of a process: Ctrl-C and a closed terminal are for who has started it, and will save."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    use_one_core()


def use_one_core() -> None:
    """Tells JAX, before its first computation, to keep to one thread in this process."""
    os.environ["PJRT_NPROC"] = "1"
