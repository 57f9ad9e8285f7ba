"""Each exploration at settings of its own: runs, choice, rows, and what the README says of them."""

import collections
import dataclasses
import importlib.util
import itertools
import math
import pathlib
import re

import pytest

from pohp_neurd.experiment import game as runs
from pohp_neurd.results import table

RECORDED = pathlib.Path(__file__).resolve().parents[2] / "studies" / "own_settings"


def _script():
    spec = importlib.util.spec_from_file_location("own_settings", RECORDED / "own_settings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


study = _script()
NEURD, TENTH, ONE = (study.Learner("neurd_cix", exploration) for exploration in (0, 0.1, 1))


@pytest.fixture(scope="module")
def recorded():
    names = ("choice_rows", "choices", "report_rows", "summary", "differences")
    return {name: table.read(RECORDED / f"{name}.csv") for name in names}


@pytest.fixture(scope="module")
def readme():
    return (RECORDED / "README.md").read_text(encoding="utf-8")


def as_trained(config, learner, setting, seed):
    """NashConv at the end of the run that `train_game.py` makes of these flags."""
    exploration = None if learner == study.SPG else float(learner.exploration)
    flags = {"learner": learner.learner, "exploration": exploration, "seed": seed}
    _, task = runs.build(dataclasses.replace(config, **flags, **setting._asdict()))
    (row,) = task.evaluate(task.advance(task.begin(), task.pace.total), task.pace.total, [])
    return row["nash_conv"], row.get("nash_conv_average", math.nan)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("game", "learner", "setting"),
    [
        ("goofspiel", TENTH, study.Setting(2.0, 0.016)),
        ("goofspiel", study.SPG, study.Setting(8.0, 0.004)),
        ("phantom", NEURD, study.Setting(0.5, 0.0)),
    ],
)
def test_a_run_is_that_of_train_game(game, learner, setting):
    """In a small game, on a tree and on a graph; the compiled function is used twice."""
    config = study.GAMES[game].config
    config = dataclasses.replace(config, game="kuhn_poker", episodes=4096, batch_size=64, eval_every=4096)
    run = study.runner(config, study.world_of(config))
    other = run(learner, study.Setting(0.125, 0.064), 5)
    found = run(learner, setting, 3)
    assert found == pytest.approx(as_trained(config, learner, setting, 3), abs=1e-6, nan_ok=True)
    assert math.isnan(found[1]) == (game == "phantom")
    assert abs(found[0] - other[0]) > 1e-3


def jobs(rows):
    return collections.Counter(tuple(row[name] for name in study.KEY) for row in rows)


def finished(recorded):
    """The games of the report: the script goes game by game."""
    names = {row["game"] for row in recorded["summary"]}
    found = {name: game for name, game in study.GAMES.items() if name in names}
    assert list(found) == list(study.GAMES)[: len(found)]
    return found


def test_every_run_of_the_choice_is_there_once(recorded):
    rows = recorded["choice_rows"]
    for name, game in study.GAMES.items():
        wanted = {job.key for job in study.coarse(name, game)}
        here = jobs(row for row in rows if row["game"] == name)
        if name in finished(recorded):
            wanted |= {job.key for job in study.fine(name, game, rows)}
            assert here == dict.fromkeys(wanted, 1)
        elif len(here) < len(wanted):  # begun
            assert set(here) < wanted
    assert {row["game"] for row in rows} <= set(study.GAMES)


def test_every_learner_has_as_many_runs_of_the_choice(recorded):
    for name, game in finished(recorded).items():
        again = set(game.grid_seeds) & set(game.choice_seeds)
        count = len(game.grid) * len(game.grid_seeds) + 9 * len(game.choice_seeds) - len(again)
        mine = [row for row in recorded["choice_rows"] if row["game"] == name]
        found = {study.Learner(*key): len(here) for key, here in table.groups(mine, study.KEY[1:3]).items()}
        assert found == dict.fromkeys(game.learners, count)


def test_every_run_of_the_report_is_there_once(recorded):
    games = finished(recorded)
    chosen = [row for row in recorded["choices"] if row["game"] in games]
    assert chosen == study.choices(recorded["choice_rows"], games)
    wanted = [job.key for job in study.to_report(chosen, games)]
    runs = [len(game.learners) * 20 for game in games.values()]
    assert len(set(wanted)) == len(wanted) == sum(runs)
    found = jobs(row for row in recorded["report_rows"] if row["game"] in games)
    assert found == dict.fromkeys(wanted, 1)


def test_no_reported_seed_took_part_in_a_choice(recorded):
    chosen, reported = ({row["seed"] for row in recorded[f"{part}_rows"]} for part in ("choice", "report"))
    assert chosen == {0, 1, 2, 3}
    assert reported == set(range(100, 120))


def test_what_was_left_out_is_of_other_settings_or_the_same_run_again(recorded):
    left = table.read(RECORDED / "left_out_rows.csv")
    assert set(jobs(left).values()) == {1}
    kept = {tuple(row[name] for name in study.KEY): row for row in recorded["report_rows"]}
    again = [row for row in left if next(iter(jobs([row]))) in kept]
    # The first choice in Goofspiel was the second one too there.
    assert {(row["game"], row["exploration"]) for row in again} == {("goofspiel", 0.01)}
    for row in again:
        same = kept[next(iter(jobs([row])))]
        assert [row[name] for name in study.JUDGED] == [same[name] for name in study.JUDGED]
    assert not set(jobs(left)) & set(jobs(recorded["choice_rows"]))


def test_the_middle_and_the_ends_are_all_learners():
    for game in study.GAMES.values():
        assert {*game.middle, *study.ENDS} == set(game.learners)
        assert not {*game.middle} & {*study.ENDS}
        assert {each.exploration for each in game.learners} >= {"", 0, 0.01, 0.1, 1}


def choice_rows(values, seeds=(0, 1)):
    """Rows of SPG in Leduc poker, with so much NashConv of the average policy at each setting."""
    found = []
    for setting, seed in itertools.product(values, seeds):
        value = values[setting] if not isinstance(values[setting], tuple) else values[setting][seed]
        row = (*study.Job("leduc", study.SPG, setting, seed).key, 0.0, value, 1.0)
        found.append(dict(zip(study.COLUMNS, row, strict=True)))
    return found


def test_a_choice_is_the_best_around_the_best_of_the_grid():
    game = dataclasses.replace(study.GAMES["leduc"], learners=(study.SPG,))
    values = dict.fromkeys(game.grid, 1.0)
    # The second seed takes no part in the choice from the grid.
    assert game.grid_seeds == (0,)
    values |= {study.Setting(2.0, 0.016): (0.5, 2.0), study.Setting(8.0, 0.016): (0.6, 0.0)}
    rows = choice_rows(values)
    left = {job.setting for job in study.fine("leduc", game, rows)}
    assert left == set(itertools.product((1.0, 2.0, 4.0), (0.008, 0.016, 0.032)))
    more = dict.fromkeys(left - set(values), 0.9)
    # What diverged on one seed is never chosen.
    more |= {study.Setting(4.0, 0.008): (0.1, ""), study.Setting(1.0, 0.032): (0.9, 0.3)}
    (row,) = study.choices([*rows, *choice_rows(more)], {"leduc": game})
    assert (row["step_size"], row["magnet_strength"], row["mean"]) == (1.0, 0.032, 0.6)
    assert study.at_edges([row]) == []
    assert study.at_edges([row | {"grid_step_size": 32.0}]) == ["Leduc poker, SPG"]


def test_settings_around_no_magnet_are_smaller_than_the_least():
    assert {setting.magnet_strength for setting in study.around(study.Setting(2.0, 0.0))} == {0, 0.001, 0.002}


def test_tables_are_those_of_the_rows(recorded):
    games = finished(recorded)
    rows = [row for row in recorded["report_rows"] if row["game"] in games]
    assert recorded["summary"] == study.summaries(rows)
    assert recorded["differences"] == study.differences(rows, games)
    assert len(games) >= 2


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(-0.2, -0.1, "middle better"), (-0.1, 0.1, study.SAME), (0.1, 0.2, "end better")],
)
def test_a_verdict_is_by_the_interval(low, high, word):
    row = {"exploration": 0.1, "value": "nash_conv", "end": "SPG"}
    row |= {"difference_low": low, "difference_high": high}
    others = [
        row | {"exploration": 0.3, "end": "η = 0"},
        row | {"value": "nash_conv_average", "end": "η = 1"},
    ]
    assert study.verdict([row, *others], 0.1, "nash_conv") == {"SPG": word}


@pytest.mark.thorough
def test_the_study_runs_and_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    game = study.GAMES["goofspiel"]
    config = dataclasses.replace(game.config, game="kuhn_poker", episodes=256, batch_size=64, eval_every=256)
    tiny = {"config": config, "learners": (*study.ENDS, TENTH), "report_seeds": (100, 101)}
    tiny |= {"step_sizes": (0.5,), "magnets": (0.0, 0.004)}
    games = {"goofspiel": dataclasses.replace(game, **tiny)}
    study.study(tmp_path, games, stage="choose")
    assert not (tmp_path / "report_rows.csv").exists()
    counts = [len(table.read(tmp_path / "choice_rows.csv"))]
    study.study(tmp_path, games)
    lines = capsys.readouterr().out.splitlines()
    counts += [len(table.read(tmp_path / f"{name}_rows.csv")) for name in ("choice", "report")]
    assert counts[0] == counts[1]
    assert counts[2] == 4 * 2
    assert len(lines) == counts[1] + counts[2]
    monkeypatch.setattr(study, "runner", None)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    study.study(tmp_path, games)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    written = {path.name for path in RECORDED.iterdir() if path.suffix in (".csv", ".png")}
    assert set(before) == written - {"left_out_rows.csv"}


def test_a_run_that_diverged_has_no_figures(tmp_path, capsys):
    job = study.Job("leduc", NEURD, study.Setting(0.5, 0.0), 0)
    (row,) = study.done(tmp_path / "rows.csv", [job], lambda: lambda learner, setting, seed: None)
    assert row["nash_conv"] == row["nash_conv_average"] == ""
    assert table.read(tmp_path / "rows.csv") == [row]
    assert capsys.readouterr().out.startswith("rows.csv: 1 of 1, leduc neurd_cix 0 ")


def blocks(recorded):
    """The parts of the README that the script writes."""
    return [
        study.results(recorded["summary"]),
        study.held(recorded["differences"], study.GAMES),
        study.verdicts(recorded["choices"], recorded["differences"]),
        study.grids(study.GAMES),
    ]


def claims(recorded):
    """All other figures of the README, with the words that say what they are of."""
    left = table.read(RECORDED / "left_out_rows.csv")
    unfinished = [game.words for name, game in study.GAMES.items() if name not in finished(recorded)]
    every = [*recorded["choice_rows"], *recorded["report_rows"], *left]
    minutes = sum(row["seconds"] for row in every) / 60
    first = [row for row in left if row["game"] == "goofspiel" and row["seed"] >= 100]
    first = {key: here for (key,), here in table.groups(first, ["exploration"]).items()}
    means = {
        key: study.interval(row, "mean", ".3f")
        for key in ("", 0, 0.01, 0.1)
        for row in table.summarise(first[key], by=[], value="nash_conv_average")
        if row["runs"] == 20
    }
    names = ("difference", "difference_low", "difference_high")
    apart = dict(zip(names, table.difference(first[0.01], first[0], "nash_conv_average"), strict=True))
    assert apart["difference_low"] < 0 < apart["difference_high"], "no difference, as is said"
    edges = study.at_edges([row for row in recorded["choices"] if row["game"] in finished(recorded)])
    return [
        f"**At an edge** of its grid is the best of: {'; '.join(edges)}.",
        f"All {len(every):,} runs took {minutes:.0f} minutes of one core.",
        "step size and magnet were chosen at η = 0.02",
        f"SPG {means['']}, η = 0 {means[0]}, 0.01 {means[0.01]} and 0.1 {means[0.1]} (average policy, the "
        f"same fresh seeds), 0.01 minus 0 {study.interval(apart, 'difference', '+.3f')}.",
        "the middle is 0.01 alone",
        "is better than that of 0.01 (settings",
        *[f"**Not finished**: {', '.join(unfinished)}." for _ in unfinished[:1]],
        "NashConv of 20 runs each, mean and 95% bootstrap interval",
        "Leduc poker has also 0.03 and 0.3.",
        "--step_size_decay=0.5",
        "nice -n 10",
    ]


def test_tables_and_verdicts_of_the_readme_are_those_of_the_rows(recorded, readme):
    for block in blocks(recorded):
        assert block in readme


def test_every_other_number_of_the_readme_has_its_claim(recorded, readme):
    prose = readme
    for block in blocks(recorded):
        prose = prose.replace(block, "")
    prose = " ".join(prose.split())
    for claim in claims(recorded):
        assert claim in prose
        prose = prose.replace(claim, " ")
    assert re.findall(r"\d+\.\d+|\d{2,}", prose) == []
