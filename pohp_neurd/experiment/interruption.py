"""Signals that end a run as a question that its loop asks, so that it can save before it goes.

Ctrl-C, SIGTERM, and SIGHUP, which comes when the terminal is closed.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


class Interrupted(Exception):
    """A run was asked to stop, and did so with a checkpoint; `after` says how far it is, and how to go on."""

    def __init__(self, number: int, after: str) -> None:
        super().__init__(f"Stopped by {signal.Signals(number).name} after {after}.")
        self.exit_code = 128 + number


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
