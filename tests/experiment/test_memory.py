"""What fits into the machine, and what does not."""

import os

import pytest

from pohp_neurd.results import records


def test_the_sentence_says_what_was_asked_for_and_what_there_is(monkeypatch):
    monkeypatch.setattr(records, "total_memory", lambda: 2.0**31)
    records.check_memory(2.0**31, of="batch_size=8")
    with pytest.raises(
        ValueError, match=r"^batch_size=9 would take at least 3\.0 GiB of memory, but this .* 2\.0 GiB\.$"
    ):
        records.check_memory(3 * 2.0**30, of="batch_size=9")


def test_a_container_may_have_less_than_its_machine(monkeypatch, tmp_path):
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(records, "_MEMORY_LIMIT", limit)
    assert records.total_memory() == machine
    for text, expected in (("max\n", machine), ("1048576\n", 2**20), (f"{2 * machine}\n", machine)):
        limit.write_text(text)
        assert records.total_memory() == expected


def test_weights_between_layers():
    assert records.memory_of_layers((3, 5, 7), copies=2) == 4 * 2 * (15 + 35)
