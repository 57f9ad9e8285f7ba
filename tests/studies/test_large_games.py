"""The tables of docs/large_games.md and of README, against the recorded rows."""

import pathlib
import re

import choose
import numpy as np
import pytest

from pohp_neurd.experiment import game_config
from pohp_neurd.results import table

ROOT = pathlib.Path(__file__).parents[2]
ROWS = ROOT / "studies" / "large_games"
FRESH = [100, 101, 102, 103, 104]


@pytest.mark.parametrize(
    ("file", "episodes", "decisions"),
    [
        ("sampled_results.csv", 1_200_000, "9.8"),
        ("sampled_results.csv", 20_000_000, "165"),
        ("network_results.csv", 20_000_000, "172"),
    ],
)
def test_sampled_runs_are_of_fresh_seeds_and_told_as_they_are(file, episodes, decisions):
    rows = table.select(table.read(ROWS / file), {"game": "phantom_ttt", "episodes": episodes})
    assert [row["seed"] for row in rows] == FRESH
    found = np.array([row["nash_conv"] for row in rows]) / 2
    median = f"{np.median(found):.3f}"
    guide = (ROOT / "docs" / "large_games.md").read_text()
    assert f"| {decisions} million |" in guide
    assert f"{median} ({found.min():.3f} to {found.max():.3f})" in guide
    assert float(decisions) == pytest.approx(np.median([row["steps"] for row in rows]) / 1e6, rel=0.005)
    assert median in (ROOT / "README.md").read_text()


OTHERS = {
    "dark hex 3x3": "dark_hex(board_size=3,gameversion=cdh)",
    "abrupt phantom tic-tac-toe": "phantom_ttt(gameversion=abrupt)",
    "abrupt dark hex 3x3": "dark_hex(board_size=3,gameversion=adh)",
    "Liar's Dice, 2 dice of 5 sides": "liars_dice(dice_sides=5,numdice=2)",
}
"""The games that had no part in a choice of sampled updates."""


@pytest.mark.parametrize("title", OTHERS)
def test_sampled_runs_in_other_games_are_told_as_they_are(title):
    cells = []
    for file in ("sampled_results.csv", "network_results.csv"):
        rows = table.select(table.read(ROWS / file), {"game": OTHERS[title], "episodes": 20_000_000})
        assert [row["seed"] for row in rows] == FRESH[: len(rows)]
        found = np.array([row["nash_conv"] for row in rows]) / 2
        spread = f"{found.min():.3f} to {found.max():.3f}, {len(found)} seeds" if len(found) > 1 else "1 seed"
        cells.append(f"{np.median(found):.3f} ({spread})")
    guide = (ROOT / "docs" / "large_games.md").read_text()
    assert f"| {title} | {' | '.join(cells)} |" in guide


def test_exact_updates_are_told_as_they_are():
    """The best evaluation of every run, and its last."""
    curves = table.select(table.read(ROWS / "expected_curves.csv"), {"iterations": 4000})
    guide, front = ((ROOT / name).read_text() for name in ("docs/large_games.md", "README.md"))
    assert {row["game"] for row in curves} == {"phantom_ttt", *OTHERS.values()}
    for game in ("phantom_ttt", *OTHERS.values()):
        found = {row["updates"]: row["nash_conv"] / 2 for row in curves if row["game"] == game}
        assert list(found) == [1000, 2000, 3000, 4000]
        best = min(found, key=found.__getitem__)
        assert re.search(rf"\| {found[best]:.4f} \({best:,}[^|]*\| {found[4000]:.4f} \|", guide), game
        assert f"{found[best]:.4f} in " in front


def test_costs_are_told_as_they_were_measured():
    """A row of the guide for each game of the benchmark's record, and seconds of one NashConv in README."""
    words = (ROWS / "benchmark.txt").read_text()
    guide, front = ((ROOT / name).read_text() for name in ("docs/large_games.md", "README.md"))
    pattern = (
        r"built in ([\d.]+ s); built and judged within (\d+ MB).*\n.*, ([\d.]+ s) of CPU; .*, ([\d.]+x); "
        r"(\d+ MB) at most"
    )
    measured = re.findall(pattern, words)
    assert len(measured) == 1 + len(OTHERS)
    for figures in measured:
        assert " | ".join(figures) + " |" in guide
        assert f"billion | {figures[2]} |" in front


def test_longer_memory_in_liars_dice_is_told_as_in_the_study_of_memory():
    rows = table.select(
        table.read(ROWS.parent / "memory" / "curves.csv"),
        {"game": OTHERS["Liar's Dice, 2 dice of 5 sides"], "agent_state": "window:2", "update": "expected"},
    )
    last = rows[-1]
    reached, seconds = f"{last['exploitability']:.3f}", f"{last['training_seconds']:.0f} s"
    assert (
        f"{reached} after {last['updates']:,} updates, {seconds}"
        in (ROOT / "docs" / "large_games.md").read_text()
    )
    assert f"{reached} in {seconds} with `window:2`" in (ROOT / "README.md").read_text()


def test_exact_updates_have_the_settings_that_were_chosen():
    """By the rule that the script states, on phantom tic-tac-toe and Leduc poker alone."""
    rows = table.read(ROWS / "choices.csv")
    assert {row["game"] for row in rows} == {"phantom_ttt", "leduc_poker"}
    assert len(rows) == len(choose.GAMES) * len(choose.SETTINGS) * len(choose.UPDATES)
    chosen = choose.chosen(rows)
    asked = game_config.Config(game="phantom_ttt", play="graph", update="expected")
    config = game_config.resolved(asked, "graph")
    assert (config.step_size, config.exploration) == (0.4, chosen["exploration"])
    assert config.magnet_strength == chosen["magnet_strength"]
    assert config.magnet_speed / config.decay_start == pytest.approx(chosen["magnet_speed"])
    settles = (config.magnet_speed_decay, config.decay_start) == (1.0, chosen["settling"])
    assert settles if chosen["settling"] else config.magnet_speed_decay == 0.0
