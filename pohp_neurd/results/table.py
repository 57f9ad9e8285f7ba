"""Rows of CSV files, as numbers and text: read, narrowed and grouped.

A condition is a column and the value that it must have, written `exploration=0.1`.
"""

import math
import numbers
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
