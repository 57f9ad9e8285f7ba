"""Files that are whole or absent: written beside their place and moved there."""

import contextlib
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
        if error.errno is None or error.filename not in (None, str(partial)):
            raise  # of something else that was done meanwhile
        raise _told(error, path) from None
    finally:
        with contextlib.suppress(OSError):  # it is not there, or nothing more can be done
            os.remove(partial)


class _CannotWrite(OSError):
    """Says in a sentence what could not be written; all else is as the system gave it."""

    def __str__(self) -> str:
        return f"cannot write {self.filename}: {self.strerror}."

    def __reduce__(self) -> Any:  # its class is made when it is raised, and has no place to be found at
        return _of_kind, (type(self).__mro__[2], *self.args, self.filename)


def _told(error: OSError, path: pathlib.Path) -> OSError:
    reason = error.strerror
    if isinstance(error, FileNotFoundError) and not path.parent.exists():
        reason = f"there is no folder {path.parent}"
    return _of_kind(type(error), error.errno, reason, str(path))


def _of_kind(kind: type[OSError], *arguments: Any) -> OSError:
    """A sentence that whoever handles errors of this `kind`, such as PermissionError, handles too."""
    return type(kind.__name__, (_CannotWrite, kind), {})(*arguments)
