"""Rows of CSV files: read, narrowed, grouped."""

import re

import pytest

from pohp_neurd.results import table

ROWS = [
    {"learner": "spg", "exploration": 10, "seed": 0},
    {"learner": "neurd_cix", "exploration": 9, "seed": 0},
    {"learner": "neurd_cix", "exploration": 10, "seed": 0},
    {"learner": "spg", "exploration": 9, "seed": 0},
]


def test_cells_are_numbers_where_they_can_be(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("id,learner,rate,seed,empty\n12e345678901,spg,3e-05,7,\n")
    (row,) = table.read(file)
    assert row == {"id": "12e345678901", "learner": "spg", "rate": 3e-05, "seed": 7, "empty": ""}
    assert isinstance(row["seed"], int)
    assert table.value("9" * 400) == table.value("1e400") == float("inf")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a,b\n", "has no rows"),
        (b"", "has no rows"),
        (b"a,b\n1,2\n1\n", "line 3 of .* has not as many cells as its header"),
        (b"a,b\n1,2,3\n", "line 2 of .* has not as many cells as its header"),
        (b"\x89PNG\r\n\x1a\n", r"x\.csv must be text in UTF-8, but is not\."),
        (b"a\n" + b"1" * 200_000, r"x\.csv is not valid CSV: field larger than field limit"),
        (b"a,b,a\n1,2,3\n", r"x\.csv must have one column 'a', but has 2\."),
    ],
)
def test_a_file_that_is_no_table_gets_a_sentence(tmp_path, content, sentence):
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        table.read(tmp_path / "x.csv")


def test_a_file_that_is_not_there_gets_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"there is no file .*x\.csv\."):
        table.read(tmp_path / "x.csv")


def test_a_folder_is_no_table(tmp_path):
    with pytest.raises(ValueError, match=f"^{tmp_path} must be a file, but is a folder\\.$"):
        table.read(tmp_path)


def test_the_mark_of_spreadsheets_is_no_part_of_the_first_column(tmp_path):
    (tmp_path / "x.csv").write_text("learner,seed\nspg,1\n", "utf-8-sig")
    assert table.read(tmp_path / "x.csv") == [{"learner": "spg", "seed": 1}]


def test_numbers_are_in_their_order_and_names_in_that_of_appearance():
    # As text, 10 would come before 9.
    assert list(table.groups(ROWS, ["learner", "exploration"])) == [
        ("spg", 9),
        ("spg", 10),
        ("neurd_cix", 9),
        ("neurd_cix", 10),
    ]
    assert list(table.groups(ROWS, [])) == [()]


def test_conditions_leave_the_parameters_of_games_whole():
    game = "goofspiel(num_cards=4,imp_info=True)"
    assert table.conditions(f"game={game},seed=1") == {"game": game, "seed": 1}
    for wrong in ("seed", "=1", "seed=1,", ""):
        with pytest.raises(ValueError, match="a condition is written column=value, but one is"):
            table.conditions(wrong)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("repeated_game(num_repetitions=2,stage_game=matrix_pd())", None),
        ("add_noise(epsilon=1.,seed=1,game=kuhn_poker())", None),
        (
            "a(b=c(d=1,e=2),f=3),kuhn_poker,g(h=i(),j=1)",
            ["a(b=c(d=1,e=2),f=3)", "kuhn_poker", "g(h=i(),j=1)"],
        ),
        ("kuhn_poker, leduc_poker ", ["kuhn_poker", "leduc_poker"]),
        ("a,b(c,d", ["a", "b(c,d"]),
        ("a,b),c", ["a", "b),c"]),
        ("a,,b", ["a", "", "b"]),
        ("", None),
    ],
)
def test_commas_in_brackets_do_not_part_items(text, found):
    assert table.items(text) == ([text] if found is None else found)


def test_conditions_may_have_spaces_but_not_two_values():
    assert table.conditions("learner = spg, seed=1") == {"learner": "spg", "seed": 1}
    with pytest.raises(ValueError, match="a row has one seed, but the conditions ask for two: seed=1,seed=2"):
        table.conditions("seed=1,seed=2")


def test_select_compares_numbers_as_numbers():
    assert table.select(ROWS, table.conditions("exploration=10.0,learner=spg")) == [ROWS[0]]
    assert table.select(ROWS, {}) == ROWS


def test_what_is_not_there_is_told_with_what_is():
    with pytest.raises(ValueError, match="no row has exploration=3; there exploration is one of: 10, 9"):
        table.select(ROWS, {"exploration": 3})
    with pytest.raises(ValueError, match="no column 'rate'; the columns are learner, exploration, seed"):
        table.select(ROWS, {"rate": 3})


def test_settings_that_would_be_mixed_are_named():
    table.check_distinct(ROWS, ["learner", "exploration"])
    with pytest.raises(ValueError, match=r"2 rows with exploration=9, .* these rows differ in learner"):
        table.check_distinct(ROWS, ["exploration"])


def test_a_cell_that_is_no_number_is_told_with_its_column_and_row():
    rows = [{**row, "reward": place} for place, row in enumerate(ROWS)]
    table.check_numbers(rows, ["reward", "seed"], ["learner", "exploration"])
    for wrong in ("", "many", float("nan"), float("inf")):
        rows[2]["reward"] = wrong
        with pytest.raises(
            ValueError, match=r"^reward must be a finite number in every row, but is"
        ) as caught:
            table.check_numbers(rows, ["seed", "reward"], ["learner", "exploration", "nowhere"])
        told = f"but is {wrong!r} in the row with learner=neurd_cix, exploration=10."
        assert str(caught.value).endswith(told)
    with pytest.raises(ValueError, match="there is no column 'rate'"):
        table.check_numbers(rows, ["rate"], [])


def test_without_seeds_there_is_one_run():
    seedless = [{"exploration": 0.1, "learning_rate": rate, "total_reward": -rate} for rate in (0.5, 0.7)]
    sentence = (
        "there are 2 rows with exploration=0.1, but one is needed, for no column 'seed' tells runs apart: "
        "choose among the settings by conditions; these rows differ in learning_rate, total_reward."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        table.check_runs(seedless, ["exploration"])
    with pytest.raises(ValueError, match=r"^there are 2 rows, but one is needed, for no column 'seed'"):
        table.check_runs(seedless, [])
    table.check_runs(seedless, ["exploration", "learning_rate"])
    seeds = [{**row, "seed": seed} for seed, row in enumerate(seedless)]
    table.check_runs(seeds, ["exploration"])
    # A row without a seed may be of any run.
    with pytest.raises(ValueError, match=r"there are 3 rows with exploration=0.1, but one is needed, for no"):
        table.check_runs([*seeds, seedless[0]], ["exploration"])


def test_settings_are_not_mixed_for_having_been_looked_at_at_other_times():
    rows = [
        {"id": f"{size}", "size": size, "seed": 0, "episodes": size * n} for size in (3, 5) for n in (1, 2)
    ]
    table.check_runs(rows, ["size"], ["episodes"])
    with pytest.raises(
        ValueError, match=r"2 rows with seed=0, but they must be of one setting.* in id, size"
    ):
        table.check_runs(rows, [], ["episodes"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("steps,reward\n1,-1.0\n2", "ends in the middle of a line"),
        ("steps,reward\n1,-1.0\n2\n", "line 3 of .* has not as many cells as its header"),
        ("steps,reward\n1,soon\n", "reward must be a number in line 2 of .*, but is 'soon'"),
        ("steps,reward\n,-1.0\n", "steps must be a number in line 2 of .*, but is ''"),
        ("reward,steps\n-1.0,1\n", "must have the columns steps, reward, but has reward, steps"),
    ],
)
def test_figures_that_no_run_has_written(text, sentence, tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        table.figures(path, ["steps", "reward"], empty=["reward"])


def test_figures_come_back_as_they_were_written(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("setting,steps,reward\n1,1,-1.0\nspg,2,\n")
    assert table.figures(path, ["setting", "steps", "reward"], empty=["reward"], text=["setting"]) == [
        {"setting": "1", "steps": 1, "reward": -1.0},
        {"setting": "spg", "steps": 2, "reward": ""},
    ]
