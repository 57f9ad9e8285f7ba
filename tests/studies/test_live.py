"""What is said of live play is what its rows say, and the study's script runs."""

import importlib.util
import pathlib
import subprocess
import sys
import types

import pytest

from pohp_neurd.experiment import game_config
from pohp_neurd.results import table

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUDY = ROOT / "studies" / "live"


def test_staleness_is_told_of_as_it_was_measured():
    rows, text = table.read(STUDY / "staleness.csv"), (STUDY / "README.md").read_text("utf-8")
    fresh, stale = ([row for row in rows if row["staleness"] == number] for number in (0, 1))
    assert [row["seed"] for row in fresh] == [row["seed"] for row in stale] == list(range(10))
    for name, column in (("current", "nash_conv"), ("average", "nash_conv_average")):
        means = [sum(row[column] for row in side) / 10 for side in (fresh, stale)]
        mean, low, high = table.difference(stale, fresh, column)
        line = f"| {name} | {means[0]:.3f} | {means[1]:.3f} | {mean:+.3f} [{low:.3f}, {high:.3f}] |"
        assert line in text
    assert f"+{table.difference(stale, fresh, 'nash_conv')[0]:.2f}" in (
        ROOT / "docs" / "self_play.md"
    ).read_text("utf-8")


@pytest.mark.parametrize("document", ["studies/live/README.md", "docs/self_play.md"])
def test_lower_bounds_stand_beside_the_exact_value(document):
    rows, text = table.read(STUDY / "responders.csv"), (ROOT / document).read_text("utf-8")
    for row in rows:
        assert row["low"] < row["lower_bound"] < row["high"] < row["nash_conv"]
        found = f"{row['lower_bound']:.3f} [{row['low']:.3f}, {row['high']:.3f}]".replace("-", "−")
        line = f"| {row['response_updates']} | {row['response_seeds']} | {found} | {row['nash_conv']:.4f} |"
        assert line in text


@pytest.mark.thorough
def test_the_script_writes_such_rows():
    command = [sys.executable, str(STUDY / "staleness.py"), "--seeds=1", "--episodes=512"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head == (STUDY / "staleness.csv").read_text("utf-8").splitlines()[0]
    assert [row.split(",")[:3] for row in rows] == [["0", "0", "512"], ["1", "0", "512"]]


def only_sampling():
    spec = importlib.util.spec_from_file_location("only_sampling", STUDY / "only_sampling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_said_where_only_sampling_is_possible_is_what_the_rows_say():
    text = (STUDY / "README.md").read_text("utf-8")
    for name, table_ in only_sampling().tables().items():
        assert table_ in text, name


def test_in_dark_hex_the_middle_beats_both_ends_on_every_seed():
    """As README.md says, and docs/self_play.md of poker."""
    met = table.select(table.read(STUDY / "only_sampling_matches.csv"), {"game": "dark_hex"})
    for pair, sign in (((0.0, 0.1), -1), ((0.1, 1.0), 1)):
        rows = table.select(met, dict(zip(("exploration", "opponent"), pair, strict=True)))
        assert len(rows) == 10
        assert all(sign * row["mean"] > 0 for row in rows)
    long = table.select(table.read(STUDY / "only_sampling_curves.csv"), {"game": "leduc_13", "seed": 1})
    average = {row["episodes"]: row["nash_conv"] for row in long if row["use"] == "average"}
    text = (ROOT / "docs" / "self_play.md").read_text("utf-8")
    assert f"falls from {average[1_325_824]:.2f} (average policy)" in text
    assert f"to {average[64_000_000]:.2f} after 64 million" in text


def test_without_a_schedule_it_got_worse_again():
    rows = table.select(table.read(STUDY / "only_sampling_no_schedule.csv"), {"use": "average"})
    found = {row["episodes"]: row["nash_conv"] for row in rows}
    first, last = found[965_376], found[23_088_384]
    told = f"NashConv {first:.2f} (average) after a million episodes and {last:.2f} after\n23 million"
    assert told in (STUDY / "README.md").read_text("utf-8")


def test_no_network_that_is_reported_took_part_in_a_choice():
    rows = table.read(STUDY / "only_sampling_choices.csv")
    chosen_on = {row["seed"] for row in rows}
    assert chosen_on == {900}
    for name in ("curves", "bounds", "matches"):
        assert not chosen_on & {row["seed"] for row in table.read(STUDY / f"only_sampling_{name}.csv")}
    finals = {
        row["setting"]: row["nash_conv"] * row["nash_conv_average"] for row in rows if row["episodes"] == 3e6
    }
    best = min(finals, key=finals.get)
    assert set(finals) == set(only_sampling().SETTINGS)
    default = game_config.DEFAULTS[game_config.KINDS["live"]]
    assert {
        name: float(value) for name, value in (part.split("=") for part in best.split())
    }.items() <= default.items()


@pytest.mark.thorough
def test_the_script_trains_judges_and_draws(tmp_path, monkeypatch, capsys):
    study = only_sampling()
    small = {"dark_hex": "phantom_ttt", "leduc_13": "kuhn_poker"}
    changes = {"HERE": tmp_path, "GAMES": small, "SEEDS": range(10, 12), "marks_of": lambda *_: [256, 512]}
    changes |= {"MATCH": 8, "BOUND": 8}
    for name, value in changes.items():
        monkeypatch.setattr(study, name, value)
    for game in small:
        told = types.SimpleNamespace(
            game=game, runs=tmp_path / "runs", workers=1, episodes=512, exploration=0.1
        )
        for name, value in {"seed": 1, "marks": 2, "updates": 1, "responders": 1, "least": 512}.items():
            setattr(told, name, value)
        for job in (study.long_run, study.explorations, study.respond, study.meet):
            job(told)
        before = {path.name: path.read_bytes() for path in tmp_path.glob("*.csv")}
        for job in (study.long_run, study.explorations, study.respond, study.meet):
            job(told)  # nothing is made twice
        assert {path.name: path.read_bytes() for path in tmp_path.glob("*.csv")} == before
    curves = study.rows_of("curves")
    assert len(curves) == 2 * (1 + 2 * 3) * 2 * 2  # games, runs, marks, policies
    assert {row["nash_conv"] != "" for row in curves if row["game"] == "dark_hex"} == {False}
    assert len(study.rows_of("bounds")) == 2 * 2
    assert len(study.rows_of("matches")) == 2 * 2 * 2 * 3
    study.draw(None)
    assert (tmp_path / "only_sampling.png").stat().st_size > 10_000
    assert "0.1 against 1" in capsys.readouterr().out
