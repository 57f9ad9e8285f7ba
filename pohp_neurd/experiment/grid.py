"""Grids of settings: every value of each flag with every value of the others, each with an id that lasts."""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pohp_neurd import checks
from pohp_neurd.experiment import jobs, records, table


class Setting(NamedTuple):
    """One run of a training script."""

    script: str
    flags: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The same for the same script and flags, in whatever order and spelling they were given."""
        content = json.dumps([self.script, dict(sorted(self.flags.items()))])
        return hashlib.sha256(content.encode()).hexdigest()[:12]


class Grid(NamedTuple):
    """The values of each flag, as text or as JSON has them."""

    script: str
    values: Mapping[str, Sequence[Any]]


def parse(script: str, texts: Sequence[str]) -> Grid:
    """A grid from texts such as `exploration=0,0.1,1` and `seed=0:20`, the numbers from 0 to 19."""
    values: dict[str, list[str]] = {}
    for text in texts:
        name, found, listed = text.partition("=")
        if not (name and found and listed):
            raise ValueError(f"a sweep is written name=value,value,..., but one is {text!r}.")
        if name in values:
            raise ValueError(f"{name} is swept twice: give all its values at once.")
        values[name] = _listed(listed)
    return Grid(script, values)


def _listed(text: str) -> list[str]:
    span = re.fullmatch(r"(\d+):(\d+)", text)
    if span is None:
        return table.items(text)
    numbers = range(int(span[1]), int(span[2]))
    _check_size(len(numbers[: _MOST + 1]))
    return [str(number) for number in numbers]


_MOST = 1_000_000


def _check_size(settings: int) -> None:
    if settings > _MOST:
        raise ValueError(f"a sweep must have at most {_MOST:,} settings, but this one has more.")


def read(path: records.Path) -> list[Grid]:
    """Grids from a JSON file: {"script": name, "sweep": {flag: [values]}}, or a list of such.

    Instead of a list there may be one value, or a text as `parse` takes it, such as "0:20".
    """
    try:
        content = records.read_json(path)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}.") from None
    found = []
    for part in content if isinstance(content, list) else [content]:
        if not isinstance(part, dict) or set(part) != {"script", "sweep"}:
            raise ValueError(f'{path} must hold {{"script": ..., "sweep": ...}}, or a list of such.')
        if not isinstance(part["sweep"], dict):
            raise ValueError(f"sweep in {path} must hold the values of each flag, but is {part['sweep']!r}.")
        found.append(Grid(part["script"], {name: _values(value) for name, value in part["sweep"].items()}))
    return found


def _values(value: Any) -> list[Any]:
    if isinstance(value, str):
        return _listed(value)
    return value if isinstance(value, list) else [value]


def settings(grids: Sequence[Grid]) -> list[Setting]:
    """All settings of `grids`, checked one by one; the last flag's values change fastest."""
    found: dict[str, Setting] = {}
    for grid in grids:
        checks.one_of("script", grid.script, tuple(jobs.JOBS))
        if not grid.values:
            raise ValueError("there is nothing to sweep: name at least one flag with its values.")
        for name, values in grid.values.items():
            if not values:
                raise ValueError(f"{name} must have at least one value, but has none.")
        _check_size(math.prod(map(len, grid.values.values())))
        typed = [[jobs.typed(grid.script, name, v) for v in values] for name, values in grid.values.items()]
        for combination in itertools.product(*typed):
            setting = Setting(grid.script, dict(zip(grid.values, combination, strict=True)))
            jobs.refuse_ignored(setting.flags)
            jobs.JOBS[grid.script].config(setting.flags)
            found[setting.id] = setting
    if not found:
        raise ValueError("there is nothing to sweep: the file has no grids.")
    if len({setting.script for setting in found.values()}) > 1:
        raise ValueError("the grids of one sweep must be of one script.")
    return list(found.values())
