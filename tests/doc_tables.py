"""The tables of README.md and of the pages behind docs/findings.md; `claims` has their prose."""

import pathlib

from pohp_neurd.results import table

ROOT = pathlib.Path(__file__).resolve().parents[1]
STUDIES = ROOT / "studies"
_EXPLORATIONS = (0, 0.01, 0.03, 0.1, 0.3, 1)
_HEADS = ["", "SPG", "η = 0", *map(str, _EXPLORATIONS[1:])]


def interval(row):
    """Mean and 95% interval, as the documents write them."""
    return f"{number(row['mean'])} [{number(row['mean_low'])}, {number(row['mean_high'])}]"


def number(value):
    """Whole above 100, else with three digits, and with a real minus sign."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3f}"
    return text.replace("-", "−")


def mean(row):
    """The mean alone: README.md has no intervals, the studies have them."""
    return number(row["mean"])


def paper(cell=interval):
    """Accumulated reward at the best learning rates here and at the paper's: studies/paper."""
    lines = [_HEADS, ["---"] * len(_HEADS)]
    chosen = {"catch": ("0.00004", "0.00008", "0.001797"), "cart_pole": ("0.00002", "0.00005")}
    for environment, rate in ((name, rate) for name, rates in chosen.items() for rate in rates):
        rows = table.read(STUDIES / "paper" / environment / f"explorations_{rate}.csv")
        found = {row["exploration"]: row for row in rows}
        cells = [cell(found[exploration]) for exploration in ("", *_EXPLORATIONS)]
        lines.append([f"{environment.replace('_', ' ')} at {rate}", *cells])
    return _table(lines)


def paper_means():
    """The same in means: README.md."""
    return paper(mean)


def rollouts():
    """SPG and NeuRD-CIX with one update for every 32 steps: studies/readings."""
    lines = [_HEADS, ["---"] * len(_HEADS)]
    for name, environment, mode in (
        ("catch at 0.001797, as written", "catch", "paper"),
        ("catch at 0.001797, common mode dropped", "catch", "dropped"),
        ("cart pole at 0.00005, as written", "cart_pole", "paper"),
    ):
        rows = table.read(STUDIES / "readings" / f"against_spg_{environment}.csv")
        found = {row["exploration"]: row for row in rows if row["common_mode"] == mode}
        spg = interval(found[""]) if "" in found else ""  # it has no common mode
        lines.append([name, spg, *(interval(found[each]) for each in _EXPLORATIONS)])
    return _table(lines)


def self_play():
    """NashConv in tabular self-play over exploration: studies/self_play/exploration.md."""
    columns = ("nash_conv", "nash_conv_average")
    heads = ["", "Leduc, current", "Leduc, average", "Kuhn, current", "Kuhn, average"]
    lines = [heads, ["---"] * len(heads)]
    rows = table.read(STUDIES / "self_play" / "exploration_results.csv")
    found = {
        (game, column): {
            _setting(row): row
            for row in table.summarise(
                table.select(rows, {"game": game}),
                by=["learner", "exploration", "exploration_decay"],
                value=column,
            )
        }
        for game in ("leduc_poker", "kuhn_poker")
        for column in columns
    }
    for setting in _settings(next(iter(found.values()))):
        lines.append([setting, *(interval(part[setting]) for part in found.values())])
    return _table(lines)


def swapping_catch():
    """Catch whose actions swap: studies/swapping_catch."""
    heads = ["", "accumulated reward", "balls missed in the last 30,000 steps"]
    lines = [heads, ["---"] * len(heads)]
    rows = table.read(STUDIES / "swapping_catch" / "results.csv")
    rows = [{**row, "missed": 9 * row["losses_per_step_at_end"]} for row in rows]
    by = ["learner", "exploration", "exploration_decay"]
    parts = [
        {_setting(row): row for row in table.summarise(rows, by=by, value=value)}
        for value in ("total_reward", "missed")
    ]
    for setting in _settings(parts[0]):
        lines.append([setting, *(interval(part[setting]) for part in parts)])
    return _table(lines)


def _setting(row):
    if row["learner"] == "spg":
        return "SPG"
    name = f"η = {row['exploration']:g}"
    return f"{name}, decreasing" if row["exploration_decay"] else name


def _settings(rows):
    """SPG first, constant explorations, then decreasing ones."""
    return sorted(rows, key=lambda name: (name != "SPG", "decreasing" in name))


def _table(lines):
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
