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

from pohp_neurd import checkpoint, checks, files, neural, policy, types
from pohp_neurd import tree as trees
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import live, live_game, players, policies

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
    try:
        known = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        about = About(**{**known, "hidden_layers": tuple(known["hidden_layers"])})
    except FileNotFoundError:
        raise ValueError(f"there is no trained policy in {directory}.") from None
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"{folder / 'about.json'} is damaged.") from None
    one = _like(about, folder)
    restored = checkpoint.restore(folder, (one, one))
    if restored is None:
        raise ValueError(f"there is no checkpoint in {folder}.")
    return Saved(about, *restored.tree)


def network(saved: Saved, which: str = "average") -> players.Network:
    """A neural policy as a player of live games."""
    chosen = _chosen(saved, which)
    if saved.about.kind != "neural":
        raise ValueError(f"the policy of {saved.about.game} is tabular, not a network.")
    world = live_game.live_game(saved.about.game)
    model = model_of(saved.about, world.num_features, world.num_actions)
    if saved.about.num_networks == 1:
        return players.Network(model, chosen[0])
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *chosen)
    return players.Network(live.per_seat(model, saved.about.num_networks), stacked)


def openspiel_policy(saved: Saved, which: str = "average") -> Any:
    """The policy as an OpenSpiel policy; a table's game is compiled for it."""
    if saved.about.kind == "neural":
        return players.LivePolicy(live_game.live_game(saved.about.game), network(saved, which))
    return policies.TablePolicy(compiling.compile_game(saved.about.game), _chosen(saved, which))


def table(saved: Saved, tree: trees.Tree, which: str = "average") -> np.ndarray:
    """The policy as a table [S, A] in float64, in the order of the compiled game."""
    chosen = _chosen(saved, which)
    if saved.about.kind == "neural":
        model, parameters = network(saved, which)
        chosen = policy.table(model.apply, parameters, features(tree), tree.legal)
    found = np.asarray(chosen, np.float64)
    return found / found.sum(axis=1, keepdims=True)


def features(tree: trees.Tree) -> np.ndarray:
    """What a network sees of every information state: the game's tensor, then the seat, one-hot."""
    seats = np.eye(tree.num_agents)[tree.state_player]
    return np.concatenate([tree.features, seats], axis=1).astype(np.float32)


def model_of(about: About, num_features: int, num_actions: int) -> policy.Model:
    """The network, as one that sees one seat at a time."""
    return neural.network(num_features, num_actions, torso=about.hidden_layers, critic=about.critic)


def _chosen(saved: Saved, which: str) -> Any:
    checks.one_of("which", which, WHICH)
    return saved.average if which == "average" else saved.current


def _like(about: About, folder: pathlib.Path) -> types.Parameters:
    """A tree of the shapes that are in the file."""
    if about.kind == "tabular":
        # As the file says, for asking the game would mean to compile it.
        return np.zeros(next(iter((checkpoint.shapes(folder) or {"": ()}).values())))
    world = live_game.live_game(about.game)
    model = model_of(about, world.num_features, world.num_actions)
    shapes = jax.eval_shape(lambda: model.init(key=jax.random.key(0)))
    one = jax.tree.map(lambda leaf: np.zeros(leaf.shape, np.float32), shapes)
    return (one,) * about.num_networks
