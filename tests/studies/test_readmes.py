"""What READMEs and documents say of studies: files that are there, and nothing that would be installed."""

import pathlib
import re
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUDIES = sorted(path for path in (ROOT / "studies").iterdir() if path.is_dir() and path.name[0] not in "._")
DOCUMENTS = [ROOT / "studies" / "README.md", *(study / "README.md" for study in STUDIES)]


@pytest.mark.parametrize("document", [*DOCUMENTS, *sorted((ROOT / "docs").glob("*.md"))], ids=str)
def test_links_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(((?!http)[^)#]+)[^)]*\)", text):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.parent.name)
def test_commands_name_scripts_and_files_that_are_there(document):
    text = document.read_text(encoding="utf-8")
    for script in re.findall(r"python ((?:\.\./)*\S+\.py)", text):
        base = document.parent if script.startswith("..") else ROOT
        assert (base / script).exists(), script
    for file in re.findall(r"--(?:grid|input)=(studies/[\w./]+\.\w+)", text):
        assert (ROOT / file).exists(), file


def test_every_study_is_in_the_list():
    listed = re.findall(r"^\| \[(\w+)\]", (ROOT / "studies" / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == [study.name for study in STUDIES]


def test_studies_are_not_installed():
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    assert all(package.split(".")[0] == "pohp_neurd" for package in packages)
    assert not any("studies" in package for package in packages)
