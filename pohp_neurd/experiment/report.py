"""A run's folder as data for a page: what was run, its curves, its policies, and the game to walk through.

Exact wherever the game compiles. What cannot be known exactly is left out, and `left_out` says why.
"""

import functools
import importlib.metadata
import pathlib
import platform
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from pohp_neurd import checkpoint, exact, neural, openspiel, policy
from pohp_neurd.experiment import configs
from pohp_neurd.finite import graph
from pohp_neurd.finite import tree as trees
from pohp_neurd.games import cart_pole, catch
from pohp_neurd.online import lifetimes
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import saved
from pohp_neurd.results import records, report, table

Config = configs.Report

Choices = tuple[np.ndarray, np.ndarray]
"""A state and an action for every choice that a policy makes."""

_FORGETFUL = (
    "Best-response gains at single states are left out: a best responder remembers more than these agents, "
    "so that its gains are not at their states. NashConv, over all of the game, is exact."
)
_PACKAGES = ("pohp_neurd", "jax", "open_spiel", "numpy")
_GRID = 41  # angles and angular velocities of a phase picture
_FASTEST = 3.0  # radians a second


def gather(config: Config) -> dict[str, Any]:
    """All that the page shows, ready for JSON."""
    folders = [config.checkpoint, *([config.against] if config.against else [])]
    runs = [_run(folder) for folder in folders]
    played = [run["config"].get("game", run["config"].get("environment")) for run in runs]
    if len(set(played)) > 1:
        raise ValueError(f"{folders[0]} is of {played[0]}, but {folders[1]} is of {played[1]}.")
    if len({run["name"] for run in runs}) < len(runs):
        runs = [{**run, "name": folder} for run, folder in zip(runs, folders, strict=True)]
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    data = {"runs": runs, "versions": {"python": platform.python_version(), **versions}}
    if "environment" in runs[0]["config"]:
        return {**data, "maps": [_map(folder, run) for folder, run in zip(folders, runs, strict=True)]}
    return {**data, **_game(folders, runs, config.max_histories)}


def _run(folder: str) -> dict[str, Any]:
    place = records.RunFolder(folder)
    if not place.config.is_file():
        raise ValueError(f"{folder} is not the folder of a run: it has no config.json.")
    config = records.read_object(place.config)
    if not {"game", "environment"} & set(config):
        raise ValueError(f"{folder} must be a run of train_game or train_single_agent, but is neither.")
    rows = table.read(place.metrics)
    words = [cell for row in rows for cell in row.values() if isinstance(cell, str) and cell]
    if words:
        raise ValueError(f"{place.metrics} must hold numbers, but has {words[0]!r}.")
    cells = [[np.nan if cell == "" else cell for cell in row.values()] for row in rows]
    return {
        "name": pathlib.Path(folder).name or folder,
        "config": config,
        "columns": list(rows[0]),
        "metrics": report.packed(np.array(cells, np.float64)),
    }


def _game(folders: list[str], runs: list[dict[str, Any]], max_histories: int) -> dict[str, Any]:
    loaded = [saved.load(folder) for folder in folders]
    try:
        tree = openspiel.compile_game(loaded[0].about.game, max_histories=max_histories)
    except ValueError as error:
        if loaded[0].world is not None:
            return _agent_states(runs, loaded)
        reason = str(error).partition(": ")[0]  # what follows is advice for training
        return {
            "left_out": f"This page has no states, values or best-response gains, for which it would have to "
            f"hold every history of the game: {reason}. The curves show what the run has measured; "
            "`pohp-neurd evaluate` can measure more."
        }
    listed = choices(tree)
    policies = [
        {"run": run["name"], "which": which, **judged(tree, found, listed)}
        for run, each in zip(runs, loaded, strict=True)
        for which, found in tables(each, tree).items()
    ]
    return {"game": _tree(tree), "policies": policies}


def tables(kept: saved.Saved, world: exact.World) -> dict[str, Float[np.ndarray, "S A"]]:
    """The policies of a run on `world`, each once: the best may be one of the others, or an earlier one."""
    found: dict[str, np.ndarray] = {}
    for which in (name for name in ("current", "average", "best") if getattr(kept, name) is not None):
        if isinstance(world, graph.Graph) or kept.world is None:
            table = saved.table(kept, world, which)
        else:  # of agents that remember less than the tree's
            table = openspiel.table_of(world, saved.openspiel_policy(kept, which))
        same = next((name for name, other in found.items() if np.array_equal(other, table)), None)
        if same is None:
            found[which] = table
        elif which == "best":
            found = {f"{name} and best" if name == same else name: other for name, other in found.items()}
    return found


def gains(
    tree: trees.Tree, table: Float[np.ndarray, "S A"]
) -> tuple[Float[np.ndarray, "S"], Float[np.ndarray, "S A"]]:
    """What best responses gain at every information state, which adds up to NashConv; and all responses.

    With the value v*_s and the action values q*_s of the agent's best response from s on,

        gain_s = P[s] (v*_s − Σ_a π(a) q*_s(a)),   Σ_s gain_s = Σ_i (v*_i − v_i),

    P[s] that of the policy. This is the performance difference lemma (Kakade and Langford 2002) with the best
    response as the one whose values are taken: no entry is negative.
    """
    reached = exact.quantities(tree, table).realization
    found, answers = np.zeros(len(table)), np.zeros_like(table)
    for agent in range(tree.num_agents):
        response, rows = exact.best_response(tree, table, agent).policy, tree.states_of(agent)
        if response is None:
            raise ValueError(f"{tree.name} has no perfect recall: what is gained at a state is not defined.")
        best = exact.quantities(tree, response)
        lost = best.value - np.sum(table * best.action_value, axis=1)
        found[rows] = np.maximum(reached * lost, 0.0)[rows]  # rounding
        answers[rows] = response[rows]
    return found, answers


def judged(world: exact.World, table: Float[np.ndarray, "S A"], listed: Choices) -> dict[str, Any]:
    """A policy and its exact quantities: of states, and of their actions as they are `listed`."""
    found = exact.quantities(world, table)
    state, action = listed
    data = {
        "nash_conv": float(exact.nash_conv(world, table, compiled=False)),
        "probability": report.packed(table[state, action].astype(np.float32)),
        "action_value": report.packed(found.action_value[state, action].astype(np.float32)),
        "reached": report.packed(found.realization),
    }
    if isinstance(world, graph.Graph):
        returns = exact.expected_returns(world, table).tolist()
        return {**data, "returns": returns, "left_out": _FORGETFUL}
    data["returns"] = found.history_value[0].tolist()  # those of `exact` would compile for seconds
    try:
        gained, answers = gains(world, table)
    except ValueError as error:
        return {**data, "left_out": str(error)}
    answer = np.argmax(answers, axis=1).astype(np.int32)
    return {**data, "gain": report.packed(gained), "answer": report.packed(answer)}


def choices(tree: trees.Tree) -> Choices:
    """State and action of every choice: states in order, actions as the children of their first history."""
    decisions = np.flatnonzero(tree.information_state >= 0)
    _, first = np.unique(tree.information_state[decisions], return_index=True)
    rows = decisions[first]
    count = tree.num_children[rows]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    action = tree.incoming_action[np.repeat(tree.first_child[rows], count) + within]
    return np.repeat(np.arange(len(rows)), count), action


def _tree(tree: trees.Tree) -> dict[str, Any]:
    known, name, pictures = names(tree)
    return {
        "name": tree.name,
        "about": f"{tree.num_histories:,} histories, {tree.num_information_states:,} information states",
        "walk": True,
        "num_agents": tree.num_agents,
        "names": report.packed_text(known),
        "strings": report.packed_text(list(tree.information_state_strings)),
        "pictures": report.packed_text(pictures),
        "step": report.packed(name),
        "parent": report.packed(tree.parent.astype(np.int32)),
        "action": report.packed(tree.incoming_action.astype(np.int32)),
        "player": report.packed(tree.player.astype(np.int32)),
        "state": report.packed(tree.information_state.astype(np.int32)),
        "chance": report.packed(tree.chance.astype(np.float64)),
        "rewards": report.packed(tree.rewards.astype(np.float64)),
    }


def names(tree: trees.Tree) -> tuple[list[str], np.ndarray, list[str]]:
    """All names of actions and outcomes, that of the last step to each history, and states as pictures.

    A picture is an observation of several lines, as games with a board have it; else it is empty.
    """
    game = compiling.game_of(tree)
    seen = game.get_type().provides_observation_string
    known: dict[str, int] = {}
    name, pictures = np.zeros(tree.num_histories, np.int32), [""] * tree.num_information_states
    stack = [(0, None, -1)]
    while stack:
        row, before, action = stack.pop()
        state = game.new_initial_state() if before is None else before.child(action)
        player, at = state.current_player(), tree.information_state[row]
        if seen and at >= 0 and not pictures[at]:
            picture = state.observation_string(player)
            pictures[at] = picture if "\n" in picture else ""
        for child in range(tree.first_child[row], tree.first_child[row] + tree.num_children[row]):
            step = int(tree.incoming_action[child])
            name[child] = known.setdefault(state.action_to_string(player, step), len(known))
            if tree.num_children[child]:
                stack.append((child, state, step))
    return list(known), name, pictures


def _agent_states(runs: list[dict[str, Any]], loaded: list[saved.Saved]) -> dict[str, Any]:
    """The policies of agents on a graph whose game has too many histories for a page.

    A row for the root, one for every agent state, and one for every choice there: no walk, but a list.
    """
    world = loaded[0].world
    assert world is not None, "runs on trees are shown as such"
    nodes, strings, steps = witnesses(world)
    count = np.diff(world.first_edge)[nodes]
    state = np.repeat(np.arange(len(nodes)), count)
    edge = np.repeat(world.first_edge[nodes] - (np.cumsum(count) - count), count) + np.arange(len(state))
    known = {name: place for place, name in enumerate(dict.fromkeys(steps))}
    size, ends = 1 + len(nodes) + len(state), np.full(len(state), -1)
    rows = {
        "step": [0, *np.zeros_like(nodes), *(known[name] for name in steps)],
        "parent": [-1, *np.zeros_like(nodes), *(state + 1)],
        "action": [-1, *np.zeros_like(nodes), *world.action[edge]],
        "player": [trees.CHANCE, *world.player[nodes], *(ends + trees.TERMINAL - trees.CHANCE)],
        "state": [-1, *range(len(nodes)), *ends],
    }
    data = {
        "name": world.name,
        "about": f"{world.num_nodes:,} nodes, {world.num_agent_states:,} agent states",
        "walk": False,
        "num_agents": world.num_agents,
        "names": report.packed_text(list(known)),
        "strings": report.packed_text(strings),
        "pictures": report.packed_text([""] * len(strings)),
        **{name: report.packed(np.array(values, np.int32)) for name, values in rows.items()},
        "chance": report.packed(np.zeros(size)),
        "rewards": report.packed(np.zeros((size, world.num_agents))),
    }
    alike = [each.world is not None and np.array_equal(each.world.legal, world.legal) for each in loaded]
    policies = [
        {"run": run["name"], "which": which, **judged(world, found, (state, world.action[edge]))}
        for run, kept, same in zip(runs, loaded, alike, strict=True)
        if same
        for which, found in tables(kept, world).items()
    ]
    left_out = (
        {} if all(alike) else {"left_out": "The other run has other agent states: only its curves are shown."}
    )
    return {"game": data, "policies": policies, **left_out}


def witnesses(world: graph.Graph) -> tuple[np.ndarray, list[str], list[str]]:
    """A node of every agent state, what its player sees there, and the names of all actions in a row."""
    game = compiling.origin_of(world).game
    view = "observation" if game.get_type().provides_observation_string else "information_state"
    decisions = np.flatnonzero(world.agent_state >= 0)
    nodes = decisions[np.unique(world.agent_state[decisions], return_index=True)[1]]
    into = np.full(world.num_nodes, -1)
    inner = np.flatnonzero(world.child >= 0)
    into[world.child[inner]] = inner
    strings, steps = [], []
    for node in nodes:
        moves, edge = [], into[node]
        while edge >= 0:
            moves.append(int(world.action[edge]))
            edge = into[world.source[edge]]
        state = game.new_initial_state()
        for move in reversed(moves):
            state.apply_action(move)
        player = state.current_player()
        strings.append(getattr(state, f"{view}_string")(player))
        edges = slice(world.first_edge[node], world.first_edge[node + 1])
        steps += [state.action_to_string(player, int(action)) for action in world.action[edges]]
    return nodes, strings, steps


def _map(folder: str, run: dict[str, Any]) -> dict[str, Any]:
    """What the policies of all seeds and settings do: over catch's boards, or over a section of cart pole."""
    given: Any = {name: tuple(v) if isinstance(v, list) else v for name, v in run["config"].items()}
    try:
        config = configs.SingleAgent(**given)
    except TypeError:
        raise ValueError(f"{folder}/config.json has not the settings of train_single_agent.") from None
    world, options, torso = config.world(), config.options(), (config.width, config.width)
    begin = functools.partial(lifetimes.begin_all, world, options, torso=torso)
    restored = checkpoint.restore(pathlib.Path(folder) / "checkpoints", jax.eval_shape(begin, config.runs()))
    if restored is None:
        raise ValueError(f"there is no checkpoint in {folder}.")
    agent = lifetimes.paper_agent(world, options, learning_rate=1.0, torso=torso)
    parameters = jax.vmap(agent.parameters)(restored.tree.agent)
    model = neural.network(world.spec.observation_size, world.spec.num_actions, torso=torso, critic=True)
    histories, axes = _boards(world) if config.environment == "catch" else _phases()

    def probabilities(weights: Any, history: Any) -> Any:
        return policy.probabilities(
            model.apply(weights, world.observation(history)).logits, world.legal_actions(history)
        )

    over_states = jax.vmap(probabilities, in_axes=(None, 0))
    found = jax.jit(jax.vmap(over_states, in_axes=(0, None)))(parameters, histories)
    return {**axes, "settings": config.settings(), "probability": report.packed(np.asarray(found))}


def _boards(world: catch.Catch) -> tuple[catch.Fall, dict[str, Any]]:
    """Every board at which a decision is made: by the ball's row, its column, and the paddle's column."""
    sizes = (world.rows - 1, world.columns, world.columns)
    places = jnp.indices(sizes).reshape(3, -1).astype(jnp.int32)
    nothing = jnp.zeros_like(places[0])
    return catch.Fall(catch.Board(*places), nothing > 0, nothing), {"sizes": sizes}


def _phases() -> tuple[cart_pole.Balance, dict[str, Any]]:
    """Angles and angular velocities of a pole whose cart stands still in the middle."""
    limits = (cart_pole.ANGLE_LIMIT, _FASTEST)
    angle, speed = (jnp.linspace(-limit, limit, _GRID) for limit in limits)
    angles, speeds = (each.reshape(-1) for each in jnp.meshgrid(angle, speed, indexing="ij"))
    still = jnp.zeros_like(angles)
    cart = cart_pole.Cart(still, still, angles, speeds)
    nothing = jax.tree.map(jnp.zeros_like, cart)
    history = cart_pole.Balance(cart, nothing, still > 0, still.astype(jnp.int32))
    return history, {"sizes": (_GRID, _GRID), "limits": limits}
