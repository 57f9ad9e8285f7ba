r"""Draws figures of sweeps and runs from their CSV files alone.

The paper's figure: each run a dot, their mean a line, SPG's mean and range beside them:
    python run_scripts/plot.py --kind=sensitivity --input=runs/sweep/results.csv --panels=environment \
        --reference=learner=spg --title="Sensitivity to exploration" --output=sensitivity.png

Accumulated reward over the learning rate, one environment of several:
    python run_scripts/plot.py --kind=learning_rates --input=runs/sweep/results.csv \
        --where=environment=catch --series=learner,exploration --output=learning_rates.png

Learning curves of whole runs, each file under a name; the second file is narrowed to one exploration:
    python run_scripts/plot.py --kind=learning_curves --input="SPG=runs/catch_spg/metrics.csv" \
        --input="NeuRD-CIX(1)=runs/catch/metrics.csv@exploration=1" --title=Catch --output=catch.png

NashConv in self-play, the median over seeds with a band, current policy left and average policy right:
    python run_scripts/plot.py --kind=nash_conv --input=runs/sweep/curves.csv --where=game=leduc_poker \
        --series=exploration --title="Leduc poker" --output=leduc.png
"""

import command_line
from absl import flags

from pohp_neurd.experiment.figures import request

TOPICS = {
    "What is drawn": {
        "kind": f"One of {', '.join(request.KINDS)}.",
        "input": "A results.csv, curves.csv or metrics.csv; NAME=FILE gives it a name in the legend, "
        "FILE@column=value,column=value takes some of its rows. Repeat it for several.",
        "where": "A condition column=value that all rows must meet. Repeat it for several.",
        "reference": "Of sensitivity: conditions column=value, with commas, of the runs that are drawn as a "
        "dashed mean and a range instead of dots.",
        "value": "Of sensitivity and learning_rates: the column that is drawn.",
    },
    "How": {
        "series": "Columns, with commas, whose values make a line each.",
        "panels": "Of sensitivity and learning_rates: columns whose values make a panel each.",
        "band": "Of nash_conv: interquartile (median and middle half of the runs) or bootstrap (mean and its "
        "95% interval).",
        "title": "Above the figure.",
        "output": "The figure; its suffix says the format, as .png, .pdf or .svg.",
    },
}
_DEFAULTS = {
    **dict.fromkeys(("kind", "input", "output"), "none, it must be given"),
    **dict.fromkeys(("where", "panels", "title"), "none"),
    "series": "the names of inputs, or what differs of learner, learning_rate and exploration",
}
_MEANINGS = {name: meaning for names in TOPICS.values() for name, meaning in names.items()}

for _name in ("input", "where"):
    flags.DEFINE_multi_string(_name, [], _MEANINGS[_name])
for _name in ("series", "panels"):
    flags.DEFINE_list(_name, [], _MEANINGS[_name])
for _name in ("kind", "reference", "value", "band", "title", "output"):
    flags.DEFINE_string(_name, getattr(request.Config, _name, ""), _MEANINGS[_name])


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and draws it."""
    chosen = {name: flags.FLAGS[name].value for name in _MEANINGS}
    lists = {name: tuple(chosen.pop(name)) for name in ("input", "where", "series", "panels")}
    config = request.Config(
        **chosen,
        inputs=lists["input"],
        where=lists["where"],
        series=lists["series"] or None,
        panels=lists["panels"],
    )
    request.draw(config)
    print(config.output)


if __name__ == "__main__":
    command_line.run(main, __doc__, TOPICS, _DEFAULTS)
