"""JSON, CSV and text files that are whole or absent."""

import csv
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

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
    with files.atomic(path) as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, as text."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
