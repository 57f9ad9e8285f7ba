"""Statistics over the seeds of each setting, from a sweep's results.csv: a table on the screen and as CSV.

    python run_scripts/summarise.py --input=runs/sweep/results.csv --by=learner,exploration
    python run_scripts/summarise.py --input=runs/games/results.csv --by=exploration --where=game=leduc_poker \
        --value=nash_conv_average --output=leduc.csv
    python run_scripts/summarise.py --input=runs/sweep/results.csv --against=learner=spg

Mean, median and interquartile mean with 95% bootstrap intervals, worst and best.
"""

import command_line
from absl import flags

from pohp_neurd.experiment import records, summary, table

TOPICS = {
    "What": {
        "input": "A results.csv.",
        "by": "Columns, with commas: a row of the table for each combination of their values.",
        "value": "The column whose statistics are wanted.",
        "where": "A condition column=value that all rows must meet. Repeat it for several.",
        "against": "Conditions column=value, with commas, of the rows against which the others are held: "
        "adds each setting's mean less theirs, with its interval.",
        "stratum": "A column, such as environment, within whose values runs are resampled.",
    },
    "Where to": {"output": "The table as CSV; none: on the screen only."},
}
_MEANINGS = {name: meaning for names in TOPICS.values() for name, meaning in names.items()}
_INPUT = flags.DEFINE_string("input", "", _MEANINGS["input"])
_BY = flags.DEFINE_list("by", ["learner", "exploration"], _MEANINGS["by"])
_VALUE = flags.DEFINE_string("value", "total_reward", _MEANINGS["value"])
_WHERE = flags.DEFINE_multi_string("where", [], _MEANINGS["where"])
_AGAINST = flags.DEFINE_string("against", None, _MEANINGS["against"])
_STRATUM = flags.DEFINE_string("stratum", None, _MEANINGS["stratum"])
_OUTPUT = flags.DEFINE_string("output", None, _MEANINGS["output"])


@command_line.told
def main(_: list[str]) -> None:
    """Reads, summarises, writes."""
    if not _INPUT.value:
        raise ValueError("input must be given: the results.csv of a sweep.")
    rows: list[table.Row] = list(table.read(_INPUT.value))
    for condition in _WHERE.value:
        rows = table.select(rows, table.conditions(condition))
    against = table.select(rows, table.conditions(_AGAINST.value)) if _AGAINST.value else None
    found = summary.summarise(rows, by=_BY.value, value=_VALUE.value, against=against, stratum=_STRATUM.value)
    if _OUTPUT.value:
        records.write_csv(_OUTPUT.value, found, list(found[0]))
    columns = {
        **{name: f"{{{name}}}" for name in _BY.value},
        **summary.COLUMNS,
    }
    if against is not None:
        columns[f"less {_AGAINST.value}"] = "{difference}"
        columns["its 95% interval"] = "{difference_low} to {difference_high}"
    print(summary.markdown(found, columns), end="")


if __name__ == "__main__":
    command_line.run(main, __doc__, TOPICS, {"input": "none, it must be given"})
