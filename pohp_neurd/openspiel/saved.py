"""Trained policies as files, apart from the training that made them: to load, judge, and play with.

A folder holds `about.json` (the game, and how the network is built) and a checkpoint with the current and the
average policy: tables in the order of the compiled game, or a network's parameters.
"""

import json
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pohp_neurd import checkpoint, checks, files, policy, types
from pohp_neurd.finite import tree as trees
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import policies
from pohp_neurd.openspiel.live import play

WHICH = ("average", "current")


class About(NamedTuple):
    """What it takes to make sense of the arrays."""

    game: str
    kind: str
    """tabular or neural."""
    hidden_layers: tuple[int, ...] = ()
    critic: bool = False
    num_networks: int = 1
    """1 if all seats share a network, else one for each seat."""


class Saved(NamedTuple):
    """The policies of a training run."""

    about: About
    current: Any
    """A table [S, A], or a tuple of networks' parameters on features that end with the seat."""
    average: Any


def save(directory: files.Path, step: int, saved: Saved) -> None:
    """Saves the policies after `step` updates; the ones before are kept beside them."""
    folder = pathlib.Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    with files.atomic(folder / "about.json") as file:
        json.dump(saved.about._asdict(), file, indent=2)
    checkpoint.save(folder, step, (saved.current, saved.average))


def load(directory: files.Path) -> Saved:
    """The newest policies that are whole, from a run's folder or from its folder `policy`."""
    folder = pathlib.Path(directory)
    folder = folder if (folder / "about.json").is_file() else folder / "policy"
    if not (folder / "about.json").is_file():
        raise ValueError(f"there is no trained policy in {directory}.")
    about = _about(folder / "about.json")
    one = _like(about, folder)
    restored = checkpoint.restore(folder, (one, one))
    if restored is None:
        raise ValueError(f"there is no checkpoint in {folder}.")
    for which, found in zip(("current", "average"), restored.tree, strict=True):
        if about.kind == "tabular":
            checks.distribution(f"every row of the {which} policy in {folder}", found)
        elif not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found)):
            raise ValueError(f"the {which} policy in {folder} holds a weight that is not finite.")
    return Saved(about, *restored.tree)


def network(saved: Saved, which: str = "average") -> play.Network:
    """A neural policy as a player of live games."""
    chosen = _chosen(saved, which)
    if saved.about.kind != "neural":
        raise ValueError(f"the policy of {saved.about.game} is tabular, not a network.")
    about = saved.about
    separate = about.num_networks > 1
    model = play.network(
        play.live_game(about.game), about.hidden_layers, critic=about.critic, separate=separate
    )
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *chosen) if separate else chosen[0]
    return play.Network(model, stacked)


def openspiel_policy(saved: Saved, which: str = "average") -> Any:
    """The policy as an OpenSpiel policy; a table's game is compiled for it."""
    if saved.about.kind == "neural":
        return policies.LivePolicy(play.live_game(saved.about.game), network(saved, which))
    return policies.TablePolicy(compiling.compile_game(saved.about.game), _chosen(saved, which))


def table(saved: Saved, tree: trees.Tree, which: str = "average") -> np.ndarray:
    """The policy as a table [S, A] in float64, in the order of the compiled game."""
    chosen = _chosen(saved, which)
    if saved.about.kind == "neural":
        model, parameters = network(saved, which)
        chosen = policy.table(model.apply, parameters, compiling.features_of(tree), tree.legal)
    return policies.float64(chosen)


def _chosen(saved: Saved, which: str) -> Any:
    checks.one_of("which", which, WHICH)
    return saved.average if which == "average" else saved.current


def _about(path: pathlib.Path) -> About:
    """What the file says, if it makes sense."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        about = About(**{**known, "hidden_layers": tuple(known["hidden_layers"])})
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"{path} is damaged.") from None
    sizes = (*about.hidden_layers, about.num_networks)
    if (
        not isinstance(about.game, str)
        or about.kind not in ("tabular", "neural")
        or not isinstance(about.critic, bool)
        or not all(type(size) is int and size > 0 for size in sizes)
    ):
        raise ValueError(f"{path} is damaged.")
    try:
        num_seats = compiling.load_game(about.game).num_players()
    except ValueError as error:
        raise ValueError(f"{path} names a game that cannot be played: {error}") from None
    if about.num_networks not in (1, num_seats):
        raise ValueError(
            f"{path} must say num_networks 1 or, as {about.game} has seats, {num_seats}, but says "
            f"{about.num_networks}."
        )
    return about


def _like(about: About, folder: pathlib.Path) -> types.Parameters:
    """A tree of the shapes that are in the file, without its numbers."""
    shapes = checkpoint.shapes(folder) or {"": ()}
    if about.kind == "tabular":
        # As the file says, for asking the game would mean to compile it.
        return jax.ShapeDtypeStruct(next(iter(shapes.values())), np.float64)
    largest = max((size for shape in shapes.values() for size in shape), default=0)
    if any(size > largest for size in about.hidden_layers):  # too large, maybe, to be laid out at all
        raise ValueError(
            f"{folder / 'about.json'} says hidden_layers {list(about.hidden_layers)}, but no array in the "
            f"checkpoint beside it is longer than {largest}."
        )
    model = play.network(play.live_game(about.game), about.hidden_layers, critic=about.critic)
    return (jax.eval_shape(lambda: model.init(key=jax.random.key(0))),) * about.num_networks
