"""Checkpoints: any pytree of arrays, saved to the bit, without pickle, whole or not at all.

A checkpoint is two files. `step_000001000.npz` holds the leaves as plain numpy arrays; `step_000001000.json`
names them in order, with shapes, dtypes and the SHA-256 of the first. Each is written under another name and
then moved, the second last, so a checkpoint without it was never finished. A damaged checkpoint is passed
over for the one before. It may say whose it is, and then it is not restored as another's.
"""

import hashlib
import io
import json
import pathlib
import re
import zipfile
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pohp_neurd import checks, files

_FORMAT = 1


class Restored(NamedTuple):
    """A checkpoint that was read back."""

    step: int
    tree: Any
    """Like the tree that was asked for, with numpy arrays (and JAX keys where there were keys)."""
    damaged: tuple[str, ...]
    """One sentence for each newer checkpoint that had to be passed over."""


def save(directory: files.Path, step: int, tree: Any, *, keep: int = 2, run: str | None = None) -> None:
    """Saves `tree` as the checkpoint of `step` of `run`, then removes all but the `keep` newest ones."""
    checks.at_least("step", step, 0)
    checks.at_least("keep", keep)
    folder = pathlib.Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    leaves = {f"leaf_{index:05d}": leaf for index, leaf in enumerate(map(_to_numpy, jax.tree.leaves(tree)))}
    for (path, _), leaf in zip(jax.tree.leaves_with_path(tree), leaves.values(), strict=True):
        if leaf.dtype.kind not in "biufc":
            raise ValueError(
                f"{jax.tree_util.keystr(path)} is of {leaf.dtype}, which a checkpoint cannot hold."
            )
    buffer = io.BytesIO()
    np.savez(buffer, **leaves)  # type: ignore[arg-type]
    content = buffer.getvalue()
    arrays, manifest = _files(folder, step)
    # A manifest that stands for other bytes than those beside it must never be seen: the old one goes first.
    manifest.unlink(missing_ok=True)
    with files.atomic(arrays, binary=True) as file:
        file.write(content)
    about = {
        "format": _FORMAT,
        "step": step,
        "sha256": hashlib.sha256(content).hexdigest(),
        "leaves": _described(tree),
        **({} if run is None else {"run": run}),
    }
    with files.atomic(manifest) as file:
        json.dump(about, file, indent=2)
    for old in sorted(steps(folder), reverse=True)[keep:]:
        for part in reversed(_files(folder, old)):
            part.unlink(missing_ok=True)


def steps(directory: files.Path) -> list[int]:
    """The steps of all finished checkpoints in `directory`, in order, damaged or not."""
    names = (path.name for path in pathlib.Path(directory).glob("step_*.json"))
    return sorted(int(found[1]) for name in names if (found := re.fullmatch(r"step_(\d{9,})\.json", name)))


def restore(directory: files.Path, like: Any, *, run: str | None = None) -> Restored | None:
    """The newest whole checkpoint in `directory`, shaped as `like`; None where there is none at all.

    A ValueError says so if all are damaged, if the checkpoint holds another kind of tree than `like`, or if
    it says that it is of another run than `run`.
    """
    folder = pathlib.Path(directory)
    damaged: list[str] = []
    found = sorted(steps(folder), reverse=True)
    for step in found:
        try:
            leaves, owner = _read(folder, step)
        except _Damaged as error:
            damaged.append(str(error))
            continue
        if None not in (run, owner) and run != owner:
            raise ValueError(f"checkpoint {step} in {folder} is of another run, with another configuration.")
        return Restored(step, _rebuild(folder, step, leaves, like), tuple(damaged))
    if found:
        raise ValueError(f"no checkpoint in {folder} is whole: {' '.join(damaged)}")
    return None


def shapes(directory: files.Path) -> dict[str, tuple[int, ...]] | None:
    """The shape of every array in the newest checkpoint, by name; None where there is none at all.

    For trees whose sizes depend on what was going on: `restore` wants them like the saved ones.
    """
    folder = pathlib.Path(directory)
    found = steps(folder)
    if not found:
        return None
    manifest = _files(folder, found[-1])[1]
    try:
        leaves = json.loads(manifest.read_text(encoding="utf-8"))["leaves"]
        return {leaf["name"]: tuple(leaf["shape"]) for leaf in leaves}
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{manifest} cannot be read.") from None


class _Damaged(Exception):
    """A checkpoint that cannot be trusted; the message names it and says why."""


def _read(folder: pathlib.Path, step: int) -> tuple[list[tuple[dict[str, Any], np.ndarray]], str | None]:
    """The leaves as they are described and as they are, and the run they say they are of."""
    arrays, manifest = _files(folder, step)
    try:
        about = json.loads(manifest.read_text(encoding="utf-8"))
        checksum, run = about["sha256"], about.get("run")
        described = [{name: leaf[name] for name in ("name", "shape", "dtype")} for leaf in about["leaves"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise _Damaged(f"{manifest.name} cannot be read.") from None
    try:
        content = arrays.read_bytes()
    except OSError:
        raise _Damaged(f"{arrays.name} is missing.") from None
    if hashlib.sha256(content).hexdigest() != checksum:
        raise _Damaged(f"{arrays.name} does not match its checksum.")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return list(zip(described, [file[name] for name in sorted(file.files)], strict=True)), run
    except (ValueError, AttributeError, zipfile.BadZipFile):  # an array alone has no files
        raise _Damaged(f"{arrays.name} is not what {manifest.name} describes.") from None


def _rebuild(
    folder: pathlib.Path, step: int, leaves: list[tuple[dict[str, Any], np.ndarray]], like: Any
) -> Any:
    expected = _described(like)
    for wanted, (stored, _) in zip(expected, leaves, strict=False):
        if wanted != stored:
            raise ValueError(
                f"checkpoint {step} in {folder} holds {_shown(stored)} where {_shown(wanted)} was expected."
            )
    if len(expected) != len(leaves):
        raise ValueError(
            f"checkpoint {step} in {folder} holds {len(leaves)} arrays where {len(expected)} were expected."
        )
    restored = [
        jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
        if _is_key(leaf)
        else array
        for leaf, (_, array) in zip(jax.tree.leaves(like), leaves, strict=True)
    ]
    return jax.tree.unflatten(jax.tree.structure(like), restored)


def _described(tree: Any) -> list[dict[str, Any]]:
    described = []
    for path, leaf in jax.tree.leaves_with_path(tree):
        array = jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf
        dtype, shape = np.dtype(getattr(array, "dtype", np.asarray(array).dtype)), np.shape(array)
        described.append({"name": jax.tree_util.keystr(path), "shape": list(shape), "dtype": str(dtype)})
    return described


def _shown(leaf: dict[str, Any]) -> str:
    return f"{leaf['name'] or 'the tree'} as {leaf['dtype']}{leaf['shape']}"


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_numpy(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _files(folder: pathlib.Path, step: int) -> tuple[pathlib.Path, pathlib.Path]:
    return folder / f"step_{step:09d}.npz", folder / f"step_{step:09d}.json"
