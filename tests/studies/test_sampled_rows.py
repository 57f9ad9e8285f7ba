"""What sampled tables reach on trees: the table of docs/self_play.md and its claims, against the rows."""

import pathlib

import numpy as np
import pytest

from pohp_neurd.results import table

ROOT = pathlib.Path(__file__).parents[2]
ROWS = ROOT / "studies" / "self_play"
FRESH = [110, 111, 112]
"""Settings were chosen on seed 0, and an earlier default was judged on 100 to 102."""
MILLIONS = (10, 30, 100)
GAMES = {
    "Kuhn poker": "kuhn_poker",
    "Leduc poker": "leduc_poker",
    "Liar's Dice, 4 sides": "liars_dice(dice_sides=4)",
    "Goofspiel-4": "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=4,"
    "points_order=descending))",
}


def reached(game, millions, value):
    rows = table.read(ROWS / "sampled_schedules.csv")
    found = table.select(rows, {"game": game, "setting": "", "millions": millions})
    assert [row["seed"] for row in found] == FRESH
    return [row[value] for row in found]


def made():
    """The table, of the seed in the middle."""
    lines = [
        f"| game | {' | '.join(f'{count}M' for count in MILLIONS)} |",
        "|---" * (1 + len(MILLIONS)) + "|",
    ]
    for title, game in GAMES.items():
        cells = []
        for millions in MILLIONS:
            both = (np.median(reached(game, millions, name)) for name in ("nash_conv", "nash_conv_average"))
            cells.append(", ".join(f"{value:.2g}" for value in both))
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_table_is_that_of_the_rows():
    assert made() in (ROOT / "docs" / "self_play.md").read_text()


@pytest.mark.parametrize("value", ["nash_conv", "nash_conv_average"])
@pytest.mark.parametrize("game", GAMES.values())
def test_more_episodes_never_hurt(game, value):
    """On every one of the seeds, of both policies."""
    least, more, most = (reached(game, millions, value) for millions in MILLIONS)
    for few, some, many in zip(least, more, most, strict=True):
        assert many < some < few


@pytest.mark.parametrize("game", GAMES.values())
def test_defaults_are_ahead_of_external_sampling_at_the_same_seconds(game):
    """Through a run and through the solver, on every seed; compilation is not counted."""
    rows = table.select(table.read(ROWS / "sampled_beside_mccfr.csv"), {"game": game})
    assert [row["seed"] for row in rows] == FRESH
    for row in rows:
        assert row["episodes"] >= 10**7
        assert max(row["nash_conv_average"], row["solver_average"]) < row["mccfr"]


def test_a_network_in_a_minute():
    rows = table.read(ROWS / "sampled_schedules.csv")
    found = table.select(rows, {"game": "leduc_poker", "setting": "policy=neural", "millions": 60})
    assert [row["seed"] for row in found] == FRESH
    for row in found:
        assert row["seconds"] <= 60
        assert max(row["nash_conv"], row["nash_conv_average"]) <= 0.1


def settling():
    """The table of exploration.md: the largest NashConv of the current policy from 30,000 updates on."""
    rows = table.select(table.read(ROWS / "settling.csv"), {"game": "leduc_poker"})
    steps = sorted({row["step_size"] for row in rows})
    lines = [f"| | {' | '.join(f'step size {step:g}' for step in steps)} |", "|---" * (1 + len(steps)) + "|"]
    for exploration in sorted({row["exploration"] for row in rows}):
        late = [
            [row["nash_conv"] for row in rows if row["updates"] >= 30_000]
            for rows in (
                table.select(rows, {"exploration": exploration, "step_size": step}) for step in steps
            )
        ]
        lines.append(f"| η = {exploration:g} | {' | '.join(f'{max(each):.3f}' for each in late)} |")
    return "\n".join(lines)


def test_what_exploration_does_without_samples_is_told_as_it_is():
    assert settling() in (ROOT / "studies" / "self_play" / "exploration.md").read_text()
