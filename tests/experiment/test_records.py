"""Files that are whole or absent, JSON and CSV."""

import pytest

from pohp_neurd import files
from pohp_neurd.experiment import records


def test_json_comes_back_in_order(tmp_path):
    content = {"b": 1, "a": [1.5, None, "é"], "c": {"d": True}}
    records.write_json(tmp_path / "x.json", content)
    assert records.read_json(tmp_path / "x.json") == content
    assert list(records.read_json(tmp_path / "x.json")) == ["b", "a", "c"]
    assert (tmp_path / "x.json").read_text("utf-8").endswith("}\n")


def test_csv_comes_back_as_text(tmp_path):
    rows = [{"a": 1, "b": 'x,"y"'}, {"b": "", "a": 0.1}]
    records.write_csv(tmp_path / "x.csv", rows, ["a", "b"])
    assert records.read_csv(tmp_path / "x.csv") == [{"a": "1", "b": 'x,"y"'}, {"a": "0.1", "b": ""}]
    assert (tmp_path / "x.csv").read_bytes().startswith(b"a,b\n")


@pytest.mark.parametrize("row", [{"a": 1}, {"a": 1, "b": 2, "c": 3}])
def test_csv_rows_must_have_all_columns_and_no_other(tmp_path, row):
    with pytest.raises(ValueError, match=r"^a row must have the columns \['a', 'b'\], but has \['a'"):
        records.write_csv(tmp_path / "x.csv", [row], ["a", "b"])
    assert list(tmp_path.iterdir()) == []


def interrupted(path):
    with files.atomic(path) as file:
        file.write("half")
        raise KeyboardInterrupt


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "x.json"
    records.write_json(path, {"old": 1})
    with pytest.raises(TypeError):
        records.write_json(path, {"fine": 1, "not": object()})
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert records.read_json(path) == {"old": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_nothing_stands_at_the_path_before_it_is_whole(tmp_path):
    path = tmp_path / "x.txt"
    with files.atomic(path) as file:
        file.write("a")
        assert not path.exists()
    assert path.read_text("utf-8") == "a"


def test_damaged_json_names_the_file(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{", "utf-8")
    with pytest.raises(ValueError, match=r"x\.json is not valid JSON"):
        records.read_json(path)
