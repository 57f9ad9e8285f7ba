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
        # A write, unlike opening and renaming, does not say of what; errors of other files go by as they are.
        if error.filename not in (None, str(partial)):
            raise
        missing = isinstance(error, FileNotFoundError) and not path.parent.exists()
        reason = f"there is no folder {path.parent}" if missing else error.strerror
        raise OSError(error.errno, reason, str(path)) from None  # of the same kind, which errno decides
    finally:
        with contextlib.suppress(OSError):  # it is not there, or nothing more can be done
            os.remove(partial)
