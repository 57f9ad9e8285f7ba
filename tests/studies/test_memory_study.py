"""The study of memory: a tiny one from end to end, and the recorded rows and README."""

import pathlib

import memory
import pytest

from pohp_neurd import openspiel
from pohp_neurd.results import table

RECORDED = pathlib.Path(memory.__file__).parent
LIAR = "Liar's Dice"
TINY = memory.Game("Kuhn poker", "kuhn_poker", "string", 1, 30, 4, 2, 3, ("fading", "stable"))


@pytest.fixture(scope="module")
def recorded():
    return {name: table.read(RECORDED / f"{name}.csv") for name in ("cells", "curves", "summary")}


@pytest.mark.thorough
def test_a_study_leaves_its_rows_and_goes_on_where_it_stopped(tmp_path):
    first = memory.run(tmp_path, [TINY], updates=["expected"])
    before = (tmp_path / "curves.csv").read_text()
    rows = memory.run(tmp_path, [TINY])
    assert {path.suffix for path in tmp_path.iterdir() if path.suffix} >= {".csv", ".png"}
    after = (tmp_path / "curves.csv").read_text()
    assert set(before.splitlines()) < set(after.splitlines())  # seconds and all: nothing was run again
    assert [row["agent_state"] for row in rows] == ["observation", "window:1", "information_state"]
    assert {row["information_states"] for row in rows} == {12}
    # Uniform play has NashConv 11/12 in Kuhn poker.
    assert {row["uniform"] for row in rows} == {round(11 / 24, 6)}
    assert [row["seeds"] for row in first] == ["", "", ""]
    curves = table.read(tmp_path / "curves.csv")
    for row in rows:
        mine = {"game": "kuhn_poker", "agent_state": row["same_as"] or row["agent_state"]}
        runs = table.select(curves, mine)
        exact = [run["exploitability"] for run in runs if run["update"] == "expected"]
        assert len(exact) == 2 * 3
        assert row["floor"] == min(exact)
        sampled = [run["exploitability"] for run in runs if run["update"] == "sampled"]
        assert row["seeds"] == len(sampled) == 2
        assert row["sampled"] == pytest.approx(sum(sampled) / 2, rel=1e-4)


def test_a_graph_that_is_too_large_has_a_row_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "MAX_NODES", 10)
    rows = memory.run(tmp_path, [TINY])
    assert [row["nodes"] for row in rows] == ["", "", ""]
    assert [row["floor"] for row in rows] == ["", "", ""]
    cells = table.read(tmp_path / "cells.csv")
    assert [row["built_seconds"] == "" for row in cells] == [False, True, True]


@pytest.mark.parametrize(
    ("agent_state", "word"),
    [("observation", "untimed"), ("window:1", "untimed"), ("window:2", "perfect")],
)
def test_recall_is_told_in_a_word(agent_state, word):
    assert memory.recall(openspiel.compile_game("leduc_poker", agent_state=agent_state)) == word


def test_equal_graphs_have_equal_digests():
    graphs = [openspiel.compile_game("leduc_poker", agent_state=f"window:{length}") for length in (1, 2, 3)]
    one, two, three = map(memory.digest, graphs)
    assert two == three != one


def test_recorded_rows_are_complete(recorded):
    cells = {(row["game"], row["agent_state"]): row for row in recorded["cells"]}
    assert list(cells) == [(game.name, state) for game in memory.GAMES for state in game.agent_states]
    wanted = [
        {"game": game.name, "agent_state": state} | run | {"updates": count}
        for game in memory.GAMES
        for state in game.agent_states
        if cells[game.name, state]["nodes"] != "" and not cells[game.name, state]["same_as"]
        for run, when in memory.runs(game, state)
        for count in when
    ]
    found = [{name: row[name] for name in wanted[0]} for row in recorded["curves"]]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


def test_the_recorded_summary_is_that_of_the_rows(recorded):
    assert memory.summary(recorded["cells"], recorded["curves"]) == recorded["summary"]


def test_responders_saw_as_many_information_states_as_are_published(recorded):
    published = {
        "leduc_poker": 936,
        "liars_dice": 24_576,
        "phantom_ttt(gameversion=abrupt)": 23_310_269,
        "dark_hex(board_size=3,gameversion=adh)": 27_325_277,
    }
    for game, number in published.items():
        rows = table.select(recorded["cells"], {"game": game})
        assert {row["information_states"] for row in rows} - {""} == {number}


def test_perfect_recall_is_where_agent_states_are_information_states(recorded):
    for row in recorded["cells"]:
        if row["nodes"] != "":
            assert (row["recall"] == "perfect") == (row["agent_states"] == row["information_states"])


def test_the_readme_has_the_tables_of_the_rows(recorded):
    text = (RECORDED / "README.md").read_text(encoding="utf-8")
    for name, made in memory.tables(recorded["summary"]).items():
        assert made in text, name


def claims(summary):
    """What the README says in prose, from the rows."""
    titles = {game.name: game.title for game in memory.GAMES}
    found = {(titles[row["game"]], row["agent_state"]): row for row in summary}

    def floor(game, agent_state, column="floor"):
        value = found[game, agent_state][column]
        return f"{value:.4f}" if value >= 0.001 else f"{value:.2g}"

    def sampled(game, agent_state):
        row = found[game, agent_state]
        return f"{row['sampled']:.3f} [{row['sampled_low']:.3f}, {row['sampled_high']:.3f}]"

    def milliseconds(game, agent_state, digits=2):
        return f"{1000 * found[game, agent_state]['update_seconds']:.{digits}g} ms"

    full, seen, leduc = "information_state", "observation", "Leduc poker"
    return {
        "leduc": f"{floor(leduc, seen)} with the observation, {floor(leduc, 'window:1')} with `window:1`, "
        f"{floor(leduc, full)} with perfect recall",
        "liar": f"{floor(LIAR, seen)} against {floor(LIAR, full)}",
        "goofspiel": f"{floor('Goofspiel-4', seen)} against {floor('Goofspiel-4', full)}",
        "hex": f"{floor('ADH 3x2', seen)} against {floor('ADH 3x2', full)}",
        "large": f"{floor('ADH3', seen)} in ADH3, {floor('APTTT', seen)} in APTTT",
        "window": f"{floor('ADH3', 'window:1')} and {floor('APTTT', 'window:1')} in a quarter of the updates",
        "large nodes": f"{found['APTTT', seen]['nodes']:,} nodes with the observation and "
        f"{found['APTTT', 'window:1']['nodes']:,} with `window:1`",
        "large update": f"{milliseconds('APTTT', seen, 3)} instead of {milliseconds('APTTT', 'window:1', 3)}",
        "minute": f"{floor('APTTT', seen, 'floor_60_s')} against {floor('APTTT', 'window:1', 'floor_60_s')}",
        "sampled boards": f"{sampled('APTTT', 'window:1')} against {sampled('APTTT', seen)} in APTTT",
        "nodes": f"{found['ADH 3x2', seen]['nodes']:,} nodes instead of {found['ADH 3x2', full]['nodes']:,}",
        "update": f"{milliseconds('ADH 3x2', seen)} instead of {milliseconds('ADH 3x2', full)} an update",
        "liar's update": f"{milliseconds(LIAR, seen)} instead of {milliseconds(LIAR, full)}",
        "one second": f"{floor('ADH 3x2', seen, 'floor_1_s')} against {floor('ADH 3x2', full, 'floor_1_s')}",
        "liar's second": f"{floor(LIAR, seen, 'floor_1_s')} against {floor(LIAR, full, 'floor_1_s')}",
        "evaluation": f"{found[LIAR, seen]['evaluation_seconds']:.2g} s instead of "
        f"{found[LIAR, full]['evaluation_seconds']:.2g} s in Liar's Dice",
        "sampled": f"{sampled(leduc, seen)} with the observation, {sampled(leduc, full)} with perfect recall",
        "sampled bids": f"{sampled('Goofspiel-4', seen)} and {sampled('Goofspiel-4', full)}",
    }


def test_the_readme_says_what_the_rows_say(recorded):
    text = " ".join((RECORDED / "README.md").read_text(encoding="utf-8").split())
    for name, claim in claims(recorded["summary"]).items():
        assert claim in text, name
