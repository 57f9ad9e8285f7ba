"""Figures from CSV files alone: what run_scripts/plot.py is asked for, read, narrowed and drawn."""

import dataclasses
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from pohp_neurd import checks
from pohp_neurd.experiment.schema import field
from pohp_neurd.results import table

_DRAWN, _HOW, _MUST = "What is drawn", "How", "none, it must be given"
BANDS = ("interquartile", "bootstrap")
KINDS = ("sensitivity", "learning_rates", "learning_curves", "nash_conv")

_SERIES = {
    "sensitivity": ("learner",),
    "learning_rates": ("learner",),
    "learning_curves": ("learner", "learning_rate", "exploration"),
    "nash_conv": ("exploration",),
}

FIGURES = frozenset(
    [
        *("updates", "episodes", "steps", "seconds", "reward", "total_reward", "entropy", "critic_error"),
        *("nash_conv", "nash_conv_average", "return_against_uniform", "mean_return", "half_width"),
        *("mean_weight", "max_weight", "capped", "advantage_scale"),
    ]
)
"""Columns of metrics.csv that are no settings."""


@dataclasses.dataclass(frozen=True)
class Config:
    """A figure that is asked for. Wrong values raise a ValueError here, before anything is read."""

    kind: str = field("", f"One of {', '.join(KINDS)}.", _DRAWN, shown=_MUST)
    inputs: tuple[str, ...] = field(
        (),
        "A results.csv, curves.csv or metrics.csv; NAME=FILE gives it a name in the legend, "
        "FILE@column=value,column=value takes some of its rows. Repeat it for several.",
        _DRAWN,
        name="input",
        repeated=True,
        shown=_MUST,
    )
    where: tuple[str, ...] = field(
        (),
        "A condition column=value that all rows must meet. Repeat it for several.",
        _DRAWN,
        repeated=True,
        shown="none",
    )
    reference: str | None = field(
        None,
        "Of sensitivity: conditions column=value, with commas, of the runs that are drawn as a dashed mean "
        "and a range instead of dots.",
        _DRAWN,
    )
    value: str = field("total_reward", "Of sensitivity and learning_rates: the column that is drawn.", _DRAWN)
    series: tuple[str, ...] | None = field(
        None,
        "Columns, with commas, whose values make a line each.",
        _HOW,
        shown="the names of inputs, or what differs of learner, learning_rate and exploration",
    )
    panels: tuple[str, ...] = field(
        (), "Of sensitivity and learning_rates: columns whose values make a panel each.", _HOW, shown="none"
    )
    band: str = field(
        "interquartile",
        "Of nash_conv: interquartile (median and middle half of the runs) or bootstrap (mean and its 95% "
        "interval).",
        _HOW,
    )
    title: str = field("", "Above the picture.", _HOW, shown="none")
    output: str = field(
        "", "The picture; its suffix says the format, as .png, .pdf or .svg.", _HOW, shown=_MUST
    )

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        checks.one_of("band", self.band, BANDS)
        if not self.inputs:
            raise ValueError("there is nothing to draw: give at least one input.")
        if not pathlib.Path(self.output).name:
            raise ValueError(f"output must name the picture, but is {self.output or 'empty'}.")
        if self.panels and self.kind not in ("sensitivity", "learning_rates"):
            raise ValueError(f"panels are for sensitivity and learning_rates, but kind is {self.kind}.")
        if self.reference and self.kind != "sensitivity":
            raise ValueError(f"a reference is for sensitivity, but kind is {self.kind}.")


def draw(config: Config) -> None:
    """Draws what `config` asks for."""
    from pohp_neurd.results import figures  # matplotlib takes a second

    rows: list[table.Row] = [row for text in config.inputs for row in read(text)]
    for text in config.where:
        rows = table.select(rows, table.conditions(text))
    reference: list[table.Row] = []
    if config.reference:
        wanted = table.conditions(config.reference)
        reference = table.select(rows, wanted)
        rows = [row for row in rows if not all(row[name] == wanted[name] for name in wanted)]
        if not rows:
            raise ValueError(f"all rows have {config.reference}: nothing is left to compare with them.")
    series = _series(config, rows)
    if config.kind == "nash_conv":
        band = figures.BANDS[config.band]
        figures.compare_nash_conv(config.output, rows, series=series, band=band, title=config.title)
    elif config.kind == "learning_curves":
        figures.compare_rewards(config.output, rows, series=series, title=config.title)
    else:
        figures.sensitivity(
            config.output,
            last(rows),
            x="exploration" if config.kind == "sensitivity" else "learning_rate",
            reference=last(reference),
            value=config.value,
            series=series,
            panels=config.panels,
            title=config.title,
        )


def read(text: str) -> list[dict[str, Any]]:
    """The rows of [NAME=]FILE[@column=value,...], with NAME in the column `input`."""
    narrowed = re.fullmatch(r"(.*)@(\w+=.*)", text)
    source, wanted = narrowed.groups() if narrowed else (text, "")
    name, path = "", source
    # Files may have a = in their names as well: what exists decides.
    for place in (match.start() for match in re.finditer("=", source)):
        if not pathlib.Path(path).exists():
            name, path = source[:place], source[place + 1 :]
    rows = table.select(table.read(path), table.conditions(wanted) if wanted else {})
    return [{**row, "input": name} if name else dict(row) for row in rows]


def last(rows: Sequence[table.Row]) -> list[table.Row]:
    """The last row of each run, where `rows` are whole learning curves; rows of final figures as they are."""
    runs: dict[tuple[Any, ...], list[table.Row]] = {}
    for row in rows:
        # What is no figure says which run it is. An unknown figure keeps rows apart: they are then refused.
        run = tuple((name, content) for name, content in row.items() if name not in FIGURES)
        runs.setdefault(run, []).append(row)
    return [_last(run) for run in runs.values()]


def _last(run: Sequence[table.Row]) -> table.Row:
    if len(run) == 1:
        return run[0]
    # Expected updates take no steps; final figures have nothing that a second row could be told by.
    times = [name for name in ("steps", "updates") if all(name in row for row in run)]
    settings = [name for name in run[0] if name not in FIGURES]
    table.check_numbers(run, times, [*settings, *times])
    table.check_distinct(run, [*settings, *times])
    return max(run, key=lambda row: [row[name] for name in times])


def _series(config: Config, rows: Sequence[table.Row]) -> tuple[str, ...]:
    if config.series is not None:
        table.require(rows, config.series)
        return config.series
    named = ["input" in row for row in rows]
    if all(named):
        return ("input",)
    if any(named):
        raise ValueError("either all inputs must have names or none, but some have.")
    known = tuple(name for name in _SERIES[config.kind] if all(name in row for row in rows))
    # A legend need not say what is the same for all.
    return tuple(name for name in known if len({row[name] for row in rows}) > 1) or known[:1]
