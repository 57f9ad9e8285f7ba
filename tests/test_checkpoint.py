"""Checkpoints come back to the bit, and damaged ones are found out."""

import json
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import checkpoint


class Pair(NamedTuple):
    left: object
    right: object


def tree(offset=0.0):
    special = np.array([np.nan, -0.0, np.inf, 1e-45, 1 / 3], np.float32)
    return Pair(
        {"w": jnp.arange(6.0).reshape(2, 3) + offset, "none": None, "special": special},
        [np.float64(np.pi), jnp.int32(7), np.array([True, False]), np.zeros((0, 2), np.uint8)],
    )


def same_bits(left, right):
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def test_a_tree_comes_back_to_the_bit(tmp_path):
    checkpoint.save(tmp_path, 12, tree())
    restored = checkpoint.restore(tmp_path, tree(offset=1.0))
    same_bits(restored.tree, tree())
    assert (restored.step, restored.damaged) == (12, ())


def test_keys_come_back_as_keys(tmp_path):
    keys = jax.random.split(jax.random.key(3), 2)
    checkpoint.save(tmp_path, 0, {"keys": keys})
    restored = checkpoint.restore(tmp_path, {"keys": keys}).tree["keys"]
    np.testing.assert_array_equal(jax.random.uniform(restored[1]), jax.random.uniform(keys[1]))


def test_no_checkpoint_is_none(tmp_path):
    assert checkpoint.restore(tmp_path / "nowhere", tree()) is None
    assert checkpoint.steps(tmp_path) == []


def test_the_newest_are_kept_and_nothing_else_is_left_behind(tmp_path):
    for step in (1, 2, 30, 4):
        checkpoint.save(tmp_path, step, tree(step), keep=2)
    assert checkpoint.steps(tmp_path) == [4, 30]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step_000000004.json",
        "step_000000004.npz",
        "step_000000030.json",
        "step_000000030.npz",
    ]
    same_bits(checkpoint.restore(tmp_path, tree()).tree, tree(30))


def test_saving_a_step_again_replaces_it(tmp_path):
    checkpoint.save(tmp_path, 5, tree(0.0))
    checkpoint.save(tmp_path, 5, tree(2.0))
    same_bits(checkpoint.restore(tmp_path, tree()).tree, tree(2.0))


def truncate(path):
    path.write_bytes(path.read_bytes()[:-20])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("suffix", "damage", "sentence"),
    [
        ("npz", truncate, "step_000000002.npz does not match its checksum."),
        ("npz", flip, "step_000000002.npz does not match its checksum."),
        ("npz", lambda path: path.unlink(), "step_000000002.npz is missing."),
        ("npz", lambda path: path.write_bytes(b""), "step_000000002.npz does not match its checksum."),
        ("json", truncate, "step_000000002.json cannot be read."),
        ("json", lambda path: path.write_text("[]"), "step_000000002.json cannot be read."),
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path, suffix, damage, sentence):
    checkpoint.save(tmp_path, 1, tree(1.0))
    checkpoint.save(tmp_path, 2, tree(2.0))
    damage(tmp_path / f"step_000000002.{suffix}")
    restored = checkpoint.restore(tmp_path, tree())
    assert (restored.step, restored.damaged) == (1, (sentence,))
    same_bits(restored.tree, tree(1.0))


def test_if_all_are_damaged_it_says_so(tmp_path):
    checkpoint.save(tmp_path, 1, tree())
    truncate(tmp_path / "step_000000001.npz")
    with pytest.raises(ValueError, match=r"no checkpoint in .* is whole: step_000000001\.npz does not match"):
        checkpoint.restore(tmp_path, tree())


def test_an_unfinished_checkpoint_does_not_count(tmp_path):
    checkpoint.save(tmp_path, 1, tree(1.0))
    checkpoint.save(tmp_path, 2, tree(2.0))
    (tmp_path / "step_000000002.json").unlink()
    assert checkpoint.restore(tmp_path, tree()).step == 1


@pytest.mark.parametrize(
    ("like", "sentence"),
    [
        ({"w": np.zeros((2, 2))}, r"holds \['w'\] as float64\[3\] where \['w'\] as float64\[2, 2\]"),
        ({"w": np.zeros(3, np.float32)}, r"holds \['w'\] as float64\[3\] where \['w'\] as float32\[3\]"),
        ({"v": np.zeros(3)}, r"holds \['w'\] as float64\[3\] where \['v'\]"),
        ({"w": np.zeros(3), "x": np.zeros(1)}, "holds 1 arrays where 2 were expected"),
    ],
)
def test_another_kind_of_tree_is_refused(tmp_path, like, sentence):
    checkpoint.save(tmp_path, 1, {"w": np.zeros(3)})
    with pytest.raises(ValueError, match=sentence):
        checkpoint.restore(tmp_path, like)


def test_what_numpy_cannot_write_plainly_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\['name'\] is of <U5, which a checkpoint cannot hold"):
        checkpoint.save(tmp_path, 1, {"name": "hello"})
    with pytest.raises(ValueError, match="is of bfloat16, which a checkpoint cannot hold"):
        checkpoint.save(tmp_path, 1, [jnp.zeros(2, jnp.bfloat16)])
    assert list(tmp_path.iterdir()) == []


def test_the_files_are_plain(tmp_path):
    checkpoint.save(tmp_path, 1, {"w": np.arange(3)})
    with np.load(tmp_path / "step_000000001.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["leaf_00000"], [0, 1, 2])
    about = json.loads((tmp_path / "step_000000001.json").read_text())
    assert about["leaves"] == [{"name": "['w']", "shape": [3], "dtype": "int64"}]


@pytest.mark.parametrize(("step", "keep"), [(-1, 2), (1, 0)])
def test_wrong_arguments_are_refused(tmp_path, step, keep):
    with pytest.raises(ValueError, match="must be at least"):
        checkpoint.save(tmp_path, step, tree(), keep=keep)


def test_a_checkpoint_is_restored_as_that_of_its_run_only(tmp_path):
    tree = {"a": np.arange(3)}
    checkpoint.save(tmp_path, 1, tree, run="one")
    assert checkpoint.restore(tmp_path, tree, run="one").step == 1
    assert checkpoint.restore(tmp_path, tree).step == 1
    with pytest.raises(
        ValueError, match=r"checkpoint 1 in .* is of another run, with another configuration\."
    ):
        checkpoint.restore(tmp_path, tree, run="two")
    checkpoint.save(tmp_path, 2, tree)  # as before runs were told apart
    assert checkpoint.restore(tmp_path, tree, run="two").step == 2


def test_other_files_are_no_checkpoints(tmp_path):
    checkpoint.save(tmp_path, 3, {"a": np.arange(3)})
    for name in ("step_abc.json", "step_7.json", "step_000000009.json.old", "step_.json"):
        (tmp_path / name).write_text("{}")
    assert checkpoint.steps(tmp_path) == [3]


@pytest.mark.parametrize("leaves", [None, 7, [None], [{"name": "x"}], {"a": 1}, []])
def test_a_manifest_without_its_leaves_is_damaged(leaves, tmp_path):
    tree = {"a": np.arange(3)}
    checkpoint.save(tmp_path, 1, tree)
    checkpoint.save(tmp_path, 2, tree)
    manifest = tmp_path / "step_000000002.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "leaves": leaves}))
    restored = checkpoint.restore(tmp_path, tree)
    assert restored.step == 1
    assert "step_000000002" in restored.damaged[0]
