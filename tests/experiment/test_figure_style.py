"""One look for all figures."""

import matplotlib
import pytest
from matplotlib import lines

from pohp_neurd.results import figures


def test_a_picture_is_written_whole(tmp_path):
    path = tmp_path / "x.png"
    with figures.figure(path, width=3.0, height=2.0) as figure:
        figure.add_subplot().plot([0, 1], [0, 1], label="line")
        assert not path.exists()
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["x.png"]


def test_the_suffix_is_the_format(tmp_path):
    with figures.figure(tmp_path / "x.svg") as figure:
        figure.add_subplot()
    assert "<svg" in (tmp_path / "x.svg").read_text("utf-8")


def test_a_failure_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), figures.figure(tmp_path / "x.png"):
        1 / 0  # noqa: B018
    with pytest.raises(ValueError, match="not supported"), figures.figure(tmp_path / "x.nonsense"):
        pass
    assert list(tmp_path.iterdir()) == []


class Unprintable(lines.Line2D):
    """Fails when it is written, not when the figure's parts are laid out before."""

    drawn = 0

    def draw(self, renderer):
        self.drawn += 1
        if self.drawn > 1:
            raise ZeroDivisionError


def draw_unprintable(path):
    with figures.figure(path) as figure:
        figure.add_subplot().add_line(Unprintable([0, 1], [0, 1]))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_that_fails_half_way_leaves_neither_a_part_nor_a_folder(tmp_path, suffix):
    for path in (tmp_path / f"x.{suffix}", tmp_path / "folder" / f"x.{suffix}"):
        with pytest.raises(ZeroDivisionError):
            draw_unprintable(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "reason"),
    [("folder", "Is a directory"), ("file/x.png", "Not a directory"), ("file/y/x.png", "Not a directory")],
)
def test_a_place_that_is_taken_is_named(tmp_path, place, reason):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    path = tmp_path / place
    with pytest.raises(OSError, match=f"{reason}.*: '{path}'"), figures.figure(path):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}


def test_settings_stay_inside(tmp_path):
    before = dict(matplotlib.rcParams)
    with figures.figure(tmp_path / "x.png") as figure:
        axes = figure.add_subplot()
        lines = [axes.plot([i])[0].get_color() for i in range(len(figures.COLOURS))]
    assert lines == list(figures.COLOURS)
    assert dict(matplotlib.rcParams) == before
