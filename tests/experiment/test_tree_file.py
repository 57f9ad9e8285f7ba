"""Saved trees come back as they were, or not at all."""

import dataclasses

import numpy as np
import pytest

from pohp_neurd import exact, openspiel
from pohp_neurd.experiment import tree_file


def test_a_tree_comes_back_as_it_was(tmp_path):
    tree = openspiel.compile_game("kuhn_poker(players=3)")
    path = tmp_path / "kuhn.npz"
    tree_file.save(path, tree)
    again = tree_file.load(path)
    for field in dataclasses.fields(tree):
        before, after = getattr(tree, field.name), getattr(again, field.name)
        if isinstance(before, np.ndarray):
            assert before.dtype == after.dtype
            np.testing.assert_array_equal(before, after)
        else:
            assert before == after
    assert openspiel.nash_conv(again, exact.uniform(again)) == pytest.approx(2.0625, abs=1e-12)
    # OpenSpiel's own policies can still be read: the game is found by its name.
    assert len(openspiel.to_tabular_policy(again, exact.uniform(again)).states) == 48
    assert [entry.name for entry in tmp_path.iterdir()] == ["kuhn.npz"]


@pytest.mark.parametrize(
    "spoil", [lambda content: content[:-100], lambda content: b"nothing", lambda content: b""]
)
def test_a_damaged_file_is_named(tmp_path, spoil):
    path = tmp_path / "tree.npz"
    tree_file.save(path, openspiel.compile_game("kuhn_poker"))
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(ValueError, match=r"tree\.npz is not a saved tree, or is damaged"):
        tree_file.load(path)


def test_a_pickle_is_not_executed(tmp_path):
    path = tmp_path / "tree.npz"
    np.savez(path, told=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="is not a saved tree"):
        tree_file.load(path)
