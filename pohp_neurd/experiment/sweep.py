"""A sweep: many settings of one training script in one folder, which can be killed and goes on.

The folder has runs/ID, the folder of every run; outcomes/ID.json, written once a setting is finished; and
results.csv, failures.csv and curves.csv, made from these two alone.
"""

import contextlib
import errno
import functools
import json
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pohp_neurd import files
from pohp_neurd.experiment import grid, schema
from pohp_neurd.experiment import run as run_loop
from pohp_neurd.results import records

Execute = Callable[[Sequence[grid.Setting], pathlib.Path], Iterator[tuple[grid.Setting, grid.Outcome]]]
"""(settings, the folder of their runs) -> each setting with its outcome, as they finish."""

_RESERVE = 64 * 1024  # bytes kept free for the records of a full disk


class Finished(NamedTuple):
    """A setting that was run to its end, or failed."""

    id: str
    flags: Mapping[str, Any]
    figures: Mapping[str, Any] | None
    sentence: str


def run(
    settings: Sequence[grid.Setting],
    path: records.Path,
    execute: Execute,
    *,
    retry_failed: bool = False,
    known_from: Sequence[records.Path] = (),
) -> list[Finished]:
    """Runs what is not finished yet of `settings` in the folder `path`; what became of each of them.

    A setting that fails does not stop the others. It is left as it is when the sweep goes on, unless
    `retry_failed`. The folder may hold settings of other grids of the same script: the tables are of all.
    What a table of `known_from` has is taken over, without its curve.
    """
    elsewhere = {each.id: each for table in known_from for each in taken_over(settings, table)}
    if not os.fspath(path):
        raise ValueError("output_dir must name a folder, but is empty.")
    folder = pathlib.Path(path)
    with _locked(folder, settings[0].script), run_loop.raised():
        known = {finished.id: finished for finished in read(folder)}
        if retry_failed:
            for setting in settings:
                if setting.id in known and known[setting.id].figures is None:
                    del known[setting.id]
                    shutil.rmtree(folder / "runs" / setting.id, ignore_errors=True)  # it begins anew
        for each in elsewhere.values():
            if known.setdefault(each.id, each) is each:
                _record(folder, each, 0.0)
        todo = [setting for setting in settings if setting.id not in known]
        bar = run_loop.progress(len(settings), len(settings) - len(todo), "setting")
        try:
            with bar:
                for setting, outcome in execute(todo, folder / "runs") if todo else ():
                    found = Finished(setting.id, setting.flags, outcome.figures, outcome.sentence)
                    known[setting.id] = found
                    _record(folder, found, outcome.seconds)
                    bar.update()
                    failed = [s for s in settings if s.id in known and known[s.id].figures is None]
                    bar.set_postfix({"failed": len(failed)})
        finally:  # after Ctrl-C too there are tables of what is finished
            if known:
                write_tables(folder, list(known.values()))
    return [known[setting.id] for setting in settings]


def read(path: records.Path) -> list[Finished]:
    """What the folder of a sweep has on finished settings."""
    found = []
    for file in sorted((pathlib.Path(path) / "outcomes").glob("*.json")):
        content = records.read_object(file)
        flags, figures = content.get("flags"), content.get("figures")
        if not isinstance(flags, dict) or not isinstance(figures, dict | None):
            raise ValueError(f"{file} is not what a sweep writes: remove it.")
        # JSON has no tuples; a setting must not look different for having been read.
        flags = {name: tuple(value) if isinstance(value, list) else value for name, value in flags.items()}
        found.append(Finished(file.stem, flags, figures, str(content.get("sentence"))))
    return found


def taken_over(settings: Sequence[grid.Setting], path: records.Path) -> list[Finished]:
    """Those of `settings` that another sweep has finished, from its results.csv; `rows` the other way."""
    by_id, found = {setting.id: setting for setting in settings}, []
    try:
        recorded = records.read_csv(path)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}.") from None
    for row in recorded:
        if "id" not in row:
            raise ValueError(f"{path} has no column id: it is not the results.csv of a sweep.")
        setting = by_id.get(row["id"])
        if setting is None:
            continue
        flags = {*setting.flags, *(flag.swept for flag in schema.flags(grid.JOBS[setting.script].config))}
        cells = {name: cell for name, cell in row.items() if name not in {"id", *flags} and cell}
        figures = {name.removeprefix("final_"): float(cell) for name, cell in cells.items()}
        whole = {
            name: int(value) if cells.get(name, "").isdigit() else value for name, value in figures.items()
        }
        found.append(Finished(setting.id, setting.flags, whole, ""))
    return found


def rows(finished: Sequence[Finished]) -> list[dict[str, Any]]:
    """The table of those that did not fail: id, flags, figures.

    A figure that has the name of a flag is called final_NAME: `episodes` is what was asked for.
    """
    return [
        {
            **_cells(each),
            **{f"final_{n}" if n in each.flags else n: value for n, value in each.figures.items()},
        }
        for each in _ordered(finished)
        if each.figures is not None
    ]


def curves(path: records.Path, finished: Sequence[Finished]) -> list[dict[str, Any]]:
    """The rows of metrics.csv of those that did not fail, with their flags in front, without the seconds."""
    found = []
    for each in _ordered(finished):
        file = pathlib.Path(path) / "runs" / each.id / "metrics.csv"
        if each.figures is None or not file.is_file():
            continue
        # A flag such as episodes may also be a column, which then tells how many there were so far.
        found += [{**_cells(each), **row} for row in records.read_csv(file)]
    return [{name: cell for name, cell in row.items() if name != "seconds"} for row in found]


def write_tables(path: records.Path, finished: Sequence[Finished]) -> None:
    """Writes results.csv, curves.csv and, if anything failed, failures.csv."""
    folder = pathlib.Path(path)
    failed = [each for each in _ordered(finished) if each.figures is None]
    tables = {"results.csv": rows(finished), "curves.csv": curves(folder, finished)}
    if failed:
        told = [{**_cells(each), "sentence": each.sentence} for each in failed]
        tables = {"failures.csv": told, **tables}  # the largest comes last
    else:
        (folder / "failures.csv").unlink(missing_ok=True)
    lost = []
    for name, table in tables.items():
        # Grids may differ in their flags: where a setting has no value there is an empty cell.
        columns = list(dict.fromkeys(column for row in table for column in row)) or ["id"]
        filled = [{column: row.get(column, "") for column in columns} for row in table]
        if not _with_room(folder, functools.partial(records.write_csv, folder / name, filled, columns)):
            lost.append(name)
    if lost:
        raise ValueError(
            f"{folder} has no up-to-date {' and '.join(lost)}: the same command again writes what is "
            "missing, and runs nothing twice."
        )


def _cells(each: Finished) -> dict[str, Any]:
    return {"id": each.id, **{name: schema.text(value) for name, value in each.flags.items()}}


def _ordered(finished: Sequence[Finished]) -> list[Finished]:
    """By the values of their flags: numbers as numbers, so that no order of running shows."""
    names = sorted({name for each in finished for name in each.flags})

    def place(each: Finished) -> tuple[list[tuple[int, float, str]], str]:
        values = (each.flags.get(name) for name in names)
        return [
            (0, float(v), "") if isinstance(v, int | float) else (1, 0.0, str(v)) for v in values
        ], each.id

    return sorted(finished, key=place)


def _record(folder: pathlib.Path, found: Finished, seconds: float) -> None:
    content = {**found._asdict(), "seconds": seconds}
    _with_room(folder, lambda: records.write_json(folder / "outcomes" / f"{found.id}.json", content))
    # Checkpoints are for going on: a finished run does not need them, and a failed one begins anew.
    shutil.rmtree(folder / "runs" / found.id / "checkpoints", ignore_errors=True)
    with contextlib.suppress(OSError):
        _keep_room(folder)


def _with_room(folder: pathlib.Path, write: Callable[[], None]) -> bool:
    """Writes; on a full disk, once more in the place that was kept for this. Whether it could be written."""
    try:
        try:
            write()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            (folder / _RESERVED).unlink(missing_ok=True)
            write()
    except OSError as error:
        # It is lost on disk, but not on the screen; the next start runs an unrecorded setting again.
        print(f"Could not be recorded: {error.strerror}: {error.filename or folder}.", file=sys.stderr)
        return False
    return True


_RESERVED = ".reserve"


def _keep_room(folder: pathlib.Path) -> None:
    place = folder / _RESERVED
    if place.exists() and place.stat().st_size == _RESERVE:
        return
    try:
        place.write_bytes(b"\0" * _RESERVE)
    except OSError:
        place.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _locked(folder: pathlib.Path, script: str) -> Iterator[None]:
    """The folder, made ready and for this process alone."""
    with files.locked(folder, what="sweep"):
        try:
            for part in ("runs", "outcomes", "logs"):
                (folder / part).mkdir(parents=True, exist_ok=True)
                if not os.access(folder / part, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder / part))
            about = folder / "sweep.json"
            if not about.is_file():
                records.write_json(about, {"script": script})
            _keep_room(folder)
        except OSError as error:
            raise ValueError(f"{folder} cannot be written: {error.strerror}.") from None
        before = records.read_object(about)
        if "script" not in before:
            raise ValueError(f"{about} is not what a sweep writes: choose another folder.")
        if before["script"] != script:
            raise ValueError(f"{folder} holds a sweep of {before['script']}, but this one is of {script}.")
        yield


def report(finished: Sequence[Finished], path: records.Path) -> dict[str, Any]:
    """The last line of a sweep, for machines."""
    failed = sum(each.figures is None for each in finished)
    return {
        "settings": len(finished),
        "done": len(finished) - failed,
        "failed": failed,
        "results": str(pathlib.Path(path) / "results.csv"),
    }


def failures(finished: Sequence[Finished]) -> list[str]:
    """One line for each setting that failed."""
    return [
        f"{each.id} ({json.dumps(dict(each.flags))}): {each.sentence}"
        for each in finished
        if each.figures is None
    ]
