"""The table of solvers in README and docs/speed.md, against the recorded rows."""

import pathlib

import pytest

from pohp_neurd.results import table

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 10.0
GAMES = {
    "Kuhn poker": "kuhn_poker",
    "Leduc poker": "leduc_poker",
    "Liar's Dice, 5 sides": "liars_dice(dice_sides=5)",
    "Liar's Dice": "liars_dice",
    "Goofspiel-5": "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=5,"
    "points_order=descending))",
}
LINES = {
    "`NeuRDCIXSolver(game)`, current": ("neurd", "current"),
    "`NeuRDCIXSolver(game)`, average": ("neurd", "average"),
    '`learner="predictive_rm_plus"`, current': ("predictive_rm_plus", "current"),
    '`learner="predictive_rm_plus"`, average': ("predictive_rm_plus", "average"),
    '`learner="rm_plus"`, average': ("rm_plus", "average"),
    '`learner="regret_matching"`, average': ("regret_matching", "average"),
    '`learner="optimistic_hedge"`, average': ("optimistic_hedge", "average"),
    '`update="sampled"`, average': ("neurd_cix sampled", "average"),
    "C++ `CFRPlusSolver`, average": ("cfr_plus", "average"),
    "C++ `CFRSolver`, average": ("cfr", "average"),
    "C++ `ExternalSamplingMCCFRSolver`, average": ("es_mccfr", "average"),
    "C++ `OutcomeSamplingMCCFRSolver`, average": ("os_mccfr", "average"),
}


def shown(value: float) -> str:
    """With one digit, as 3e-6; what is below 1e-12 is rounding.

    >>> shown(0.0000031)
    '3e-6'
    """
    if value < 1e-12:
        return "0"
    digit, power = f"{value:.0e}".split("e")
    return f"{digit}e{int(power)}"


def made(rows) -> str:
    """The table, from the rows."""
    lines = [f"| NashConv after {SECONDS:g} s | {' | '.join(GAMES)} |", "|---" * (1 + len(GAMES)) + "|"]
    for words, (solver, policy) in LINES.items():
        wanted = {"solver": solver, "policy": policy, "seconds": SECONDS}
        cells = []
        for game in GAMES.values():
            (row,) = table.select(rows, wanted | {"game": game})
            cells.append(shown(row["nash_conv"]))
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


@pytest.mark.parametrize("name", ["README.md", "docs/speed.md"])
def test_the_table_of_solvers_is_that_of_the_rows(name):
    assert made(table.read(ROOT / "studies" / "speed" / "solvers.csv")) in (ROOT / name).read_text()


def test_rows_are_complete():
    """Every solver in every game, after 1, 3, 10 and 30 seconds."""
    rows = table.read(ROOT / "studies" / "speed" / "solvers.csv")
    found = {(row["game"], row["solver"], row["seconds"]) for row in rows}
    wanted = {(g, s, t) for g in GAMES.values() for s, _ in LINES.values() for t in (1.0, 3.0, 10.0, 30.0)}
    assert wanted <= found


def test_the_current_policy_of_exact_neurd_stays_at_an_equilibrium():
    """In Leduc poker at most 0.005 after 10 seconds, and never above 0.02 from 5 seconds on."""
    rows = table.select(
        table.read(ROOT / "studies" / "speed" / "solvers.csv"),
        {"game": "leduc_poker", "solver": "neurd", "policy": "current"},
    )
    late = {row["seconds"]: row["nash_conv"] for row in rows if row["seconds"] >= 5}
    assert {5.0, 6.0, 7.0, 8.0, 9.0, 10.0} <= set(late)
    assert late[10.0] <= 0.005
    assert max(late.values()) <= 0.02
