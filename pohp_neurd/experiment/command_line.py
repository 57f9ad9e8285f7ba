"""From configs to absl flags and back, with help by topic and one sentence for whatever goes wrong.

Nothing here, and nothing that a script imports before its `main`, loads JAX: that takes seconds, and a wrong
flag is told of before.
"""

import contextlib
import functools
import os
import pathlib
import sys
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

from absl import app, flags, logging

import pohp_neurd
from pohp_neurd.experiment import schema
from pohp_neurd.experiment.run import Interrupted


class _Scalar(flags.ArgumentParser):
    """A number or a word; none, where there need not be one."""

    def __init__(self, kind: schema.Kind) -> None:
        self._kind = kind
        self.syntactic_help = kind.text

    def parse(self, argument: Any) -> Any:
        return schema.scalar(self._kind, argument)


def define(config_class: Any, **defaults: Any) -> None:
    """A flag for every field of a config that is declared as one; `defaults` are a script's own."""
    for flag in schema.flags(config_class):
        name, default = flag.name, defaults.get(flag.field, flag.default)
        if flag.kind.item is bool:
            flags.DEFINE_bool(name, default, flag.help)
        elif flag.repeated:
            flags.DEFINE_multi_string(name, list(default), flag.help)
        elif flag.kind.many:
            flags.DEFINE_string(name, _listed(default), flag.help)
        else:
            flags.DEFINE(_Scalar(flag.kind), name, default, flag.help, serializer=flags.ArgumentSerializer())
        setattr(flags.FLAGS[name], "declared", flag)  # noqa: B010 (for the help)


def _listed(values: Any) -> str | None:
    if values is None:
        return None
    return ",".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def config(config_class: Any) -> Any:
    """The config that the flags make; a ValueError where one is given that it does not read."""
    found = config_class(
        **{
            flag.field: schema.read(flag.name, flag.kind, flags.FLAGS[flag.name].value)
            for flag in schema.flags(config_class)
        }
    )
    schema.refuse_unread(found, given(config_class))
    return found


def given(config_class: Any) -> frozenset[str]:
    """The fields that the command line sets."""
    return frozenset(
        flag.field for flag in schema.flags(config_class) if not flags.FLAGS[flag.name].using_default_value
    )


def run(main: Callable[[list[str]], None], doc: str | None) -> None:
    """Runs `main` on parsed flags."""

    def parsed(arguments: list[str]) -> list[str]:
        if {"--help", "-h", "-help", "--helpfull"} & set(arguments):
            print(_help(doc or ""))
            sys.exit(0)
        if "--version" in arguments:
            print(f"pohp_neurd {pohp_neurd.__version__}")
            sys.exit(0)
        return parse(arguments)

    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    warnings.showwarning = warned
    try:
        app.run(main, flags_parser=parsed)
    except BrokenPipeError:  # whoever read has enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + 13)


def warned(message: Warning | str, category: type[Warning], filename: str, *_: Any, **__: Any) -> None:
    """Says what this package warns of; what its libraries say to each other is no concern of its users."""
    package = pathlib.Path(__file__).parents[1]
    if any(pathlib.Path(filename).is_relative_to(room) for room in (package, package.parent / "run_scripts")):
        print(message, file=sys.stderr)


def parse(arguments: list[str]) -> list[str]:
    """What is left of `arguments` when the flags are read, which is the script's name."""
    try:
        rest = flags.FLAGS(arguments)
    except flags.Error as error:
        _end(str(error), 2)
    if len(rest) > 1:
        _end(f"{rest[1]!r} is no flag: flags are written --name=value.", 2)
    return rest


def opening(sentence: str) -> None:
    """Says what a command is about to do, before JAX is loaded; a refusal may still follow, on stderr."""
    print(f"{sentence} …", flush=True)


def closing(sentence: str) -> None:
    """Says where the files are and what to do with them: on stderr, as stdout ends with one line of JSON."""
    print(sentence, file=sys.stderr)


def told(main: Callable[[list[str]], None]) -> Callable[[list[str]], None]:
    """`main`, with one sentence on stderr and an exit code in place of what it raises."""

    @functools.wraps(main)
    def ended(arguments: list[str]) -> None:
        try:
            main(arguments)
        except Interrupted as stop:
            _end(str(stop), stop.exit_code)
        except KeyboardInterrupt:
            _end("Interrupted.", 130)
        except FloatingPointError as error:  # divergence, whoever tells of it
            _end(str(error), 1)
        except BrokenPipeError:
            raise
        except OSError as error:
            known = error.filename and error.strerror
            _end(f"{error.filename} cannot be used: {error.strerror}." if known else str(error), 2)
        except ValueError as error:
            _end(str(error), 2)
        except MemoryError:
            _end("There was not enough memory.", 2)

    return ended


def _end(sentence: str, code: int) -> None:
    with contextlib.suppress(OSError):  # the terminal may have been closed
        print(sentence, file=sys.stderr, flush=True)
    sys.exit(code)


def _help(doc: str) -> str:
    lines = [doc.strip()]
    topics: dict[str, list[schema.Flag]] = {}
    for name in flags.FLAGS:
        flag = getattr(flags.FLAGS[name], "declared", None)
        if flag is not None:
            topics.setdefault(flag.topic, []).append(flag)
    for topic, declared in topics.items():
        lines += ["", f"{topic}:"]
        for flag in declared:
            default = flag.shown or flags.FLAGS[flag.name].default_as_str or "none"
            text = f"{flag.help} Default: {default.strip(chr(39))}."
            indented = textwrap.wrap(text, 109, initial_indent=" " * 25, subsequent_indent=" " * 25)
            name = f"  --{flag.name}"
            fits = len(name) < 25
            lines += [name.ljust(25) + indented[0].strip() if fits else name, *indented[fits:]]
    return "\n".join(lines)
