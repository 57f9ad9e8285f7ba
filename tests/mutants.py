"""Would the tests notice? One-line changes, each a bug that someone could have written, and who catches it.

`make mutants` applies one change after the other to a copy of the repo, runs the tests that should fail first
and, only if none does, all tests of their folder that are not marked slow. Rows are written as they are
found, so that a run that was stopped resumes. `mutant_tables/` has the list, docs/testing.md the last result.
"""

import argparse
import concurrent.futures
import csv
import functools
import hashlib
import multiprocessing
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import tomllib
from typing import NamedTuple

import tqdm


class Mutant(NamedTuple):
    """A change of one place."""

    name: str
    file: str
    old: str
    """Must occur exactly once in the file, or the mutant is stale."""
    new: str
    tests: str
    """Files under tests/, or tests in them, that run first; several are separated by spaces."""
    accepted: str = ""
    """Why nobody has to notice; empty for a mutant that must be caught."""


ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLES = ROOT / "tests" / "mutant_tables"


def listed(folder: pathlib.Path) -> tuple[Mutant, ...]:
    """The mutants of all tables in `folder`: one for each part of the package."""
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.toml"))]
    return tuple(Mutant(**entry) for table in tables for entry in table["mutant"])


MUTANTS = listed(TABLES)
MAX_SURVIVORS = 2
_SECONDS = 1_800  # for one run of tests: some changes make loops that do not end
_COLUMNS = ("mutant", "file", "digest", "verdict", "by")
CAUGHT, SURVIVED, STALE, BROKEN = "caught", "survived", "stale", "broken"


class Verdict(NamedTuple):
    """What became of a mutant."""

    verdict: str
    by: str
    """The test that failed first, or what is wrong."""


def digest(mutant: Mutant, root: pathlib.Path) -> str:
    """Changes with the mutant and with the file that it is of: then an old verdict is worth nothing."""
    content = "\n".join([mutant.old, mutant.new, (root / mutant.file).read_text(encoding="utf-8")])
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def copy_of(root: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A copy of what git tracks or would add, that Python imports before the installed package."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
    # Installed, the games are a package inside the package; here they must be the copy's own.
    (folder / "pohp_neurd" / "games").symlink_to(folder / "games")
    cache = root / ".cache"
    cache.mkdir(exist_ok=True)
    (folder / ".cache").symlink_to(cache.resolve())
    for name in ("pohp_neurd", "pohp_neurd.games"):
        command = [
            sys.executable,
            "-c",
            f"from importlib import util; print(util.find_spec({name!r}).origin)",
        ]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        place = subprocess.run(
            command, cwd=folder, env=environment, check=True, capture_output=True, text=True
        )
        if not place.stdout.startswith(str(folder)):
            raise SystemExit(f"the copy is not what Python imports, but {place.stdout.strip()}.")
    return folder


def _pytest(folder: str, output: str, names: list[str]) -> None:
    """The body of a process that runs tests in `folder` and ends with pytest's exit code."""
    import pytest

    os.chdir(folder)
    sys.path.insert(0, folder)
    os.environ |= {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    with open(output, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(int(pytest.main(["-q", "-p", "no:cacheprovider", *names])))


class Run(NamedTuple):
    """What pytest said."""

    code: int | None
    """None where it did not come to an end."""
    output: str


def _run(folder: pathlib.Path, names: list[str]) -> Run:
    """Runs pytest in `folder`, in a process of its own.

    Forked from one that has loaded all libraries but not ours: most of a quick test is their import.
    """
    with tempfile.NamedTemporaryFile(prefix="mutant_", suffix=".txt") as file:
        process = _context().Process(target=_pytest, args=(str(folder), file.name, names))
        process.start()
        process.join(_SECONDS)
        ended = process.exitcode is not None
        if not ended:
            process.kill()
            process.join()
        return Run(process.exitcode if ended else None, pathlib.Path(file.name).read_text(errors="replace"))


@functools.cache
def _context() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["jax", "haiku", "optax", "scipy.special", "pyspiel"])
    return context


def _failed(output: str) -> list[str]:
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)


def _verdict(folder: pathlib.Path, names: list[str]) -> Verdict:
    """Whether one of these tests fails: that catches the mutant."""
    run = _run(folder, ["-x", "-m", "not slow", *names])
    if run.code is None:
        return Verdict(CAUGHT, "a test that does not end")
    if run.code in (0, 5):  # 5: there was none, as in a file without examples
        return Verdict(SURVIVED, "")
    failed = _failed(run.output)
    if run.code == 1 and failed:
        return Verdict(CAUGHT, failed[0])
    return Verdict(BROKEN, textwrap.shorten(run.output[-400:], 200))


def judge(mutant: Mutant, folder: pathlib.Path, *, narrow: bool = False) -> Verdict:
    """The verdict on one mutant, in a copy that is afterwards what it was; `narrow` as the flag says."""
    path = folder / mutant.file
    original = path.read_text(encoding="utf-8")
    count = original.count(mutant.old)
    if count != 1:
        return Verdict(STALE, f"its old text occurs {count} times")
    path.write_text(original.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        named = [f"tests/{name}" for name in mutant.tests.split()]
        files = sorted({name.split("::")[0] for name in named})
        folders = sorted({(folder / name).parent for name in files})
        others = [
            str(test.relative_to(folder)) for place in folders for test in sorted(place.glob("test_*.py"))
        ]
        others = [name for name in others if name not in files]
        # What should notice; then the files that it is in, and the changed file's examples; then all others.
        stages = [named, [*(files if files != sorted(named) else []), mutant.file], [] if narrow else others]
        found = Verdict(SURVIVED, "")
        for names in filter(None, stages):
            found = _verdict(folder, names)
            if found.verdict != SURVIVED:
                break
        return found
    finally:
        path.write_text(original, encoding="utf-8")


def unsound(rows: list[dict[str, str]], folder: pathlib.Path) -> set[str]:
    """The tests that catch mutants and fail without them too: what they caught is not caught."""
    names = sorted({row["by"] for row in rows if row["verdict"] == CAUGHT and "::" in row["by"]})
    if not names:
        return set()
    run = _run(folder, names)
    if run.code not in (0, 1):
        raise SystemExit(f"the tests cannot be run without a mutant: {run.output[-2000:]}")
    return set(_failed(run.output))


def read(path: pathlib.Path) -> dict[str, dict[str, str]]:
    """Rows of an earlier run, by mutant."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["mutant"]: row for row in csv.DictReader(file)}


def markdown(rows: list[dict[str, str]]) -> str:
    """The rows as a table: mutant, file, and the test that caught it."""
    accepted = {mutant.name: mutant.accepted for mutant in MUTANTS}
    lines = ["| change | in | caught by |", "|---|---|---|"]
    for row in rows:
        if row["verdict"] == CAUGHT:
            by = f"`{row['by'].removeprefix('tests/').partition('[')[0]}`"
        else:
            by = f"**{row['verdict']}**: {row['by'] or accepted[row['mutant']]}"
        lines.append(f"| {row['mutant']} | `{row['file'].removeprefix('pohp_neurd/')}` | {by} |")
    return "\n".join(lines)


def main() -> int:
    """Judges all mutants, or those that are named; 1 if more survive than may, or one cannot be judged."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="part of a mutant's name; again for more"
    )
    parser.add_argument(
        "--results",
        type=pathlib.Path,
        default=ROOT / ".cache" / "mutants.csv",
        help="rows, as they are found",
    )
    parser.add_argument("--fresh", action="store_true", help="judge again what has a row already")
    parser.add_argument(
        "--narrow", action="store_true", help="run the named tests and their files, not their folders"
    )
    parser.add_argument("--workers", type=int, choices=(1, 2), default=1)
    parser.add_argument(
        "--table", action="store_true", help="print the rows that there are as a table, and run nothing"
    )
    flags = parser.parse_args()
    chosen = [m for m in MUTANTS if not flags.only or any(part in m.name for part in flags.only)]
    if not chosen:
        parser.error(f"no mutant's name holds {' or '.join(flags.only)}.")
    known = {} if flags.fresh else read(flags.results)
    if flags.table:
        print(markdown([known[mutant.name] for mutant in chosen if mutant.name in known]))
        return 0
    digests = {mutant.name: digest(mutant, ROOT) for mutant in chosen}

    def is_settled(mutant: Mutant) -> bool:
        row = known.get(mutant.name)
        # What was not caught is judged again: there may be a new test.
        return row is not None and row["verdict"] == CAUGHT and row["digest"] == digests[mutant.name]

    waiting = [mutant for mutant in chosen if not is_settled(mutant)]
    lock = threading.Lock()

    def write(row: dict[str, str] | None = None) -> None:
        with lock:
            if row is not None:
                known[row["mutant"]] = row
            flags.results.parent.mkdir(parents=True, exist_ok=True)
            partial = flags.results.with_suffix(".partial")
            with partial.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, _COLUMNS)
                writer.writeheader()
                writer.writerows(known.values())
            partial.replace(flags.results)

    with tempfile.TemporaryDirectory(prefix="mutants_") as temporary:
        copies: queue.Queue[pathlib.Path] = queue.Queue()
        for number in range(flags.workers):
            folder = pathlib.Path(temporary).resolve() / str(number)
            folder.mkdir()
            copies.put(copy_of(ROOT, folder))

        def one(mutant: Mutant) -> Verdict:
            folder = copies.get()
            try:
                found = judge(mutant, folder, narrow=flags.narrow)
            finally:
                copies.put(folder)
            row = dict(zip(_COLUMNS, (mutant.name, mutant.file, digests[mutant.name], *found), strict=True))
            write(row)
            return found

        with (
            concurrent.futures.ThreadPoolExecutor(flags.workers) as pool,
            tqdm.tqdm(total=len(waiting), unit="mutant") as progress,
        ):
            running = {pool.submit(one, mutant): mutant for mutant in waiting}
            try:
                for done in concurrent.futures.as_completed(running):
                    found = done.result()
                    progress.write(f"{found.verdict:9} {running[done].name}   {found.by}")
                    progress.update()
            except BaseException:
                pool.shutdown(cancel_futures=True)  # one that is stopped does not judge all others first
                raise
        rows = [known[mutant.name] for mutant in chosen]
        failing = unsound(rows, copies.get())
    for row in rows:
        if row["verdict"] == CAUGHT and row["by"] in failing:
            row |= {"verdict": BROKEN, "by": f"{row['by']} fails without the change too"}
    write()
    counts = {kind: sum(row["verdict"] == kind for row in rows) for kind in (CAUGHT, SURVIVED, STALE, BROKEN)}
    print(
        ", ".join(f"{count} {kind}" for kind, count in counts.items()),
        f"of {len(rows)}; rows in {flags.results}",
    )
    for row in rows:
        if row["verdict"] != CAUGHT:
            print(f"{row['verdict']}: {row['mutant']} ({row['file']}) {row['by']}")
    unexplained = [m.name for m in chosen if known[m.name]["verdict"] == SURVIVED and not m.accepted]
    return int(bool(unexplained or counts[STALE] or counts[BROKEN]) or counts[SURVIVED] > MAX_SURVIVORS)


if __name__ == "__main__":
    sys.exit(main())
