"""Files that are whole or absent: written beside their place and moved there."""

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import IO, Any

Path = str | os.PathLike[str]


@contextlib.contextmanager
def atomic(path: Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A file, of text unless `binary`, that takes its name only when it is complete and on disk."""
    path = pathlib.Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") if binary else open(partial, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(partial)
