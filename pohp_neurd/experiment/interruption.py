"""Ctrl-C and SIGTERM as a question that a loop asks, so that it can save before it goes."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


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

    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: came[0] if came else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
