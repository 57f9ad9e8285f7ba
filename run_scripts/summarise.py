"""Prints statistics over the seeds of each setting of a sweep, from its results.csv.

    python run_scripts/summarise.py --input=runs/sweep/results.csv --by=learner,exploration
    python run_scripts/summarise.py --input=runs/games/results.csv --by=exploration --where=game=leduc_poker \
        --value=nash_conv_average --output=leduc.csv
    python run_scripts/summarise.py --input=runs/sweep/results.csv --against=learner=spg

Mean, median and interquartile mean with 95% bootstrap intervals, worst and best.
"""

import dataclasses

from pohp_neurd.experiment import command_line, schema
from pohp_neurd.results import records, table

_WHAT = "What"


@dataclasses.dataclass(frozen=True)
class Config:
    """Which rows, how they are grouped, and where the table goes."""

    input: str = schema.field("", "A results.csv.", _WHAT, shown="none, it must be given")
    by: tuple[str, ...] = schema.field(
        ("learner", "exploration"),
        "Columns, with commas: a row of the table for each combination of their values.",
        _WHAT,
    )
    value: str = schema.field("total_reward", "The column whose statistics are wanted.", _WHAT)
    where: tuple[str, ...] = schema.field(
        (),
        "A condition column=value that all rows must meet. Repeat it for several.",
        _WHAT,
        repeated=True,
        shown="none",
    )
    against: str | None = schema.field(
        None,
        "Conditions column=value, with commas, of the rows against which the others are held: adds each "
        "setting's mean less theirs, with its interval.",
        _WHAT,
    )
    stratum: str | None = schema.field(
        None, "A column, such as environment, within whose values runs are resampled.", _WHAT
    )
    output: str | None = schema.field(None, "The table as CSV; none: on the screen only.", "Where to")

    def __post_init__(self) -> None:
        if not self.input:
            raise ValueError("input must be given: the results.csv of a sweep.")


command_line.define(Config)


@command_line.told
def main(_: list[str]) -> None:
    """Reads, summarises, writes."""
    config = command_line.config(Config)
    rows: list[table.Row] = list(table.read(config.input))
    for condition in config.where:
        rows = table.select(rows, table.conditions(condition))
    against = table.select(rows, table.conditions(config.against)) if config.against else None
    found = table.summarise(rows, by=config.by, value=config.value, against=against, stratum=config.stratum)
    if config.output:
        records.write_csv(config.output, found, list(found[0]))
    columns = {**{name: f"{{{name}}}" for name in config.by}, **table.COLUMNS}
    if against is not None:
        columns[f"less {config.against}"] = "{difference}"
        columns["its 95% interval"] = "{difference_low} to {difference_high}"
    print(table.markdown(found, columns), end="")


if __name__ == "__main__":
    command_line.run(main, __doc__)
