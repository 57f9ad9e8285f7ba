"""From a frozen config to absl flags and back, with help by topic and one sentence for whatever goes wrong.

Nothing here, and nothing that a script imports before its `main`, loads JAX: that takes seconds, and a wrong
flag is told of before.
"""

import contextlib
import dataclasses
import functools
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from absl import app, flags, logging

from pohp_neurd import checks
from pohp_neurd.experiment import interruption, jobs

Topics = Mapping[str, Mapping[str, str]]
"""Topic -> flag -> what it means."""

OVERWRITE = {
    "output_dir": "The folder of the run.",
    "overwrite": "Throw away the run that is in --output_dir.",
}
RESUME = {**OVERWRITE, "resume": "Go on with the run in --output_dir from its newest checkpoint."}
"""The flags of scripts that leave a run: defined by `define_run`, read by `folder`."""

RETRY_FAILED = "Run settings that failed before once more."

CORES = "Cores to use; by default all. No figure depends on it."

EXECUTOR = {
    "executor": "local (a worker process for each core) or ray.",
    "cores": "Worker processes of executor=local, or of a Ray cluster that is started here.",
    "address": "Of a Ray cluster that runs already, such as auto or 10.0.0.1:6379.",
}
"""The flags of all scripts that run sweeps: defined by `define_executor`, read by `executor`."""


class _Whole(flags.ArgumentParser):  # type: ignore[type-arg]
    """Whole numbers, also as 2e7."""

    syntactic_help = "a whole number"

    def parse(self, argument: Any) -> int:
        return checks.whole(argument)

    def flag_type(self) -> str:
        return "int"


def define_whole(name: str, default: int | None, meaning: str) -> None:
    """A flag that holds a whole number."""
    flags.DEFINE(_Whole(), name, default, meaning, serializer=flags.ArgumentSerializer())


def define(config_class: type, topics: Topics, renamed: Mapping[str, str] | None = None) -> None:
    """A flag for every name in `topics`, with the type and default that the config's field has.

    `renamed` has the fields of flags that are called otherwise.
    """
    kinds = {field.name: str(field.type) for field in dataclasses.fields(config_class)}
    for names in topics.values():
        for name, meaning in names.items():
            field = (renamed or {}).get(name, name)
            kind, default = kinds[field], getattr(config_class, field)
            if "tuple" in kind:
                texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in default]
                flags.DEFINE_list(name, texts, meaning)
            elif "bool" in kind:
                flags.DEFINE_bool(name, default, meaning)
            elif "float" in kind:
                flags.DEFINE_float(name, default, meaning)
            elif "int" in kind:
                define_whole(name, default, meaning)
            else:
                flags.DEFINE_string(name, default, meaning)


def config(kind: type, topics: Topics, renamed: Mapping[str, str] | None = None) -> Any:
    """The config that the flags make."""
    kinds = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    known = [name for names in topics.values() for name in names]
    given = {name: flags.FLAGS[name].value for name in known if not flags.FLAGS[name].using_default_value}
    jobs.refuse_ignored({"learner": getattr(flags.FLAGS, "learner", None), **given})
    chosen = {}
    for name in known:
        field, value = (renamed or {}).get(name, name), flags.FLAGS[name].value
        chosen[field] = _tuple(name, kinds[field], value) if "tuple" in kinds[field] else value
    return kind(**chosen)


def _tuple(name: str, kind: str, texts: list[str]) -> tuple[Any, ...]:
    words, read = {"int": ("whole numbers", checks.whole), "float": ("numbers", float)}.get(
        next((each for each in ("int", "float") if each in kind), ""), ("words", str)
    )
    try:
        return tuple(read(text) for text in texts)
    except ValueError:
        given = ",".join(map(str, texts))
        raise ValueError(f"{name} must be {words} with commas between them, but is {given!r}.") from None


def define_run(default: str, names: Mapping[str, str]) -> None:
    """The flags in `names`, which is OVERWRITE or RESUME; the folder is `default`."""
    flags.DEFINE_string("output_dir", default, names["output_dir"])
    for name in names:
        if name != "output_dir":
            flags.DEFINE_bool(name, False, names[name])


def define_executor() -> None:
    """The flags in `EXECUTOR`."""
    flags.DEFINE_string("executor", "local", EXECUTOR["executor"])
    define_whole("cores", None, EXECUTOR["cores"])
    flags.DEFINE_string("address", None, EXECUTOR["address"])


def executor() -> dict[str, Any]:
    """What the flags ask of `experiment.executor.build`, which plotting scripts need not load."""
    values = flags.FLAGS
    return {"name": values.executor, "cores": values.cores, "address": values.address}


def run(main: Callable[[list[str]], None], doc: str, topics: Topics, defaults: Mapping[str, str]) -> None:
    """Runs `main` on parsed flags; `defaults` explains flags whose default depends on others."""

    def parsed(arguments: list[str]) -> list[str]:
        if {"--help", "-h", "-help", "--helpfull"} & set(arguments):
            print(_help(doc, topics, defaults))
            sys.exit(0)
        return parse(arguments)

    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    app.run(main, flags_parser=parsed)


def parse(arguments: list[str]) -> list[str]:
    """What is left of `arguments` when the flags are read, which is the script's name."""
    try:
        rest = flags.FLAGS(arguments)
    except flags.Error as error:
        _end(str(error), 2)
    if len(rest) > 1:
        _end(f"{rest[1]!r} is no flag: flags are written --name=value.", 2)
    return rest


def told(main: Callable[[list[str]], None]) -> Callable[[list[str]], None]:
    """`main`, with one sentence on stderr and an exit code in place of what it raises."""

    @functools.wraps(main)
    def ended(arguments: list[str]) -> None:
        try:
            main(arguments)
        except interruption.Interrupted as stop:
            _end(str(stop), stop.exit_code)
        except KeyboardInterrupt:
            _end("Interrupted.", 130)
        except FloatingPointError as error:  # divergence, whoever tells of it
            _end(str(error), 1)
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


def _help(doc: str, topics: Topics, defaults: Mapping[str, str]) -> str:
    lines = [doc.strip()]
    for topic, names in topics.items():
        lines += ["", f"{topic}:"]
        for name, meaning in names.items():
            default = defaults.get(name) or flags.FLAGS[name].default_as_str or "none"
            text = f"{meaning} Default: {default.strip(chr(39))}."
            wrapped = textwrap.wrap(text, 84)
            lines.append(f"  --{name:<20} {wrapped[0]}")
            lines += [" " * 25 + line for line in wrapped[1:]]
    return "\n".join(lines)
