"""The training scripts as a sweep sees them: flags in, a folder and final figures out.

JAX is loaded to run a setting, not to check one.
"""

import dataclasses
import pathlib
import shutil
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pohp_neurd import checks
from pohp_neurd.experiment import (
    bandit_config,
    game_config,
    interruption,
    single_agent_config,
)


class Job(NamedTuple):
    """One training script."""

    kinds: Mapping[str, str]
    """The type of every flag, as its config class writes it."""
    config: Callable[[Mapping[str, Any]], Any]
    """From flags to a config; a ValueError, with one sentence, for what cannot be run."""
    run: Callable[[Any, pathlib.Path], Mapping[str, Any]]
    """Runs a config in a folder, or goes on with the part of it that the folder holds; the final figures."""


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
        if path.is_dir() and not (path / "config.json").is_file():
            shutil.rmtree(path)  # killed before it was a run
        job = JOBS[script]
        figures = _scalars(job.run(job.config(flags), path))
    except checks.Diverged as error:
        sentence = error.without_checkpoint
    except ValueError as error:
        sentence = str(error)
    except OSError as error:
        sentence = f"{error.strerror or error}: {error.filename or path}."
    except MemoryError:
        sentence = "There was not enough memory."
    except interruption.Interrupted:
        raise
    except Exception as error:
        sentence = f"{type(error).__name__}: {error} ({traceback.format_tb(error.__traceback__)[-1].strip()})"
    return Outcome(figures, sentence, round(time.perf_counter() - begun, 3))


def typed(script: str, name: str, value: Any) -> Any:
    """The value of a flag, from text or JSON, as the script's config wants it."""
    kinds = JOBS[script].kinds
    if name not in kinds:
        raise ValueError(f"{script} has no flag {name!r}: it has {', '.join(sorted(kinds))}.")
    kind = kinds[name]
    if "None" in kind and value in (None, "none"):
        return None
    if value is None:
        raise ValueError(f"{name} must have a value, but has none.")
    try:
        if "tuple" in kind:
            numbers = "int" in kind
            parts = value.split(_separator(numbers)) if isinstance(value, str) else value
            return tuple(map(checks.whole if numbers else str, parts))
        if "bool" in kind:
            return {"true": True, "false": False}[str(value).lower()]
        if "float" in kind:
            return float(value) + 0.0  # there is one zero only
        if "int" in kind:
            return checks.whole(value)
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{name} must be of the kind {kind}, but is {value!r}.") from None
    return str(value)


def refuse_ignored(flags: Mapping[str, Any]) -> None:
    """Raises where one of `flags`, which are those that somebody has given, would be ignored."""
    learner = flags.get("learner")
    for name in ("exploration", "exploration_decay"):
        if flags.get(name) is not None and learner in ("spg", "neurd"):
            raise ValueError(f"{name} is for learner=neurd_cix: {learner} has none, so leave it out.")


def text(value: Any) -> Any:
    """A flag's value as a table shows it, and as `typed` reads it: lists are written 64x64 and ix+cix."""
    if not isinstance(value, tuple):
        return value
    return _separator(all(isinstance(part, int) for part in value)).join(map(str, value))


def _separator(numbers: bool) -> str:
    return "x" if numbers else "+"


def _kinds(config_class: Any) -> dict[str, str]:
    return {
        field.name: field.type.__name__ if isinstance(field.type, type) else str(field.type)
        for field in dataclasses.fields(config_class)
    }


def _scalars(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that fit in a table and come out the same every time: not the seconds, not paths."""
    found: dict[str, Any] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            found |= {f"{name}_{inner}": each for inner, each in _scalars(value).items()}
        elif value is None or (isinstance(value, int | float) and name != "seconds"):
            found[name] = value
    return found


def _is_begun(path: pathlib.Path) -> bool:
    return (path / "config.json").is_file()


def _game_config(flags: Mapping[str, Any]) -> game_config.Config:
    config = game_config.Config(**flags)
    from pohp_neurd import openspiel

    openspiel.load_game(config.game)
    return config


def _run_game(config: game_config.Config, path: pathlib.Path) -> Mapping[str, Any]:
    from pohp_neurd.experiment import game_run

    return game_run.run(config, path, resume=_is_begun(path))


_PLURAL = {"exploration": "explorations", "learning_rate": "learning_rates"}


def _single_agent_config(flags: Mapping[str, Any]) -> single_agent_config.Config:
    """One seed, learning rate and exploration to a setting, so that settings can be laid over many cores."""
    checks.seed("seed", flags.get("seed", 0))
    chosen = {name: value for name, value in flags.items() if name not in (*_PLURAL, "seed")}
    for name, plural in _PLURAL.items():
        if name in flags:
            chosen[plural] = (flags[name],)
    return single_agent_config.Config(**chosen, first_seed=flags.get("seed", 0), seeds=1)


def _run_single_agent(config: single_agent_config.Config, path: pathlib.Path) -> Mapping[str, Any]:
    from pohp_neurd.experiment import single_agent

    figures = single_agent.run(config, path, resume=_is_begun(path))
    (setting,) = figures["settings"]
    return {
        "steps": figures["steps"],
        "total_reward": setting["total_reward_mean"],
        "losses_per_step_at_end": setting["losses_per_step_at_end"][0],
    }


def _run_bandit(config: bandit_config.Config, path: pathlib.Path) -> Mapping[str, Any]:
    from pohp_neurd.experiment import bandit

    rows = bandit.run(config, path, overwrite=_is_begun(path))
    return bandit.final_figures(config, rows)


_SINGLE_AGENT = {
    name: kind
    for name, kind in _kinds(single_agent_config.Config).items()
    if name not in (*_PLURAL.values(), "seeds", "first_seed")
} | {"exploration": "float", "learning_rate": "float", "seed": "int"}

JOBS: Mapping[str, Job] = {
    "train_game": Job(_kinds(game_config.Config), _game_config, _run_game),
    "train_single_agent": Job(_SINGLE_AGENT, _single_agent_config, _run_single_agent),
    "bandit": Job(_kinds(bandit_config.Config), lambda flags: bandit_config.Config(**flags), _run_bandit),
}
