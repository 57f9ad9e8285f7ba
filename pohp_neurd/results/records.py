"""What runs leave behind: JSON, CSV and text that are whole or absent, in a folder of their own.

A run's folder is never overwritten unasked, and no run is begun that does not fit into memory.
"""

import contextlib
import csv
import hashlib
import itertools
import json
import os
import pathlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from pohp_neurd import files

Path = files.Path

_MEMORY_LIMIT = pathlib.Path("/sys/fs/cgroup/memory.max")


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


class RunFolder:
    """Where the files of a run stand, `policy` and `events` if there are any. Made by `opened`."""

    def __init__(self, path: Path) -> None:
        self.path = pathlib.Path(path)
        self.config = self.path / "config.json"
        self.metrics = self.path / "metrics.csv"
        self.checkpoints = self.path / "checkpoints"
        self.policy = self.path / "policy"
        self.events = self.path / "events"
        self.curve = self.path / "curve.png"

    @property
    def digest(self) -> str:
        """What tells the run from others, by its configuration: equal ones make equal runs, to the bit."""
        content = json.dumps(read_object(self.config), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


@contextlib.contextmanager
def opened(
    path: Path, config: Mapping[str, Any], *, resume: bool = False, overwrite: bool = False
) -> Iterator[RunFolder]:
    """The folder of a new run, or of one that goes on, for this process alone as long as the block lasts.

    A folder that holds anything is refused, with one sentence, unless it is a run's and `overwrite` throws
    that run away or `resume` goes on with it. A run goes on only under the configuration it began with.
    """
    check_open(path, resume=resume, overwrite=overwrite)
    folder = RunFolder(path)
    with files.locked(path, what="run"):
        check_open(path, resume=resume, overwrite=overwrite)  # another may have been at work until now
        if resume:
            _check_same(folder, config)
        else:
            if folder.config.is_file():
                _remove(folder)
            try:
                write_json(folder.config, config)
            except OSError as error:
                raise ValueError(f"{folder.path} cannot be written: {error.strerror}.") from None
        yield folder


def check_open(path: Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Raises a ValueError if `opened` would refuse this folder, whatever the configuration."""
    if resume and overwrite:
        raise ValueError("a run can be resumed or overwritten, but not both.")
    check_writable(path)
    folder = RunFolder(path)
    is_run = folder.config.is_file()
    if resume and not is_run:
        raise ValueError(f"there is no run to resume in {folder.path}.")
    if not resume and folder.path.exists() and any(file.name != files.LOCK for file in folder.path.iterdir()):
        if not is_run:
            raise ValueError(f"{folder.path} holds files that are not a run's: choose another folder.")
        if not overwrite:
            raise ValueError(
                f"{folder.path} already holds a run: choose another folder, or resume or overwrite it."
            )


def check_writable(path: Path) -> None:
    """Raises a ValueError unless `path` is a folder that may be written to, or can be made one."""
    if not os.fspath(path):
        raise ValueError("a run needs a folder, but its name is empty.")
    place = pathlib.Path(path)
    if place.exists() and not place.is_dir():
        raise ValueError(f"{place} is a file, but a run needs a folder.")
    nearest = next(each for each in (place, *place.absolute().parents) if each.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise ValueError(f"{place} cannot be written: {nearest} is not a folder that may be written to.")


def _check_same(folder: RunFolder, config: Mapping[str, Any]) -> None:
    before, now = read_object(folder.config), json.loads(json.dumps(config))
    pairs = {name: (before.get(name, "absent"), now.get(name, "absent")) for name in before | now}
    changed = [f"{name} was {was} and is now {is_}" for name, (was, is_) in pairs.items() if was != is_]
    if changed:
        raise ValueError(f"cannot resume {folder.path} with another configuration: {'; '.join(changed)}.")


def _remove(folder: RunFolder) -> None:
    for file in (folder.metrics, folder.curve):
        file.unlink(missing_ok=True)
    for part in (folder.checkpoints, folder.policy, folder.events):
        if part.is_dir():
            shutil.rmtree(part)
    # Last: without it the folder would no longer be known for a run's.
    folder.config.unlink()


def total_memory() -> float:
    """Bytes of memory that this process may have: the machine's, or its container's if that is less."""
    machine = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    try:
        return min(machine, float(_MEMORY_LIMIT.read_text(encoding="ascii")))
    except (OSError, ValueError):  # there is no such file, or no such limit
        return machine


def check_memory(needed: float, *, of: str) -> None:
    """Raises a ValueError if `needed` bytes, by a rough estimate from below, are more than there are.

    `of` says which settings ask for them.
    """
    least, there = (f"{size / 2**30:,.1f} GiB" for size in (needed, total_memory()))
    if needed > total_memory():
        raise ValueError(f"{of} would take at least {least} of memory, but this machine has {there}.")


def memory_of_layers(sizes: tuple[int, ...], *, copies: int) -> float:
    """Bytes of `copies` of the weights between layers of these `sizes`, in float32."""
    return 4.0 * copies * sum(a * b for a, b in itertools.pairwise(sizes))
