"""Grids: their settings, ids that last, and one sentence for what cannot be swept."""

import json
import pathlib

import pytest

from pohp_neurd.experiment import grid
from pohp_neurd.results import records

STUDIES = pathlib.Path(__file__).resolve().parents[2] / "studies"


def ids(*texts, script="train_single_agent"):
    return [setting.id for setting in grid.settings([grid.parse(script, texts)])]


def test_every_value_meets_every_other():
    found = grid.settings([grid.parse("train_single_agent", ["exploration=0,0.5", "seed=3:6"])])
    assert [dict(setting.flags) for setting in found] == [
        {"exploration": x, "seed": s} for x in (0.0, 0.5) for s in (3, 4, 5)
    ]
    assert len({setting.id for setting in found}) == 6


def test_an_id_is_the_same_for_ever():
    """Written down: a change of it would run finished settings again."""
    assert ids("exploration=0.1", "seed=1", "common_mode=paper") == ["dc117b29da1d"]
    assert ids("exploration=0.1", "seed=1") == ids("exploration=0.1", "seed=1", "common_mode=dropped")


def test_an_id_does_not_depend_on_spelling_or_order():
    same = [
        ids("exploration=0.1", "seed=1"),
        ids("seed=1", "exploration=0.10"),
        ids("exploration=1e-1", "seed=01"),
    ]
    assert same[0] == same[1] == same[2]
    others = [ids("exploration=0.2", "seed=1"), ids("seed=1"), ids("seed=1", script="train_game")]
    assert len({*map(tuple, others), tuple(same[0])}) == 4


def test_commas_in_a_game_are_its_own():
    found = grid.settings(
        [grid.parse("train_game", ["game=goofspiel(num_cards=3,players=2),kuhn_poker", "seed=0"])]
    )
    assert [s.flags["game"] for s in found] == ["goofspiel(num_cards=3,players=2)", "kuhn_poker"]


def test_a_file_may_hold_several_grids(tmp_path):
    path = tmp_path / "grid.json"
    content = [
        {"script": "train_single_agent", "sweep": {"learner": "spg", "seed": [0, 1]}},
        {"script": "train_single_agent", "sweep": {"exploration": [0, 0.5], "seed": "0:2"}},
        {"script": "train_single_agent", "sweep": {"exploration": [0.5], "seed": [1]}},
    ]
    path.write_text(json.dumps(content))
    found = grid.settings(grid.read(path))
    assert len(found) == 6  # the last is one of the second
    assert found[0].flags == {"learner": "spg", "seed": 0}


def test_kinds_of_values():
    flags = {
        "hidden_layers": "8x4",
        "shared": "false",
        "exploration": "none",
        "episodes": 10,
        "game": "kuhn_poker",
    }
    values = {name: [value] for name, value in flags.items()}
    (setting,) = grid.settings([grid.Grid("train_game", {"policy": ["neural"], **values})])
    assert setting.flags == {
        "policy": "neural",
        "hidden_layers": (8, 4),
        "shared": False,
        "exploration": None,
        "episodes": 10,
        "game": "kuhn_poker",
    }


@pytest.mark.parametrize(
    ("script", "texts", "sentence"),
    [
        ("train_gam", ["seed=1"], "script must be one of train_game, .* but is 'train_gam'"),
        ("train_game", [], "there is nothing to sweep"),
        ("train_game", ["seed"], r"a sweep is written name=value,value,..., but one is 'seed'"),
        ("train_game", ["seed=1", "seed=2"], "seed is swept twice"),
        ("train_game", ["seed=2:2"], "seed must have at least one value"),
        ("train_game", ["seeds=2"], "train_game has no flag 'seeds': it has .*seed"),
        ("train_game", ["exploration=high"], "exploration must be of the kind float .*but is 'high'"),
        ("train_game", ["exploration=0,2"], r"exploration must lie in \[0, 1\], but is 2"),
        ("train_game", ["seed=none"], "seed must be of the kind int, but is 'none'"),
        ("train_game", ["seed=99999999999999999999"], "seed must be a whole number from 0 to 2147483647"),
        ("train_single_agent", ["seed=3000000000"], "^seed must be a whole number from 0 to 2147483647"),
        ("train_game", ["game=chess_for_fish"], "chess_for_fish"),
        ("train_single_agent", ["environment=pong"], "environment must be one of catch, cart_pole"),
        ("bandit", ["horizon=0"], "horizon must be at least 1"),
        ("bandit", ["learner=ppo"], "learner must be one of"),
        ("bandit", ["seeds=2", "runs=3"], "seeds is swept twice"),
    ],
)
def test_what_cannot_be_swept(script, texts, sentence):
    with pytest.raises(ValueError, match=sentence):
        grid.settings([grid.parse(script, texts)])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not valid JSON"),
        ('{"sweep": {}}', "must hold"),
        ("[1]", "must hold"),
        ('{"script": "bandit", "sweep": [1]}', "the values of each flag"),
        ("[]", "there is nothing to sweep"),
        ('{"script": "bandit", "sweep": {"seed": true}}', "seed must be of the kind int, but is True"),
        ('{"script": "bandit", "sweep": {"seed": null}}', "seed must have a value, but has none"),
        (
            '{"script": "train_game", "sweep": {"hidden_layers": [[64.7, 32]]}}',
            "hidden_layers must be whole numbers with commas",
        ),
        (
            '[{"script": "bandit", "sweep": {"seed": 0}}, {"script": "train_game", "sweep": {"seed": 0}}]',
            "of one",
        ),
    ],
)
def test_bad_files(tmp_path, text, sentence):
    path = tmp_path / "grid.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        grid.settings(grid.read(path))


GRIDS = [
    path
    for path in sorted((pathlib.Path(__file__).resolve().parents[2] / "studies").rglob("*.json"))
    if '"sweep"' in path.read_text()
]


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_recorded_grids_can_still_be_run(path):
    assert grid.settings(grid.read(path))


def test_there_are_recorded_grids():
    assert len(GRIDS) >= 5


def test_whole_numbers_may_be_written_with_a_power_of_ten(tmp_path):
    for script, name in (("train_game", "episodes"), ("bandit", "horizon"), ("train_single_agent", "seed")):
        assert ids(f"{name}=1e6", script=script) == ids(f"{name}=1000000", script=script)
    path = tmp_path / "grid.json"
    path.write_text('{"script": "train_game", "sweep": {"episodes": [2e7, "20000000", 20000000]}}')
    (setting,) = grid.settings(grid.read(path))
    assert setting.flags == {"episodes": 20_000_000}
    assert type(setting.flags["episodes"]) is int


@pytest.mark.parametrize(
    ("grid_file", "table"),
    [
        ("swapping_catch/grid.json", "swapping_catch/results.csv"),
        ("paper/catch_dropped/grid.json", "paper/catch_dropped/results.csv"),
        ("self_play/exploration.json", "self_play/exploration_results.csv"),
    ],
)
def test_recorded_settings_keep_their_ids(grid_file, table):
    """A default that changes, as that of common_mode did, does not make finished settings run again."""
    recorded = {row["id"] for row in records.read_csv(STUDIES / table)}
    assert recorded == {setting.id for setting in grid.settings(grid.read(STUDIES / grid_file))}
