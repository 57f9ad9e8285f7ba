"""`pohp-neurd COMMAND --flags`: the scripts of run_scripts/, for those who have installed the package.

Nothing here loads JAX, nor any script but the one that is asked for.
"""

import ast
import difflib
import importlib
import importlib.util
import pathlib
import re
import sys
from typing import Any

from pohp_neurd import __version__

COMMANDS = (
    "train-game",
    "evaluate",
    "play",
    "report",
    "train-single-agent",
    "reproduce-paper",
    "sweep",
    "summarise",
    "plot",
    "bandit",
    "agent-loop",
)


def main() -> None:
    """Runs the command that is named first, with the flags that follow."""
    command, *flags = sys.argv[1:] or ["--help"]
    if command in ("--help", "-h", "help"):
        print(_help())
    elif command == "--version":
        print(f"pohp_neurd {__version__}")
    elif command in COMMANDS:
        script = importlib.import_module(_script(command))
        sys.argv = [command, *flags]
        script.command_line.run(script.main, as_commands(script.__doc__ or ""))
    else:
        near = difflib.get_close_matches(command, COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else "see pohp-neurd --help."
        print(f"{command!r} is no command: {hint}", file=sys.stderr)
        sys.exit(2)


def _script(command: str) -> str:
    return f"pohp_neurd.run_scripts.{command.replace('-', '_')}"


def as_commands(doc: str) -> str:
    """A script's text for those who have installed the package: its commands in place of the files.

    >>> as_commands("python run_scripts/report.py --checkpoint=runs/game: a run of train_game.py")
    'pohp-neurd report --checkpoint=runs/game: a run of pohp-neurd train-game'
    """
    names = "|".join(_script(command).rpartition(".")[2] for command in COMMANDS)
    found = rf"(?:python run_scripts/)?\b({names})\.py"
    return re.sub(found, lambda match: f"pohp-neurd {match[1].replace('_', '-')}", doc)


def _help() -> str:
    lines = ["Usage: pohp-neurd COMMAND --flag=value ...", ""]
    for command in COMMANDS:
        spec: Any = importlib.util.find_spec(_script(command))
        doc = ast.get_docstring(ast.parse(pathlib.Path(spec.origin).read_text("utf-8")))
        lines.append(f"  {command:<20} {as_commands(doc or '').splitlines()[0]}")
    return "\n".join(
        [*lines, "", "pohp-neurd COMMAND --help lists the flags; pohp-neurd --version the version."]
    )


if __name__ == "__main__":
    main()
