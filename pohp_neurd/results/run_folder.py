"""What a run needs: a folder, which is never overwritten unasked, and enough memory."""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from pohp_neurd import files
from pohp_neurd.results import records

_MEMORY_LIMIT = pathlib.Path("/sys/fs/cgroup/memory.max")


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Where the files of a run stand. Made by `opened`."""

    path: pathlib.Path

    @property
    def config(self) -> pathlib.Path:
        """The configuration, as JSON."""
        return self.path / "config.json"

    @property
    def metrics(self) -> pathlib.Path:
        """The rows, as CSV."""
        return self.path / "metrics.csv"

    @property
    def checkpoints(self) -> pathlib.Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def policy(self) -> pathlib.Path:
        """The folder of the trained policies, if there are any."""
        return self.path / "policy"

    @property
    def events(self) -> pathlib.Path:
        """The folder of TensorBoard's event files, if there are any."""
        return self.path / "events"

    @property
    def digest(self) -> str:
        """What tells the run from others, by its configuration: equal ones make equal runs, to the bit."""
        content = json.dumps(records.read_object(self.config), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def curve(self) -> pathlib.Path:
        """The picture."""
        return self.path / "curve.png"


@contextlib.contextmanager
def opened(
    path: records.Path, config: Mapping[str, Any], *, resume: bool = False, overwrite: bool = False
) -> Iterator[RunFolder]:
    """The folder of a new run, or of one that goes on, for this process alone as long as the block lasts.

    A folder that holds anything is refused, with one sentence, unless it is a run's and `overwrite` throws
    that run away or `resume` goes on with it. A run goes on only under the configuration it began with.
    """
    check_open(path, resume=resume, overwrite=overwrite)
    folder = RunFolder(pathlib.Path(path))
    with files.locked(path, what="run"):
        check_open(path, resume=resume, overwrite=overwrite)  # another may have been at work until now
        if resume:
            _check_same(folder, config)
        else:
            if folder.config.is_file():
                _remove(folder)
            try:
                records.write_json(folder.config, config)
            except OSError as error:
                raise ValueError(f"{folder.path} cannot be written: {error.strerror}.") from None
        yield folder


def check_open(path: records.Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Raises a ValueError if `opened` would refuse this folder, whatever the configuration."""
    if resume and overwrite:
        raise ValueError("a run can be resumed or overwritten, but not both.")
    check_writable(path)
    folder = RunFolder(pathlib.Path(path))
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


def check_writable(path: records.Path) -> None:
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
    before, now = records.read_object(folder.config), json.loads(json.dumps(config))
    missing = "absent"
    changed = [
        f"{name} was {before.get(name, missing)} and is now {now.get(name, missing)}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name, missing) != now.get(name, missing)
    ]
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
    there = total_memory()
    if needed > there:
        raise ValueError(
            f"{of} would take at least {_shown(needed)} of memory, but this machine has {_shown(there)}."
        )


def memory_of_layers(sizes: tuple[int, ...], *, copies: int) -> float:
    """Bytes of `copies` of the weights between layers of these `sizes`, in float32."""
    return 4.0 * copies * sum(a * b for a, b in itertools.pairwise(sizes))


def _shown(size: float) -> str:
    return f"{size / 2**30:,.1f} GiB"
