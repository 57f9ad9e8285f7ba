"""Trained policies as files, apart from the training that made them: to load, judge, and play with.

A folder holds `about.json` (the game, and how the network is built) and a checkpoint with the current and the
average policy: tables in the order of the compiled game, or a network's parameters. `best/` has the best of
them so far by exact NashConv, and `graph.npz` the graph, if the game was compiled to one.
"""

import json
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pohp_neurd import checkpoint, checks, exact, files, policy, types
from pohp_neurd.finite import graph
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import policies
from pohp_neurd.openspiel.live import play

WHICH = ("current", "average", "best")
_BEST, _GRAPH = "best", "graph.npz"


class About(NamedTuple):
    """What it takes to make sense of the arrays."""

    game: str
    kind: str
    """tabular or neural."""
    hidden_layers: tuple[int, ...] = ()
    critic: bool = False
    num_networks: int = 1
    """1 if all seats share a network, else one for each seat."""
    compiled: str = "tree"
    """tree or graph: what the table's rows, or the network's features, are of."""


class Saved(NamedTuple):
    """The policies of a training run."""

    about: About
    current: Any
    """A table [S, A], or a tuple of networks' parameters on features that end with the seat."""
    average: Any
    """None for tables of agents that forget, which have no average policy."""
    best: Any = None
    """The best so far of the two by exact NashConv; None where that was not computed."""
    world: graph.Graph | None = None

    @property
    def usual(self) -> str:
        """Which policy is used where nothing is said. On a graph an average is no average strategy."""
        order = ("average", "best", "current") if self.world is None else ("best", "current")
        return next(name for name in order if getattr(self, name) is not None)


def save(directory: files.Path, step: int, saved: Saved) -> None:
    """Saves the policies after `step` updates; the ones before are kept beside them."""
    folder = pathlib.Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    if saved.world is not None and not (folder / _GRAPH).exists():
        compiling.save_graph(folder / _GRAPH, saved.world)
    with files.atomic(folder / "about.json") as file:
        json.dump(saved.about._asdict(), file, indent=2)
    checkpoint.save(folder, step, (saved.current, saved.average))


def save_best(directory: files.Path, step: int, policy: Any, nash_conv: float) -> None:
    """Keeps `policy` in a run's folder of policies if no better one is there."""
    folder = pathlib.Path(directory) / _BEST
    kept = (policy, np.float64(nash_conv))
    before = checkpoint.restore(folder, kept)
    if before is None or nash_conv < float(before.tree[1]):
        checkpoint.save(folder, step, kept, keep=1)


def load(directory: files.Path) -> Saved:
    """The newest policies that are whole, from a run's folder or from its folder `policy`."""
    folder = pathlib.Path(directory)
    folder = folder if (folder / "about.json").is_file() else folder / "policy"
    if not (folder / "about.json").is_file():
        raise ValueError(f"there is no trained policy in {directory}.")
    about = _about(folder / "about.json")
    world = compiling.load_graph(folder / _GRAPH) if about.compiled == "graph" else None
    one = _like(about, world, folder)
    forgets = world is not None and about.kind == "tabular"
    restored = checkpoint.restore(folder, (one, None if forgets else one))
    if restored is None:
        raise ValueError(f"there is no checkpoint in {folder}.")
    best = checkpoint.restore(folder / _BEST, (one, jax.ShapeDtypeStruct((), np.float64)))
    current, average = restored.tree
    found = Saved(about, current, average, None if best is None else best.tree[0], world)
    for which in WHICH:
        one = getattr(found, which)
        if one is not None and about.kind == "tabular":
            if world is not None:
                checks.shape(f"the {which} policy in {folder}", one, world.legal.shape)
            checks.distribution(f"every row of the {which} policy in {folder}", one)
        elif not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(one)):
            raise ValueError(f"the {which} policy in {folder} holds a weight that is not finite.")
    return found


def network(saved: Saved, which: str | None = None) -> play.Network:
    """A neural policy as a network, on the features of live games or of its graph."""
    chosen = _chosen(saved, which)
    if saved.about.kind != "neural":
        raise ValueError(f"the policy of {saved.about.game} is tabular, not a network.")
    separate = saved.about.num_networks > 1
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *chosen) if separate else chosen[0]
    return play.Network(_model(saved.about, saved.world, separate=separate), stacked)


def openspiel_policy(saved: Saved, which: str | None = None) -> Any:
    """The policy as an OpenSpiel policy; a table's game is compiled for it."""
    if saved.world is not None:
        return policies.MemoryPolicy(saved.world, table(saved, saved.world, which))
    if saved.about.kind == "neural":
        return policies.LivePolicy(play.live_game(saved.about.game), network(saved, which))
    return policies.TablePolicy(compiling.compile_game(saved.about.game), _chosen(saved, which))


def table(saved: Saved, world: exact.World, which: str | None = None) -> np.ndarray:
    """The policy as a table [S, A] in float64, in the order of the compiled game."""
    chosen = _chosen(saved, which)
    if saved.about.kind == "neural":
        model, parameters = network(saved, which)
        chosen = policy.table(model.apply, parameters, compiling.features_of(world), world.legal)
    return compiling.float64(chosen)


def _chosen(saved: Saved, which: str | None) -> Any:
    which = which or saved.usual
    checks.one_of("which", which, WHICH)
    found = getattr(saved, which)
    if found is None:
        known = " or ".join(name for name in WHICH if getattr(saved, name) is not None)
        raise ValueError(f"this run in {saved.about.game} has no {which} policy: use {known}.")
    return found


def _model(about: About, world: graph.Graph | None, *, separate: bool) -> policy.Model:
    """The network that is saved."""
    sizes: Any = play.live_game(about.game) if world is None else None
    if world is not None:
        seen = compiling.features_of(world).shape[1]
        sizes = play.Sizes(seen, world.num_actions, world.num_agents)
    return play.network(sizes, about.hidden_layers, critic=about.critic, separate=separate)


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
        or about.compiled not in ("tree", "graph")
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


def _like(about: About, world: graph.Graph | None, folder: pathlib.Path) -> types.Parameters:
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
    model = _model(about, world, separate=False)
    return (jax.eval_shape(lambda: model.init(key=jax.random.key(0))),) * about.num_networks
