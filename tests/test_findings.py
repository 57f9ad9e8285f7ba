"""The tables and intervals of the documents are those of the recorded results."""

import os
import re
import shutil
import subprocess
import sys

import doc_tables
import pytest

from pohp_neurd.experiment import table


@pytest.mark.parametrize(
    ("document", "build"),
    [
        ("README.md", doc_tables.paper),
        ("docs/findings.md", doc_tables.self_play),
        ("docs/findings.md", doc_tables.swapping_catch),
    ],
)
def test_tables_equal_the_recorded_results(document, build):
    assert build() in (doc_tables.ROOT / document).read_text(encoding="utf-8")


@pytest.mark.parametrize("phrase", doc_tables.phrases())
def test_what_the_readme_says_of_what_was_found(phrase):
    text = (doc_tables.ROOT / "README.md").read_text(encoding="utf-8")
    assert phrase in " ".join(text.split())


@pytest.mark.parametrize("document", ["README.md", "docs/findings.md"])
def test_every_interval_is_recorded(document):
    """Whatever is written `mean [low, high]` is a row of a summary in results/, to the digits shown."""
    number = r"[+−]?\d[\d,]*(?:\.\d+)?"
    text = (doc_tables.ROOT / document).read_text(encoding="utf-8")
    shown = re.findall(rf"({number}) \[({number}), ({number})\]", text)
    assert len(shown) > 10
    recorded = _recorded()
    unknown = []
    for figures in shown:
        plain = tuple(part.lstrip("+").replace("−", "-").replace(",", "") for part in figures)
        places = [len(part.partition(".")[2]) for part in plain]
        rounded = (
            tuple(f"{value:.{digits}f}" for value, digits in zip(each, places, strict=True))
            for each in recorded
        )
        if plain not in set(rounded):
            unknown.append(figures)
    assert unknown == []


def _recorded():
    """(mean, low, high) of all means and differences in the summaries, and of balls missed."""
    found = set()
    for path in doc_tables.RESULTS.rglob("*.csv"):
        with open(path, encoding="utf-8") as file:
            head = file.readline()
        for name in ("mean", "difference"):
            if f",{name}_low" not in head:
                continue
            for row in table.read(path):
                if row[f"{name}_low"] != "":
                    each = tuple(row[name + end] for end in ("", "_low", "_high"))
                    found.add(each)
                    # A ball falls for nine steps.
                    found.add(tuple(9 * value for value in each))
    return found


@pytest.mark.thorough
def test_summaries_are_made_again_by_their_commands(tmp_path):
    shutil.copytree(doc_tables.RESULTS, tmp_path / "results")
    os.symlink(doc_tables.ROOT / "run_scripts", tmp_path / "run_scripts")
    script = (tmp_path / "results" / "summaries.sh").read_text().replace("python ", f"{sys.executable} ")
    written = [path for path in (tmp_path / "results").rglob("*.csv") if _is_summary(path)]
    for path in written:
        path.unlink()
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    assert len(written) > 10
    for path in written:
        recorded = doc_tables.RESULTS / path.relative_to(tmp_path / "results")
        assert path.read_bytes() == recorded.read_bytes(), path.name


def _is_summary(path):
    """What summaries.sh writes; the others are written by the script that ran the runs."""
    return bool(re.match(r"against_|swapping_catch_(against|total|losses)|exploration_nash_conv", path.name))
