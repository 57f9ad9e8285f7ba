"""From a frozen config to absl flags and back, with help by topic and one sentence for a bad flag."""

import dataclasses
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from absl import app, flags, logging

Topics = Mapping[str, Mapping[str, str]]
"""Topic -> flag -> what it means."""

RETRY_FAILED = "Run settings that failed before once more."

EXECUTOR = {
    "executor": "local (a worker process for each core) or ray.",
    "cores": "Worker processes of executor=local, or of a Ray cluster that is started here.",
    "address": "Of a Ray cluster that runs already, such as auto or 10.0.0.1:6379.",
}
"""The flags of all scripts that run sweeps: defined by `define_executor`, read by `executor`."""


def define(config_class: type, topics: Topics) -> None:
    """A flag for every name in `topics`, with the type and default that the config's field has."""
    kinds = {field.name: str(field.type) for field in dataclasses.fields(config_class)}
    for names in topics.values():
        for name, meaning in names.items():
            kind, default = kinds[name], getattr(config_class, name)
            if "tuple" in kind:
                flags.DEFINE_list(name, [str(value) for value in default], meaning)
            elif "bool" in kind:
                flags.DEFINE_bool(name, default, meaning)
            elif "float" in kind:
                flags.DEFINE_float(name, default, meaning)
            elif "int" in kind:
                flags.DEFINE_integer(name, default, meaning)
            else:
                flags.DEFINE_string(name, default, meaning)


def config(kind: type, topics: Topics) -> Any:
    """The config that the flags make."""
    chosen = {}
    for name in (name for names in topics.values() for name in names):
        flag = flags.FLAGS[name]
        value = flag.value
        if isinstance(flag.default, list):
            try:
                value = tuple(int(part) for part in value)
            except ValueError:
                raise ValueError(f"{name} must be whole numbers with commas, but is {value}.") from None
        chosen[name] = value
    return kind(**chosen)


def define_executor() -> None:
    """The flags in `EXECUTOR`."""
    flags.DEFINE_string("executor", "local", EXECUTOR["executor"])
    flags.DEFINE_integer("cores", None, EXECUTOR["cores"])
    flags.DEFINE_string("address", None, EXECUTOR["address"])


def executor() -> dict[str, Any]:
    """What the flags ask of `experiment.executor.build`, which plotting scripts need not load."""
    values = flags.FLAGS
    return {"name": values.executor, "cores": values.cores, "address": values.address}


def run(main: Callable[[list[str]], None], doc: str, topics: Topics, defaults: Mapping[str, str]) -> None:
    """Runs `main` on parsed flags; `defaults` explains flags whose default depends on others."""

    def parse(arguments: list[str]) -> list[str]:
        if {"--help", "-h", "-help", "--helpfull"} & set(arguments):
            print(_help(doc, topics, defaults))
            sys.exit(0)
        try:
            rest = flags.FLAGS(arguments)
        except flags.Error as error:
            _fail(str(error))
        if len(rest) > 1:
            _fail(f"{rest[1]!r} is no flag: flags are written --name=value.")
        return rest

    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    app.run(main, flags_parser=parse)


def refused(error: Exception) -> None:
    """One sentence for what was wrong with the input, and the exit code of a wrong command."""
    if isinstance(error, OSError) and error.filename:
        _fail(f"{error.filename} cannot be used: {error.strerror}.")
    _fail(str(error))


def _fail(sentence: str) -> None:
    print(sentence, file=sys.stderr)
    sys.exit(2)


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
