"""JSON, CSV and text files that are whole or absent."""

import contextlib
import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from pohp_neurd import files

Path = files.Path


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Writes `content` for people: indented, keys in their order."""
    with files.atomic(path) as file:
        json.dump(content, file, indent=2)
        file.write("\n")


def write_text(path: Path, text: str) -> None:
    """Writes `text` as it is."""
    with files.atomic(path) as file:
        file.write(text)


def read_json(path: Path) -> Any:
    """The content of a JSON file; a ValueError that names the file where it is damaged."""
    with _reading(path) as file:
        try:
            return json.load(file)
        except json.JSONDecodeError as error:
            raise ValueError(f"{os.fspath(path)} is not valid JSON: {error}.") from None


def read_object(path: Path) -> dict[str, Any]:
    """The content of a JSON file that holds names and values; a ValueError that names any other file."""
    content = read_json(path)
    if not isinstance(content, dict):
        kind = {list: "a list", type(None): "null"}.get(type(content), repr(content))
        raise ValueError(f"{os.fspath(path)} must hold a JSON object, but holds {kind}.")
    return content


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Writes `rows`, every one with exactly `columns`."""
    for row in rows:
        if set(row) != set(columns):
            raise ValueError(f"a row must have the columns {list(columns)}, but has {list(row)}.")
    with files.atomic(path) as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, as text; a ValueError that names the file where it is none."""
    with _reading(path) as file:
        reader = csv.DictReader(file)
        try:
            rows, names = list(reader), list(reader.fieldnames or ())
        except csv.Error as error:
            raise ValueError(f"{os.fspath(path)} is not valid CSV: {error}.") from None
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{os.fspath(path)} must have one column {name!r}, but has {names.count(name)}.")
    return rows


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[IO[str]]:
    """The text of a file, with or without the mark that spreadsheets begin it with.

    What is there but cannot be read is a ValueError; a file that is not there stays a FileNotFoundError.
    """
    name = os.fspath(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            yield file
    except FileNotFoundError:
        raise
    except IsADirectoryError:
        raise ValueError(f"{name} must be a file, but is a folder.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{name} must be text in UTF-8, but is not.") from None
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}.") from None
