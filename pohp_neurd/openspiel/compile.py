"""An OpenSpiel game: loaded, walked once into a tree, and what a network sees of it."""

import array
import contextlib
import difflib
import gc
import importlib
import re
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, overload

import numpy as np
import pyspiel
import tqdm
from jaxtyping import Float
from open_spiel.python import observation as observations

from pohp_neurd import agent_state as agent_states
from pohp_neurd import checks, files
from pohp_neurd.finite import graph, graph_file, tree, tree_builder
from pohp_neurd.openspiel import graph_builder

MAX_HISTORIES = 5_000_000
MAX_BYTES = 2 * 2**30
_PLAYOUTS, _ABOVE, _MARGIN = 100, 40, 10  # see `_playouts_above`
_REFRESH = 4096  # histories between two looks at the progress bar
_ROW = 200  # bytes of a history while it is walked, about
_TABLES = 65  # bytes of an action at an information state: a mask, and eight tables of float64


def load_game(game: str | Any) -> Any:
    """The OpenSpiel game of that name (with parameters, as OpenSpiel writes them), ready to be walked.

    Simultaneous moves are taken in turns that the players do not see (`turn_based_simultaneous_game`).
    """
    loaded = _load(game) if isinstance(game, str) else game
    if not isinstance(loaded, pyspiel.Game):
        raise ValueError(f"game must be an OpenSpiel game or its name, but is {type(game).__name__}.")
    kind = loaded.get_type()
    if kind.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
        raise ValueError(f"{kind.short_name} is a mean field game, which has no players to take turns.")
    if kind.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        loaded = pyspiel.convert_to_turn_based(loaded)
    return loaded


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Pauses the search for cycles: it looks at millions of tuples again and again, and none is in one."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


@overload
def compile_game(game: str | Any, *, max_histories: int = ..., max_bytes: int = ...) -> tree.Tree: ...


@overload
def compile_game(
    game: str | Any,
    *,
    agent_state: str | agent_states.UpdateFunction | graph_builder.Memory,
    world: str | graph_builder.World = ...,
    max_nodes: int = ...,
) -> graph.Graph: ...


@_without_collection()
def compile_game(
    game: str | Any,
    *,
    max_histories: int = MAX_HISTORIES,
    max_bytes: int = MAX_BYTES,
    agent_state: str | agent_states.UpdateFunction | graph_builder.Memory | None = None,
    world: str | graph_builder.World = "string",
    max_nodes: int = graph_builder.MAX_NODES,
) -> tree.Tree | graph.Graph:
    """The tree of an OpenSpiel game: every history, once. With `agent_state`, the graph of its agent states.

    >>> kuhn = compile_game("kuhn_poker")
    >>> kuhn.num_histories, kuhn.num_information_states
    (58, 12)
    >>> seen = compile_game("kuhn_poker", agent_state="observation")
    >>> seen.num_nodes, seen.num_agent_states
    (28, 12)

    Args:
      game: a game, or its name as OpenSpiel writes it, such as "kuhn_poker(players=3)".
      max_histories: a tree of more histories is refused as soon as that is known: at once, if random playouts
        show it.
      max_bytes: so is one that takes more memory, with the tables that learners keep beside it.
      agent_state: what agents remember: "information_state", "observation", "window:K" (the last K pairs of
        own action and observation), or an UpdateFunction whose histories are observations.
      world: what the future depends on beside that: "string" (`str(state)`), "observations" (nothing more
        than what the players see), or a function of OpenSpiel states. A wrong one is a ValueError that names
        two histories which it takes for one.
      max_nodes: a graph of more nodes is refused as soon as that is known.
    """
    checks.count("max_histories", max_histories)
    checks.count("max_nodes", max_nodes)
    game = load_game(game)
    kind = game.get_type()
    if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(
            f"{kind.short_name} samples its chance events and cannot be walked: play it live instead."
        )
    if agent_state is not None:
        memory, view, told = graph_builder.chosen(game, agent_state, world)
        eye = _eye(game, view)
        made, found = graph_builder.build(game, memory, eye, told, max_nodes=max_nodes)
        if isinstance(agent_state, str):
            found = {graph_builder.digest(*known): row for known, row in found.items()}
        graph_builder.give_back()
        _origins[made] = graph_builder.Origin(game, agent_state, world, memory, eye, found)
        return made
    try:
        if _playouts_above(game, max_histories) >= _ABOVE:
            raise ValueError(
                f"{_title(game)} has far more than {max_histories:,} histories, as random playouts show: "
                "play it live instead."
            )
        rows, tensors = _walk(game, max_histories, max_bytes)
    except pyspiel.SpielError as error:
        raise ValueError(f"{game} cannot be walked: {error}.") from None
    # Some games have actions beyond the number that they declare.
    largest = max((max(actions, default=0) for actions in rows.actions), default=0)
    compiled = tree_builder.lay_out(
        rows,
        num_agents=game.num_players(),
        num_actions=max(game.num_distinct_actions(), largest + 1),
        name=str(game),
        features=tensors,
    )
    _origins[compiled] = game
    return compiled


def may_be_larger(game: Any, max_histories: int) -> bool:
    """Whether only a walk can tell if a game that can be walked has more than `max_histories` histories."""
    sampled = game.get_type().chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
    try:
        return not sampled and 0 < _playouts_above(game, max_histories) < _ABOVE
    except pyspiel.SpielError:  # which `compile_game` tells of
        return False


_origins: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
"""A tree's game, a graph's `Origin`."""


def origin_of(compiled: graph.Graph) -> graph_builder.Origin:
    """Where a graph comes from."""
    if compiled not in _origins:
        raise ValueError(
            f"{compiled.name} was not made by compile_game: its agent states cannot be found again."
        )
    return _origins[compiled]


def save_graph(path: files.Path, compiled: graph.Graph) -> None:
    """Writes a graph to a file, with the game's name, so that it need not be built again."""
    origin = origin_of(compiled)
    said = {"agent_state": origin.agent_state, "world": origin.world}
    for name, value in said.items():
        if not isinstance(value, str):
            raise ValueError(f"a graph whose {name} is a function cannot be saved: only its words can be.")
    digests = np.zeros(compiled.num_agent_states, "V16")
    for known, row in origin.rows.items():
        digests[row] = np.void(known)
    graph_file.write(path, graph_file.Written(compiled, said, digests))


def load_graph(path: files.Path) -> graph.Graph:
    """The graph that `save_graph` wrote; its agent states are found again as in one that was just built.

    A file that is damaged or something else is a ValueError. Nothing in it is executed.
    """
    compiled, about, digests = graph_file.read(path)
    try:
        game, agent_state, world = load_game(compiled.name), about["agent_state"], about["world"]
        memory, view, _ = graph_builder.chosen(game, agent_state, world)
    except (ValueError, KeyError) as error:
        raise ValueError(f"{path} holds a graph that cannot be used: {error}") from None
    rows = {known.tobytes(): row for row, known in enumerate(digests)}
    _origins[compiled] = graph_builder.Origin(game, agent_state, world, memory, _eye(game, view), rows)
    return compiled


def game_of(compiled: tree.Tree) -> Any:
    """The OpenSpiel game that a tree was compiled from, or one of its name if the tree comes from a file."""
    if compiled not in _origins:
        _origins[compiled] = load_game(compiled.name)
    return _origins[compiled]


def in_turns(game: Any, state: Any, player: int) -> Any:
    """`state` as the turn-based `game` has it at the move of `player`.

    A state of the game with simultaneous moves is played again in turns; the players before `player` have
    then moved, which `player` does not see. Other states are returned as they are.
    """
    theirs = state.get_game()
    if theirs.get_type().dynamics != pyspiel.GameType.Dynamics.SIMULTANEOUS:
        return state
    if str(pyspiel.convert_to_turn_based(theirs)) != str(game):
        raise ValueError(f"a policy of {game} does not know states of {theirs}.")
    replayed = game.new_initial_state()
    for step in state.full_history():
        # A player without a choice has an entry in the joint move, but no turn.
        if step.player == replayed.current_player():
            replayed.apply_action(step.action)
    if state.is_simultaneous_node() and state.legal_actions(player):
        while replayed.current_player() != player:
            replayed.apply_action(replayed.legal_actions()[0])
    return replayed


def information_string(state: Any, player: int) -> str:
    """What tells the player's information states apart: their strings, or failing that its observations'."""
    return getattr(state, _view(state.get_game(), "string") or "observation_string")(player)


def tensor_view(game: Any) -> str | None:
    """The name of a game's tensor: the information state's, failing that the observation's, or None."""
    return _view(game, "tensor")


def _view(game: Any, form: str) -> str | None:
    views = (f"information_state_{form}", f"observation_{form}")
    return next((view for view in views if getattr(game.get_type(), f"provides_{view}")), None)


def features_of(compiled: tree.Tree | graph.Graph) -> Float[np.ndarray, "S D"]:
    """What a network sees of every information state, or agent state, of a compiled game, and its seat."""
    seats = np.eye(compiled.num_agents)[compiled.state_player]
    return np.concatenate([compiled.features, seats], axis=1).astype(np.float32)


class Observer(NamedTuple):
    """`set_from(state, player)` writes what the player sees into `tensor`, the same array every time."""

    set_from: Callable[[Any, int], None]
    tensor: Float[np.ndarray, "D"]


def observer(game: Any, view: str, *, everyone: bool = False) -> Observer:
    """An observer of the tensor `view`, for the player to move, or for `everyone` at any time.

    OpenSpiel's own observers write it without a Python list, several times as fast; nothing promises that it
    is the same tensor, so that one episode of random play has to show it.
    """
    tensor = np.zeros(getattr(game, f"{view}_size")(), np.float32)

    def ask(state: Any, player: int) -> None:
        tensor[:] = getattr(state, view)(player)

    asking = Observer(ask, tensor)
    kind = pyspiel.IIGObservationType(perfect_recall=True) if view == "information_state_tensor" else None
    try:
        quick = observations.make_observation(game, kind)
    except (RuntimeError, ValueError):
        return asking
    written = getattr(quick, "tensor", None)
    if written is None or written.dtype != np.float32 or written.shape != tensor.shape:
        return asking
    # The one that C++ fills itself needs no detour through Python.
    direct = Observer(getattr(quick, "_observation", quick).set_from, written)
    rng, state = np.random.default_rng(0), game.new_initial_state()
    while not state.is_terminal():
        mover = state.current_player()
        for player in range(game.num_players()) if everyone else [mover] * (mover >= 0):
            direct.set_from(state, player)
            asking.set_from(state, player)
            if not np.array_equal(direct.tensor, asking.tensor):
                return asking
        actions = state.legal_actions()
        state.apply_action(actions[rng.integers(len(actions))])
    return direct


def _eye(game: Any, view: str) -> Callable[[Any, int], bytes]:
    """What a player sees of a state, as the bytes of a float32 tensor."""
    set_from, tensor = observer(game, view, everyone=True)
    written = tensor.tobytes

    def look(state: Any, player: int) -> bytes:
        set_from(state, player)
        return written()

    return look


def _load(name: str) -> Any:
    # What OpenSpiel finds wrong it also prints, with a list of all its games; the two common mistakes
    # are therefore caught before it is asked.
    short = name.split("(")[0].strip()
    if short.startswith("python_pohp"):
        importlib.import_module("pohp_neurd.games.openspiel_games")  # registers our own
    elif short.startswith("python_"):
        importlib.import_module("open_spiel.python.games")  # OpenSpiel's own are registered by that alone
    kinds = {kind.short_name: kind for kind in pyspiel.registered_games()}
    if short not in kinds:
        raise ValueError(f"OpenSpiel knows no game {short!r}{_near(short, list(kinds))}.")
    try:
        given = pyspiel.game_parameters_from_string(name)
        allowed = list(kinds[short].parameter_specification)
        for parameter in given:
            if parameter != "name" and parameter not in allowed:
                raise ValueError(
                    f"{short} has no parameter {parameter!r}{_near(parameter, allowed)}; it has "
                    f"{', '.join(sorted(allowed)) or 'none'}."
                )
        return pyspiel.load_game(name)
    except pyspiel.SpielError as error:
        # Its messages begin with the place in its own source.
        complaint = re.sub(r"^\S+:\d+ ", "", str(error).strip()).replace("\n", ", ").rstrip(".")
        raise ValueError(f"OpenSpiel cannot load {name!r}: {complaint}.") from None


def _near(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=3)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _title(game: Any) -> str:
    """A game's short name; that of the game inside, if its simultaneous moves are taken in turns."""
    inside = game.get_parameters().get("game")
    return inside["name"] if isinstance(inside, dict) else game.get_type().short_name


def _playouts_above(game: Any, max_histories: int) -> int:
    """In how many random playouts a game looks as if it had more than ten times `max_histories` histories.

    On a path that takes each of the b_t children at step t with the same chance, 1 + b_1 + b_1 b_2 + ... is
    on average the number of histories (Knuth 1975, Estimating the efficiency of backtrack programs). By
    Markov's inequality it is above ten times that in at most one playout of ten. If it is in 40 of 100, the
    game is too large: one within the limit gets there with a probability below 1e-13.
    """
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(_PLAYOUTS):
        state, level, total = game.new_initial_state(), 1, 1
        while not state.is_terminal() and total <= _MARGIN * max_histories:
            actions = state.legal_actions()
            level *= len(actions)
            total += level
            state.apply_action(actions[rng.integers(len(actions))])
        above += total > _MARGIN * max_histories
    return above


def _walk(game: Any, max_histories: int, max_bytes: int) -> tuple[tree_builder.Rows, np.ndarray | None]:
    """Every history, and for every information state what a network sees of it, if the game has tensors.

    This loop runs once a history, in Python: it is flat, calls OpenSpiel as seldom as it can, and goes
    depth first. Children are made when their turn comes: some games' states are so large that a path's
    siblings would fill the memory.
    """
    string_of, tensor_of = _view(game, "string"), tensor_view(game)
    if string_of is None:
        raise ValueError(f"{game} gives neither information-state nor observation strings.")
    may_disagree = string_of == "observation_string"
    if may_disagree:
        warnings.warn(
            f"{game} gives no information-state strings: its observation strings stand in for "
            "them, so that policies may forget what an information state would remember. Best responses "
            "and NashConv are still over everything a player has seen and done.",
            stacklevel=3,
        )
    rewarded_anywhere = game.get_type().reward_model == pyspiel.GameType.RewardModel.REWARDS
    rows, tensors = tree_builder.Rows(rewarded_anywhere), array.array("f")
    levels, states, actions_of = rows.levels, rows.states, rows.actions
    # An entry: the state before, the action from there, whether it is the last, the depth that it leads to,
    # and what everyone has earned before.
    stack = [(game.new_initial_state(), -1, False, 0, [0.0] * game.num_players())]
    row, used = 0, 0
    chance = int(pyspiel.PlayerId.CHANCE)  # to compare with the enumeration itself takes as long as a move
    with tqdm.tqdm(desc="compiling", unit=" histories", delay=3, disable=None, leave=False) as progress:
        while stack:
            if row % _REFRESH == 0:
                progress.update(row - progress.n)
            if row >= max_histories:
                raise ValueError(
                    f"{_title(game)} has more than {max_histories:,} histories (stopped after "
                    f"{row:,}): raise max_histories, or play it live instead."
                )
            row += 1
            state, action, is_last, depth, earned = stack.pop()
            if is_last:
                state.apply_action(action)  # a copy takes most of the time
            elif depth:
                state = state.child(action)
            level = levels[depth]
            player = state.current_player()
            if rewarded_anywhere:
                total = state.returns()
                level.rewards.extend([now - before for now, before in zip(total, earned, strict=True)])
                earned = total
            if player >= 0:
                identity = (player, getattr(state, string_of)())
                number = states.get(identity)
                if number is None:
                    number = states[identity] = len(states)
                    actions_of.append(state.legal_actions())
                    if tensor_of is None:
                        size = 8 * number  # one-hot features grow with the square of the states
                    else:
                        seen = getattr(state, tensor_of)()
                        tensors.extend(seen)
                        size = 4 * len(seen)
                    used += size + len(identity[1]) + _TABLES * game.num_distinct_actions()
                    if used + _ROW * row > max_bytes:
                        raise ValueError(
                            f"{_title(game)} takes more than {max_bytes / 2**20:,.0f} MiB "
                            f"(stopped after {row:,} histories with {len(states):,} information states): "
                            "play it live instead."
                        )
                elif may_disagree:
                    rows.check_actions(identity, number, state.legal_actions())
                level.kinds.append(number)
                actions = actions_of[number]
            elif player == chance:
                level.kinds.append(tree.CHANCE)
                outcomes = state.chance_outcomes()
                level.outcomes.extend(outcomes)
                level.num_outcomes.append(len(outcomes))
                actions = [outcome for outcome, _ in outcomes]
            else:
                level.kinds.append(tree.TERMINAL)
                if not rewarded_anywhere:
                    level.rewards.extend(state.returns())
                continue
            depth, is_last = depth + 1, True
            if actions and depth == len(levels):
                levels.append(tree_builder.Level())
            for action in reversed(actions):
                stack.append((state, action, is_last, depth, earned))
                is_last = False
    return rows, np.frombuffer(tensors, np.float32).reshape(len(states), -1) if tensors else None


def float64(table: Any) -> Float[np.ndarray, "... S A"]:
    """Rows that sum to 1 as exactly as float64 can: OpenSpiel's samplers insist on it."""
    array = np.asarray(table, np.float64)
    return array / array.sum(axis=-1, keepdims=True)
