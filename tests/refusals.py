"""How the tests of bad input call scripts and damage files.

A refusal is one sentence on stderr, exit code 2, no traceback, no warning, and every file as it was.
"""

import json
import pathlib

import loaded_scripts
from absl.testing import flagsaver

SCRIPTS = sorted(
    path.stem
    for path in (pathlib.Path(__file__).resolve().parents[1] / "run_scripts").glob("*.py")
    if path.stem != "__init__"
)


def called(name, arguments):
    """Runs a script in this process as a shell would; its exit code."""
    with loaded_scripts.loaded(name) as script, flagsaver.flagsaver():
        try:
            script.main(script.command_line.parse([name, *arguments]))
        except SystemExit as stop:
            return stop.code
    return 0


def contents(folder):
    """All that is in a folder, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def check_refused(name, arguments, words, place, capfd):
    """The script prints one line that has all `words`, with exit code 2; files in `place` stay the same.

    Args:
      name: of the script.
      arguments: of its command line.
      words: a whole sentence where the wording is the promise, else what the sentence must name.
      place: the folder that must not change.
      capfd: pytest's fixture.
    """
    before = contents(place)
    capfd.readouterr()
    code = called(name, arguments)
    told = capfd.readouterr()
    lines = told.err.strip().splitlines()
    assert len(lines) == 1, told.err
    for word in words:
        assert word in lines[0]
    assert lines[0].endswith((".", "?"))
    assert "Traceback" not in told.out
    assert code == 2
    assert contents(place) == before


def written(path, text):
    """A change of a folder: writes over a file, or makes it."""

    def change(place):
        for file in sorted(place.glob(path)) or [place / path]:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())

    return change


def edited(path, edit):
    """A change of a folder: `edit` of their text in all files of that name."""

    def change(place):
        for file in place.glob(path):
            file.write_text(edit(file.read_text()))

    return change


def with_json(path, **values):
    """A change of a folder: other entries in JSON files."""
    return edited(path, lambda text: json.dumps({**json.loads(text), **values}))
