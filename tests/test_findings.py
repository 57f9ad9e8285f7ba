"""The tables of the documents are those of the recorded results."""

import doc_tables
import pytest


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
