"""Rows of CSV files, as numbers and text: read, narrowed, grouped, and what the seeds of a setting come to.

A condition is a column and the value that it must have, written `exploration=0.1`.

Intervals are stratified percentile bootstraps (Agarwal et al. 2021, "Deep reinforcement learning at the edge
of the statistical precipice"): runs are drawn with replacement within each stratum, such as an environment,
and the statistic is of all that were drawn. With few runs they are too short: of n normal values, an
interval of 95% for the mean holds the truth in 84% of the cases at n = 5, and in 93% at n = 20.
"""

import math
import numbers
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pohp_neurd.results import records

Row = Mapping[str, Any]


def read(path: records.Path) -> list[dict[str, Any]]:
    """The rows of a CSV file, numbers where a cell is one; a ValueError that names a file without any."""
    try:
        rows = records.read_csv(path)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}.") from None
    if not rows:
        raise ValueError(f"{path} has no rows.")
    for number, row in enumerate(rows, start=2):
        _check_cells(path, number, row)
    # The id of a setting is text, even one such as 12e345678901.
    return [{name: text if name == "id" else value(text) for name, text in row.items()} for row in rows]


def _check_cells(path: records.Path, number: int, row: Row) -> None:
    if None in row or None in row.values():  # how csv says that a line is too long or too short
        raise ValueError(f"line {number} of {path} has not as many cells as its header.")


def value(text: str) -> Any:
    """What a cell says: a whole number, a number, or its text."""
    for kind in (int, float):
        try:
            number = kind(text)
            float(number)  # a whole number that is too large for one is infinite, as 1e400 is
            return number
        except (ValueError, OverflowError):
            pass
    return text


def figures(
    path: records.Path, columns: Sequence[str], *, empty: Iterable[str] = (), text: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """The rows that a run has written: exactly `columns`, and a number in every cell.

    But a cell of the columns `empty` may be empty, and those of `text` are left as they are.
    """
    found = []
    rows = records.read_csv(path)
    if not pathlib.Path(path).read_bytes().endswith(b"\n"):
        raise ValueError(f"{path} ends in the middle of a line.")
    for number, row in enumerate(rows, start=2):
        _check_cells(path, number, row)
        if list(row) != list(columns):
            raise ValueError(f"{path} must have the columns {', '.join(columns)}, but has {', '.join(row)}.")
        read = {name: cell if name in text else value(cell) for name, cell in row.items()}
        for name, content in read.items():
            if isinstance(content, str) and name not in text and (content or name not in empty):
                raise ValueError(f"{name} must be a number in line {number} of {path}, but is {content!r}.")
        found.append(read)
    return found


def require(rows: Sequence[Row], columns: Iterable[str]) -> None:
    """Raises unless every row has all of `columns`."""
    for name in columns:
        for row in rows:
            if name not in row:
                raise ValueError(f"there is no column {name!r}; the columns are {', '.join(row)}.")


def items(text: str) -> list[str]:
    """What stands between the commas of `text`; one in brackets belongs to an OpenSpiel game's parameters.

    From a bracket on that has no partner, all is one item.

    >>> items("goofspiel(num_cards=3,players=2), kuhn_poker")
    ['goofspiel(num_cards=3,players=2)', 'kuhn_poker']
    """
    found, begin, depth = [], 0, 0
    for place, sign in enumerate(text):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            found.append(text[begin:place])
            begin = place + 1
    return [item.strip() for item in (*found, text[begin:])]


def conditions(text: str) -> dict[str, Any]:
    """The conditions in `text`, which has commas between them.

    >>> conditions("environment=catch,exploration=0.1")
    {'environment': 'catch', 'exploration': 0.1}
    """
    found = {}
    for part in items(text):
        name, sign, wanted = (word.strip() for word in part.partition("="))
        if not (name and sign):
            raise ValueError(f"a condition is written column=value, but one is {part!r}.")
        if name in found:
            raise ValueError(f"a row has one {name}, but the conditions ask for two: {text}.")
        found[name] = value(wanted)
    return found


def select(rows: Sequence[Row], wanted: Mapping[str, Any]) -> list[Row]:
    """The rows that meet all conditions; a ValueError that says what there is instead if none does."""
    for name, content in wanted.items():
        require(rows, [name])
        known = list(dict.fromkeys(row[name] for row in rows))
        rows = [row for row in rows if row[name] == content]
        if not rows:
            there = ", ".join(map(str, known[:12]))
            raise ValueError(f"no row has {name}={content}; there {name} is one of: {there}.")
    return list(rows)


def groups(rows: Sequence[Row], by: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by their values in the columns `by`.

    A column that holds numbers only is in their order, another one in that of first appearance.
    """
    require(rows, by)
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in by), []).append(row)
    places = []
    for column in range(len(by)):
        there = list(dict.fromkeys(setting[column] for setting in found))
        if all(isinstance(content, numbers.Real) for content in there):
            there.sort()
        places.append({content: place for place, content in enumerate(there)})
    order = sorted(found, key=lambda setting: [places[i][content] for i, content in enumerate(setting)])
    return {setting: found[setting] for setting in order}


def is_finite(content: Any) -> bool:
    """Whether a cell holds a finite number."""
    return isinstance(content, numbers.Real) and math.isfinite(content)


def check_numbers(rows: Sequence[Row], columns: Iterable[str], by: Sequence[str]) -> None:
    """Raises unless every cell of `columns` is a finite number; `by` are columns that say in which row."""
    for name in columns:
        require(rows, [name])
        for row in rows:
            content = row[name]
            if not is_finite(content):
                known = [other for other in by if other in row and other != name]
                where = f"the row with {describe(known, [row[other] for other in known])}" if known else "one"
                raise ValueError(
                    f"{name} must be a finite number in every row, but is {content!r} in {where}."
                )


def check_distinct(rows: Sequence[Row], by: Sequence[str], *, need: str = "one is needed") -> None:
    """Raises where two rows agree on all of `by`: then they are of settings that must not be mixed."""
    for setting, same in groups(rows, by).items():
        if len(same) > 1:
            first, second = same[:2]
            names = [name for name in first if name not in by and first[name] != second.get(name)]
            where = f" with {describe(by, setting)}" if by else ""
            raise ValueError(
                f"there are {len(same)} rows{where}, but {need}: choose among "
                f"the settings by conditions; these rows differ in {', '.join(names) or 'nothing'}."
            )


def check_runs(rows: Sequence[Row], by: Sequence[str], at: Sequence[str] = ()) -> None:
    """Raises unless rows that agree on `by` are runs of one setting, which their seeds tell apart.

    A run has one row at each value of `at`, such as a time. Without seeds there can be one run only: others
    might be of another setting.
    """
    for here in groups(rows, by).values():
        seeded = all("seed" in row for row in here)
        need = "one is needed" if seeded else "one is needed, for no column 'seed' tells runs apart"
        run = list(dict.fromkeys([*by, "seed"] if seeded else by))
        check_distinct(here, [*run, *at], need=need)
        if at and all("id" in row for row in here):
            # Rows of two settings need not meet at any time.
            one_each = {tuple(row[name] for name in (*run, "id")): row for row in here}
            check_distinct(list(one_each.values()), run, need="they must be of one setting")


def describe(by: Sequence[str], setting: Sequence[Any]) -> str:
    """A setting in words, as `learner=spg, exploration=0.1`."""
    return ", ".join(f"{name}={content}" for name, content in zip(by, setting, strict=True)) or "all rows"


_CONFIDENCE = 0.95


def smaller_is_better(column: str) -> bool:
    """Whether the best value of a column is the smallest; of all others it is the largest."""
    words = ("nash_conv", "misses", "losses", "regret", "violations", "critic_error", "seconds")
    return any(word in column for word in words)


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """The mean of the middle half along the last axis: a quarter, rounded down, is left out at each end."""
    cut = values.shape[-1] // 4
    middle = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut]
    return np.asarray(middle.mean(axis=-1))


_STATISTICS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda values: values.mean(axis=-1),
    "median": lambda values: np.median(values, axis=-1),
    "iqm": interquartile_mean,
}

FIGURES = (
    "runs",
    "worst",
    "best",
    *(f"{name}{end}" for name in _STATISTICS for end in ("", "_low", "_high")),
)
"""The columns that `summarise` adds to those it groups by."""

COLUMNS = {
    "runs": "{runs}",
    "mean": "{mean}",
    "95% interval": "{mean_low} to {mean_high}",
    "interquartile mean": "{iqm}",
    "median": "{median}",
    "worst to best": "{worst} to {best}",
}
"""What of it is shown to people, as `markdown` takes it."""

DIFFERENCES = ("difference", "difference_low", "difference_high")
"""The columns that it adds where settings are held against others: see `difference`."""


def summarise(
    rows: Sequence[Row],
    *,
    by: Sequence[str],
    value: str,
    against: Sequence[Row] | None = None,
    stratum: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """A row for each setting, that is each combination of the columns `by`: FIGURES of the column `value`.

    If there are rows `against` which settings are held, also DIFFERENCES: the setting's mean less theirs;
    empty for a setting of nothing but such rows. Intervals are empty where a stratum has one run only, which
    says nothing about the spread. They depend on `seed` and on the setting's own runs (and those it is held
    against), but not on their order, nor on the other rows.
    """
    for name in by:
        if name in (*FIGURES, *DIFFERENCES):
            raise ValueError(f"the column {name} cannot be one to group by: a summary has its own.")
    require(rows, [value])
    within = [] if stratum is None else [stratum]
    for runs, columns in ((rows, by), (against or [], [])):
        if runs and "seed" in runs[0]:
            check_runs(runs, [*columns, *within])
    summaries = []
    for setting, here in groups(rows, by).items():
        strata = _strata(here, value, stratum, describe(by, setting))
        values = np.concatenate(strata)
        worst, best = float(values.min()), float(values.max())
        if smaller_is_better(value):
            worst, best = best, worst
        row: dict[str, Any] = dict(zip(by, setting, strict=True))
        row |= {"runs": len(values), "worst": worst, "best": best}
        drawn = _resampled(strata, resamples, np.random.default_rng(seed))
        for name, statistic in _STATISTICS.items():
            row[name] = float(statistic(values))
            low, high = ("", "") if drawn is None else _interval(statistic(drawn))
            row |= {f"{name}_low": low, f"{name}_high": high}
        if against is not None:
            found: Sequence[Any] = ("", "", "")
            if not all(run in against for run in here):
                found = difference(here, against, value, stratum=stratum, resamples=resamples, seed=seed)
            row |= dict(zip(DIFFERENCES, found, strict=True))
        summaries.append(row)
    return summaries


def difference(
    rows_a: Sequence[Row],
    rows_b: Sequence[Row],
    value: str,
    *,
    stratum: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[Any, Any, Any]:
    """The mean of `value` in `rows_a` minus that in `rows_b`, and its interval, empty where there is none.

    The runs of the two are drawn independently.
    Seeds are not paired: the same seed in two settings does not make their runs alike.
    """
    generator = np.random.default_rng(seed)
    means, drawn = [], []
    for name, rows in (("first", rows_a), ("second", rows_b)):
        if not rows:
            raise ValueError(f"a difference needs runs on both sides, but the {name} has none.")
        strata = _strata(rows, value, stratum, f"the {name} side")
        means.append(float(np.concatenate(strata).mean()))
        drawn.append(_resampled(strata, resamples, generator))
    mean = means[0] - means[1]
    if drawn[0] is None or drawn[1] is None:
        return mean, "", ""
    return mean, *_interval(drawn[0].mean(axis=-1) - drawn[1].mean(axis=-1))


def finite(rows: Sequence[Row], value: str, setting: str) -> np.ndarray:
    """The column `value`, sorted; a ValueError that names the `setting` where it is no finite number."""
    require(rows, [value])
    for row in rows:
        if not is_finite(row[value]):
            raise ValueError(
                f"{value} must be a finite number in every run, but is {row[value]!r} in {setting}."
            )
    return np.sort([float(row[value]) for row in rows])


def markdown(rows: Sequence[Row], columns: Mapping[str, str]) -> str:
    """A GitHub table of `rows`, with thousands separators; FIGURES have four significant digits.

    `columns` gives each heading a template: {"mean (worst)": "{mean} ({worst})"}.
    Whole parts are never rounded away, and settings are given as they are.
    """
    figures = {*FIGURES, *DIFFERENCES}
    lines = [_line(columns), "|" + "---|" * len(columns)]
    for row in rows:
        cells = {name: _text(content, 4 if name in figures else 6) for name, content in row.items()}
        try:
            lines.append(_line(template.format_map(cells) for template in columns.values()))
        except KeyError as error:
            raise ValueError(f"there is no column {error}; the columns are {', '.join(row)}.") from None
    return "\n".join(lines) + "\n"


def _strata(rows: Sequence[Row], value: str, stratum: str | None, setting: str) -> list[np.ndarray]:
    """The values of each stratum; sorted like the strata, so nothing depends on the order of the rows."""
    parts = groups(rows, [] if stratum is None else [stratum])
    return [finite(parts[name], value, setting) for name in sorted(parts, key=repr)]


def _resampled(
    strata: Sequence[np.ndarray], resamples: int, generator: np.random.Generator
) -> np.ndarray | None:
    """Values drawn with replacement within each stratum, [resamples, runs]; None if one has a single run."""
    if min(len(values) for values in strata) < 2:
        return None
    drawn = [values[generator.integers(len(values), size=(resamples, len(values)))] for values in strata]
    return np.concatenate(drawn, axis=1)


def _interval(statistics: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(statistics, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return float(low), float(high)


def _line(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"


def _text(content: Any, digits: int) -> str:
    """A cell for people: −4,245 and 0.0126, and a dash for what is empty."""
    if content == "":
        return "–"
    if isinstance(content, str | bool) or not isinstance(content, numbers.Real):
        return str(content).replace("|", r"\|")
    size = abs(float(content))
    sign = "−" if content < 0 else ""
    if 0 < size < 1e-6:
        figure, power = f"{size:.{digits - 1}e}".split("e")
        return f"{sign}{float(figure):g}e{int(power)}"
    places = max(0, digits - 1 - math.floor(math.log10(size))) if size else 0
    text = f"{size:,.{places}f}"
    return sign + (text.rstrip("0").rstrip(".") if places else text)
