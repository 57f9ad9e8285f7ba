"""The tables and intervals of the documents are those of the recorded results."""

import itertools
import os
import re
import shutil
import subprocess
import sys

import claims
import doc_tables
import pytest


@pytest.mark.parametrize(
    ("document", "build"),
    [
        ("README.md", doc_tables.paper_means),
        ("studies/paper/README.md", doc_tables.paper),
        ("studies/readings/README.md", doc_tables.rollouts),
        ("studies/self_play/exploration.md", doc_tables.self_play),
        ("studies/swapping_catch/README.md", doc_tables.swapping_catch),
    ],
)
def test_tables_equal_the_recorded_results(document, build):
    assert build() in (doc_tables.ROOT / document).read_text(encoding="utf-8")


_INTERVAL = re.compile(r"[+−]?\d[\d,.]*\d? \[[^\]]*\d\]")
_DOCUMENTS = [
    ("README.md", claims.readme, [doc_tables.paper_means]),
    ("docs/findings.md", claims.findings, []),
    ("studies/paper/README.md", claims.paper, [doc_tables.paper]),
    ("studies/self_play/exploration.md", claims.self_play, [doc_tables.self_play]),
    ("studies/swapping_catch/README.md", claims.swapping_catch, [doc_tables.swapping_catch]),
    ("studies/readings/README.md", claims.readings, [doc_tables.rollouts]),
]


def _prose(document, tables):
    text = (doc_tables.ROOT / document).read_text(encoding="utf-8")
    for build in tables:
        text = text.replace(build(), "")
    return " ".join(text.split())


def _without(claims_, prose):
    """What is left of `prose` without its claims; the first claim that is not in it."""
    for claim in claims_:
        if claim not in prose:
            return prose, claim
        prose = prose.replace(claim, " … ")
    return prose, None


@pytest.mark.parametrize(("document", "made", "tables"), _DOCUMENTS)
def test_every_figure_belongs_to_its_claim(document, made, tables):
    """Claims are made from their rows; what is written `mean [low, high]` belongs to one of them."""
    rest, missing = _without(made(), _prose(document, tables))
    assert missing is None
    assert _INTERVAL.findall(rest) == []


def test_two_swapped_intervals_are_noticed():
    """Any two of the intervals, each of which stands in a row of its own."""
    prose, made = "", []
    for document, claims_, tables in _DOCUMENTS[1:]:
        prose, made = prose + _prose(document, tables), [*made, *claims_()]
    intervals = list(dict.fromkeys(_INTERVAL.findall(prose)))
    assert len(intervals) > 20
    for one, other in itertools.pairwise(intervals):
        swapped = prose.replace(one, "\0").replace(other, one).replace("\0", other)
        assert _without(made, swapped)[1] is not None, (one, other)


@pytest.mark.thorough
def test_summaries_are_made_again_by_their_commands(tmp_path):
    shutil.copytree(doc_tables.STUDIES, tmp_path / "studies")
    os.symlink(doc_tables.ROOT / "run_scripts", tmp_path / "run_scripts")
    script = (tmp_path / "studies" / "summaries.sh").read_text().replace("python ", f"{sys.executable} ")
    written = [path for path in (tmp_path / "studies").rglob("*.csv") if _is_summary(path)]
    for path in written:
        path.unlink()
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    assert len(written) > 10
    for path in written:
        recorded = doc_tables.STUDIES / path.relative_to(tmp_path / "studies")
        assert path.read_bytes() == recorded.read_bytes(), path.name


def _is_summary(path):
    """What summaries.sh writes; the others are written by the script that ran the runs."""
    return bool(
        re.match(
            r"against_|(total_reward|losses_per_step_at_end)\.csv|(exploration|exploration_0|own_settings)_nash_conv",
            path.name,
        )
    )
