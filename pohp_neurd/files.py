"""Files that are whole or absent: written beside their place and moved there; and locks on folders."""

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Iterator
from typing import IO, Any

Path = str | os.PathLike[str]


@contextlib.contextmanager
def atomic(path: Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A file, of text unless `binary`, that takes its name only when it is complete and on disk.

    Where it cannot be written the OSError names `path`, not the file beside it.
    """
    path = pathlib.Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") if binary else open(partial, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        # A write, unlike opening and renaming, does not say of what; errors of other files go by as they are.
        if error.filename not in (None, str(partial)):
            raise
        missing = isinstance(error, FileNotFoundError) and not path.parent.exists()
        reason = f"there is no folder {path.parent}" if missing else error.strerror
        raise OSError(error.errno, reason, str(path)) from None  # of the same kind, which errno decides
    finally:
        with contextlib.suppress(OSError):  # it is not there, or nothing more can be done
            os.remove(partial)


LOCK = "lock"
"""The file in a folder that says who is at work there."""


@contextlib.contextmanager
def locked(folder: Path, *, what: str) -> Iterator[None]:
    """The folder, made if it must be, for this process alone; a ValueError if another one has it.

    The lock goes with the process, however it ends: a file that is left behind locks nothing.
    """
    path = pathlib.Path(folder) / LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _opened(path)
        while not _is_at(path, lock):  # who held it until now has removed it
            lock.close()
            lock = _opened(path)
    except OSError as error:
        raise ValueError(f"{folder} cannot be written: {error.strerror}.") from None
    except _Taken as taken:
        raise ValueError(
            f"another {what} is at work in {folder} (process {taken}): wait for its end, or choose another "
            "folder."
        ) from None
    with lock:
        try:
            yield
        finally:
            if _is_at(path, lock):
                path.unlink()


class _Taken(Exception):
    """Another process has the lock; the message is its number."""


def _opened(path: pathlib.Path) -> IO[str]:
    """The lock file, locked, with this process's number in it."""
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(open(path, "a+", encoding="utf-8"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise _Taken(lock.read().strip()) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        stack.pop_all()
        return lock


def _is_at(path: pathlib.Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False
