"""The static site: every page is there, every link leads somewhere, every public name has its place."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

import pohp_neurd

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "docs" / "build_site.py"


@pytest.fixture(scope="module")
def builder():
    spec = importlib.util.spec_from_file_location("build_site", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_guides_and_their_links(builder, tmp_path):
    builder.build_guides(tmp_path)
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "pohp_neurd.html").write_text("")
    assert builder.broken_links(tmp_path) == []
    guides = {path.stem for path in SCRIPT.parent.glob("*.md")} - {"README"}
    assert {path.stem for path in (tmp_path / "docs").glob("*.html")} == guides | {"tutorial"}
    assert 'href="docs/tutorial.html"' in (tmp_path / "index.html").read_text("utf-8")


def test_broken_links_are_found(builder, tmp_path):
    (tmp_path / "there.html").write_text('<p id="place">')
    links = ("there.html", "there.html#place", "there.html#other", "gone.html", "https://example.org/gone")
    (tmp_path / "page.html").write_text("".join(f'<a href="{link}">' for link in links))
    assert builder.broken_links(tmp_path) == [
        f"page.html leads to {link}, which is not there." for link in links[2:4]
    ]


@pytest.mark.slow
def test_the_reference_has_every_public_name(tmp_path):
    """In a process of its own: warnings are errors there, and modules are as users import them."""
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), str(site)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for name in pohp_neurd.__all__:
        module = getattr(pohp_neurd, name)
        text = (site / "api" / "pohp_neurd" / f"{name}.html").read_text("utf-8")
        for public in getattr(module, "__all__", ()):
            page = site / "api" / "pohp_neurd" / name / f"{public}.html"
            assert f'id="{public}"' in text or page.exists(), (name, public)
