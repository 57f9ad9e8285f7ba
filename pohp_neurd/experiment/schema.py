"""Flags that are declared once, as fields of a frozen dataclass with their help.

From the declaration come the command line (`command_line`), config.json, the grammar of sweeps and the ids
of settings (`grid`). A list is written 128,128 or 128x128, and ix,cix or ix+cix: commas separate the
settings of a sweep, so that there the second spelling is needed. Nothing here loads JAX.
"""

import dataclasses
import functools
import hashlib
import json
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from pohp_neurd import checks

_ABSENT: Any = dataclasses.MISSING


class Kind(NamedTuple):
    """The type of a flag's value."""

    item: type
    many: bool
    """Whether it is a tuple of items."""
    optional: bool
    """Whether it may be None, which is written none."""
    text: str
    """As the class writes it."""


class Flag(NamedTuple):
    """A field of a config, as command lines and sweeps see it."""

    field: str
    kind: Kind
    default: Any
    help: str
    topic: str
    name: str
    """On the command line."""
    shown: str | None = None
    """What the help says of a default that depends on other flags."""
    choices: tuple[str, ...] | None = None
    at_least: int | None = None
    check: Callable[[str, Any], None] | None = None
    """(name, value) -> None; a ValueError where the value is wrong. Of a tuple, for each item."""
    only_for: Mapping[str, tuple[str, ...]] | None = None
    """The values of other fields without which this one is not read."""
    repeated: bool = False
    """Whether a list is given by repeating the flag."""
    swept: str = ""
    """The name in a sweep; empty where a setting has `fixed` instead."""
    fixed: Any = _ABSENT
    one: bool = False
    """Whether a setting of a sweep has one item of the tuple."""
    id_name: str = ""
    """The name in the id of a setting, where an older one must last."""
    id_default: Any = _ABSENT
    """The default when ids were first recorded, which they leave out; absent where it is still that."""


def field(
    default: Any,
    help: str,
    topic: str = "",
    *,
    only_for: Mapping[str, str | tuple[str, ...]] | None = None,
    **more: Any,
) -> Any:
    """A field of a config, declared as a flag.

    Args:
      default: its value where nothing is said.
      help: one sentence or two.
      topic: the heading under which the help lists it; by default that of the field before.
      only_for: other fields and the value, or values, that they must have for this one to be read.
      **more: what else `Flag` has: shown, choices, at_least, check, and so on.

    Returns:
      What stands behind the equals sign in the dataclass.
    """
    met = {key: (each,) if isinstance(each, str) else each for key, each in (only_for or {}).items()}
    return dataclasses.field(
        default=default, metadata={"help": help, "topic": topic, "only_for": met or None, **more}
    )


@functools.cache
def flags(config_class: Any) -> tuple[Flag, ...]:
    """All fields of a config that are declared as flags, in their order."""
    found: list[Flag] = []
    for each in dataclasses.fields(config_class):
        if "help" in each.metadata:
            own: Any = {"name": each.name, "swept": each.name, **each.metadata}
            flag = Flag(field=each.name, kind=_kind(each.type), default=each.default, **own)
            found.append(flag if flag.topic else flag._replace(topic=found[-1].topic))
    return tuple(found)


def _kind(annotation: Any) -> Kind:
    plain = isinstance(annotation, type) and not typing.get_args(annotation)
    text = annotation.__name__ if plain else str(annotation)
    options = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    (inner,) = (option for option in options if option is not type(None))
    many = typing.get_origin(inner) is tuple
    item = typing.get_args(inner)[0] if many else inner
    return Kind(item, many, type(None) in options, text)


def read(name: str, kind: Kind, value: Any) -> Any:
    """A value of that kind, from text or from JSON; a ValueError that names the flag where it is none."""
    if kind.optional and value in (None, "none"):
        return None
    if value is None:
        raise ValueError(f"{name} must have a value, but has none.")
    try:
        if not kind.many:
            return _item(kind.item, value)
        if isinstance(value, str):
            value = re.split("[,+]" if kind.item is str else "[,x]", value) if value else []
        return tuple(_item(kind.item, each.strip() if isinstance(each, str) else each) for each in value)
    except (ValueError, KeyError, TypeError):
        if kind.many:
            given = value if isinstance(value, str) else ",".join(map(str, value))
            raise ValueError(
                f"{name} must be {_WORDS[kind.item]} with commas between them, but is {given!r}."
            ) from None
        raise ValueError(f"{name} must be of the kind {kind.text}, but is {value!r}.") from None


def scalar(kind: Kind, value: Any) -> Any:
    """A value that is no list, from text; a ValueError that does not know whose it is."""
    return None if kind.optional and value in (None, "none") else _item(kind.item, value)


_WORDS = {int: "whole numbers", float: "numbers", str: "words"}


def _item(kind: type, value: Any) -> Any:
    if kind is bool:
        return {"true": True, "false": False}[str(value).lower()]
    if kind is float:
        return float(value) + 0.0  # there is one zero only
    if kind is int:
        return checks.whole(value)
    return str(value)


def text(value: Any) -> Any:
    """A value as a table shows it, and as `read` takes it within a sweep."""
    if not isinstance(value, tuple):
        return value
    return ("x" if all(isinstance(part, int) for part in value) else "+").join(map(str, value))


def check(config: Any) -> None:
    """Raises a ValueError for the first field of `config` whose value is not among those declared."""
    kind: Any = type(config)
    for flag in flags(kind):
        value = getattr(config, flag.field)
        for each in value if flag.kind.many and value is not None else (value,):
            check_value(flag, flag.name, each)


def check_value(flag: Flag, name: str, value: Any) -> None:
    """Raises a ValueError, which calls the flag `name`, unless it may have this value, or this item."""
    if value is None:
        return
    if flag.choices is not None:
        checks.one_of(name, value, flag.choices)
    if flag.at_least is not None:
        checks.at_least(name, value, flag.at_least)
    if flag.check is not None:
        flag.check(name, value)


def refuse_unread(config: Any, given: Collection[str]) -> None:
    """Raises a ValueError if one of the fields `given`, which somebody has set, is not read by this run."""
    kind: Any = type(config)
    for flag in flags(kind):
        if flag.field not in given or getattr(config, flag.field) is None:
            continue
        for key, wanted in (flag.only_for or {}).items():
            actual = getattr(config, key)
            if actual not in wanted:
                raise ValueError(
                    f"{flag.name} is for {key}={' or '.join(wanted)}: {actual} has none, so leave it out."
                )


def swept(config_class: Any, script: str, name: str) -> Flag:
    """The flag that a sweep calls `name`: as in the config, as on the command line, or as it once was."""
    known = [flag for flag in flags(config_class) if flag.swept]
    for flag in known:
        if name in (flag.swept, flag.id_name) or (name == flag.name and not flag.one):
            return flag
    names = ", ".join(sorted(flag.swept for flag in known))
    raise ValueError(f"{script} has no flag {name!r}: it has {names}.")


def swept_kind(flag: Flag) -> Kind:
    """What a setting of a sweep has of a flag: one item, where each is a setting of its own."""
    return Kind(flag.kind.item, False, False, flag.kind.item.__name__) if flag.one else flag.kind


def of_setting(config_class: Any, script: str, given: Mapping[str, Any]) -> tuple[Any, frozenset[str]]:
    """The config of a setting, whose flags are `given` with their values, and the fields that it sets."""
    chosen = {flag.field: flag.fixed for flag in flags(config_class) if not flag.swept}
    found = {name: swept(config_class, script, name) for name in given}
    for name, flag in found.items():
        if not flag.kind.many or flag.one:
            check_value(flag, name, given[name])
        chosen[flag.field] = (given[name],) if flag.one else given[name]
    config, fields = config_class(**chosen), frozenset(flag.field for flag in found.values())
    refuse_unread(config, fields)
    return config, fields


def identity(config_class: Any, script: str, given: Mapping[str, Any]) -> str:
    """The id of a setting: the same for the same script and flags, in whatever order they were given."""
    named = {swept(config_class, script, name).id_name or name: value for name, value in given.items()}
    for flag in flags(config_class):
        if flag.id_default is not _ABSENT and named.setdefault(flag.swept, flag.default) == flag.id_default:
            del named[flag.swept]
    content = json.dumps([script, dict(sorted(named.items()))])
    return hashlib.sha256(content.encode()).hexdigest()[:12]
