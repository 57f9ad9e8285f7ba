"""Files that are whole or absent: JSON and CSV, written beside their place and moved there."""

import contextlib
import csv
import json
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

Path = str | os.PathLike[str]


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[IO[str]]:
    """A text file that takes its name only when it is complete and on disk."""
    path = pathlib.Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(partial)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Writes `content` for people: indented, keys in their order."""
    with atomic(path) as file:
        json.dump(content, file, indent=2)
        file.write("\n")


def read_json(path: Path) -> dict[str, Any]:
    """The content of a JSON file; a ValueError that names the file where it is damaged."""
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except json.JSONDecodeError as error:
            raise ValueError(f"{os.fspath(path)} is not valid JSON: {error}.") from None


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Writes `rows`, every one with exactly `columns`."""
    for row in rows:
        if set(row) != set(columns):
            raise ValueError(f"a row must have the columns {list(columns)}, but has {list(row)}.")
    with atomic(path) as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, as text."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
