"""What a sweep runs: settings of one training script, from grids of flags, each with an id that lasts.

Every value of each flag goes with every value of the others. JAX is loaded to run a setting.
"""

import itertools
import math
import pathlib
import re
import shutil
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pohp_neurd import checks
from pohp_neurd.experiment import configs, game_config, schema
from pohp_neurd.experiment import run as run_loop
from pohp_neurd.results import records, table


class Job(NamedTuple):
    """One training script."""

    config: Any
    """The class of its configs: its fields are the flags that can be swept."""
    run: Callable[[Any, pathlib.Path, bool, Collection[str]], Mapping[str, Any]]
    """(config, folder, whether to resume there, the fields that were given) -> the final figures."""
    check: Callable[[Any], None] = lambda config: None
    """What there is to check of a config without running it."""


def _check_game(config: game_config.Config) -> None:
    from pohp_neurd import openspiel

    openspiel.load_game(config.game)


def _run_game(config: Any, path: pathlib.Path, resume: bool, given: Collection[str]) -> Mapping[str, Any]:
    from pohp_neurd.experiment import game

    return game.run(config, path, resume=resume, given=given)


def _run_single_agent(config: Any, path: pathlib.Path, resume: bool, _: Any) -> Mapping[str, Any]:
    from pohp_neurd.experiment import single_agent

    figures = single_agent.run(config, path, resume=resume)
    (setting,) = figures["settings"]
    return {
        "steps": figures["steps"],
        "total_reward": setting["total_reward_mean"],
        "losses_per_step_at_end": setting["losses_per_step_at_end"][0],
    }


def _run_bandit(config: Any, path: pathlib.Path, resume: bool, _: Any) -> Mapping[str, Any]:
    from pohp_neurd.experiment import bandit

    return bandit.run(config, path, resume=resume)


JOBS: Mapping[str, Job] = {
    "train_game": Job(game_config.Config, _run_game, _check_game),
    "train_single_agent": Job(configs.SingleAgent, _run_single_agent),
    "bandit": Job(configs.Bandit, _run_bandit),
}


class Setting(NamedTuple):
    """One run of a training script."""

    script: str
    flags: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The same for the same script and flags, in whatever order and spelling they were given."""
        return schema.identity(JOBS[self.script].config, self.script, self.flags)


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
        values = {n: _listed(v) if isinstance(v, str) else v for n, v in part["sweep"].items()}
        listed = {name: value if isinstance(value, list) else [value] for name, value in values.items()}
        found.append(Grid(part["script"], listed))
    return found


def settings(grids: Sequence[Grid]) -> list[Setting]:
    """All settings of `grids`, checked one by one; the last flag's values change fastest."""
    found: dict[str, Setting] = {}
    for grid in grids:
        checks.one_of("script", grid.script, tuple(JOBS))
        if not grid.values:
            raise ValueError("there is nothing to sweep: name at least one flag with its values.")
        for name, values in grid.values.items():
            if not values:
                raise ValueError(f"{name} must have at least one value, but has none.")
        _check_size(math.prod(map(len, grid.values.values())))
        job = JOBS[grid.script]
        typed: dict[str, list[Any]] = {}  # under the names that flags have in sweeps
        for name, values in grid.values.items():
            flag = schema.swept(job.config, grid.script, name)
            if flag.swept in typed:
                raise ValueError(f"{flag.swept} is swept twice: give all its values at once.")
            typed[flag.swept] = [schema.read(name, schema.swept_kind(flag), value) for value in values]
        for combination in itertools.product(*typed.values()):
            setting = Setting(grid.script, dict(zip(typed, combination, strict=True)))
            job.check(schema.of_setting(job.config, grid.script, setting.flags)[0])
            found[setting.id] = setting
    if not found:
        raise ValueError("there is nothing to sweep: the file has no grids.")
    if len({setting.script for setting in found.values()}) > 1:
        raise ValueError("the grids of one sweep must be of one script.")
    return list(found.values())


class Outcome(NamedTuple):
    """What became of one setting."""

    figures: Mapping[str, Any] | None
    """None if it failed."""
    sentence: str
    """Why it failed; empty if it did not."""
    seconds: float


def attempt(script: str, flags: Mapping[str, Any], path: pathlib.Path) -> Outcome:
    """Runs a setting in the folder `path`. What goes wrong is told in the outcome, not raised."""
    begun = time.perf_counter()
    figures, sentence = None, ""
    try:
        begun_before = (path / "config.json").is_file()
        if path.is_dir() and not begun_before:
            shutil.rmtree(path)  # killed before it was a run
        job = JOBS[script]
        config, given = schema.of_setting(job.config, script, flags)
        figures = _scalars(job.run(config, path, begun_before, given))
    except checks.Diverged as error:
        sentence = error.without_checkpoint
    except ValueError as error:
        sentence = str(error)
    except OSError as error:
        sentence = f"{error.strerror or error}: {error.filename or path}."
    except MemoryError:
        sentence = "There was not enough memory."
    except run_loop.Interrupted:
        raise
    except Exception as error:
        sentence = f"{type(error).__name__}: {error} ({traceback.format_tb(error.__traceback__)[-1].strip()})"
    return Outcome(figures, sentence, round(time.perf_counter() - begun, 3))


def _scalars(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that fit in a table and come out the same every time: not the seconds, not paths."""
    found: dict[str, Any] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            found |= {f"{name}_{inner}": each for inner, each in _scalars(value).items()}
        elif value is None or (isinstance(value, int | float) and name != "seconds"):
            found[name] = value
    return found
