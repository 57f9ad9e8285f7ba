"""Files that are whole or absent, JSON and CSV."""

import errno
import os

import pytest

from pohp_neurd import files
from pohp_neurd.results import records


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


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "x.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ValueError, match=r"x\.json must be text in UTF-8, but is not\.$"):
        records.read_json(tmp_path / "x.json")
    with pytest.raises(ValueError, match=f"^{tmp_path} must be a file, but is a folder\\.$"):
        records.read_json(tmp_path)
    with pytest.raises(ValueError, match=r"x\.json/y cannot be read: Not a directory\.$"):
        records.read_json(tmp_path / "x.json" / "y")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        records.read_json(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("place", "kind", "number", "reason"),
    [
        ("nodir/x.csv", FileNotFoundError, errno.ENOENT, "there is no folder {}/nodir"),
        ("file/x.csv", NotADirectoryError, errno.ENOTDIR, "Not a directory"),
        ("folder", IsADirectoryError, errno.EISDIR, "Is a directory"),
    ],
)
def test_what_cannot_be_written_is_named_as_it_was_asked_for(tmp_path, place, kind, number, reason):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    path, reason = tmp_path / place, reason.format(tmp_path)
    with pytest.raises(kind) as caught:
        records.write_text(path, "a")
    error = caught.value
    assert (error.errno, error.strerror, error.filename) == (number, reason, str(path))
    assert str(error).endswith(f"{reason}: '{path}'")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}


def write_then_raise(path, error):
    with files.atomic(path) as file:
        file.write("half")
        raise error


def test_a_full_disk_keeps_its_number(tmp_path):
    """As a write raises it: without a name. Errors of other files go by as they are."""
    path = tmp_path / "x.csv"
    with pytest.raises(OSError, match=f"No space left on device: '{path}'$") as caught:
        write_then_raise(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert caught.value.errno == errno.ENOSPC
    other = PermissionError(errno.EACCES, "no", "elsewhere")
    with pytest.raises(PermissionError) as caught:
        write_then_raise(path, other)
    assert caught.value is other
    assert list(tmp_path.iterdir()) == []
