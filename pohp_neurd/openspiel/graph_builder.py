"""An OpenSpiel game as a graph: histories that agree in all that the future depends on are one node."""

import re
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyspiel
import tqdm

from pohp_neurd import agent_state
from pohp_neurd.finite import graph

MAX_NODES = 5_000_000
_CONTINUATIONS = 2_000  # pairs of merged histories that are played on side by side
_REFRESH = 4096  # nodes between two looks at the progress bar


class Memory(NamedTuple):
    """What an agent remembers. An observation is the bytes of its tensor; states can be hashed."""

    begin: Callable[[bytes], Hashable]
    """The agent state at the agent's first turn."""
    keep: Callable[[Any, int], Hashable]
    """What it carries from a turn and its action to the next turn: the less, the more histories are one."""
    resume: Callable[[Any, bytes], Hashable]
    """The agent state at the next turn, from what was kept and what is seen there."""
    sees_actions: bool = True
    """Whether an agent state tells the legal actions too. Not every tensor does: Leduc poker's does not."""


def last_observation() -> Memory:
    """What the agent sees now."""
    return Memory(lambda seen: seen, lambda state, action: None, lambda kept, seen: seen)


def window(length: int) -> Memory:
    """The last `length` pairs of an own action and the observation that followed it."""
    if length < 1:
        raise ValueError(f"a window must have a length of at least 1, but has {length}.")
    blank = ((-1, b""),) * (length - 1)
    return Memory(
        begin=lambda seen: (*blank, (-1, seen)),
        keep=lambda state, action: (state[1:], action),
        resume=lambda kept, seen: (*kept[0], (kept[1], seen)),
    )


def updated(memory: agent_state.UpdateFunction) -> Memory:
    """An update function whose histories are the agent's observations, as float32 arrays."""

    def seen_as(seen: bytes) -> Any:
        return np.frombuffer(seen, np.float32)

    return Memory(
        begin=lambda seen: memory.init(seen_as(seen)),
        keep=lambda state, action: (state, action),
        resume=lambda kept, seen: memory.update(kept[0], kept[1], seen_as(seen)),
        sees_actions=False,
    )


World = Callable[[Any], Hashable]
"""What the future depends on of an OpenSpiel state, beside what its players see and remember."""


def chosen(game: Any, memory: Any, world: Any) -> tuple[Memory, str, World]:
    """The memory, the name of the tensor that players see, and the world, from what a user may write."""
    kind, view = game.get_type(), "observation_tensor"
    worlds: dict[str, World] = {"string": str, "observations": lambda state: None}
    if not (callable(world) or world in worlds):
        raise ValueError(
            f"world must be one of {', '.join(worlds)}, or a function of states, but is {world!r}."
        )
    if isinstance(memory, agent_state.UpdateFunction):
        memory = updated(memory)
    elif memory == "information_state":
        memory, view = last_observation(), "information_state_tensor"
    elif memory == "observation":
        memory = last_observation()
    elif isinstance(memory, str) and re.fullmatch(r"window:\d+", memory):
        memory = window(int(memory.removeprefix("window:")))
    elif not isinstance(memory, Memory):
        raise ValueError(
            "agent_state must be information_state, observation, window:K or an UpdateFunction, but is "
            f"{memory!r}."
        )
    if not getattr(kind, f"provides_{view}"):
        raise ValueError(
            f"{kind.short_name} gives no {view.replace('_', ' ')}s, which these agent states need."
        )
    return memory, view, world if callable(world) else worlds[world]


class _Node(NamedTuple):
    """The first history of a node."""

    state: Any
    player: int
    actions: Any
    """Legal actions, or chance outcomes with their probabilities."""
    views: tuple[bytes, ...]
    """What every agent sees."""
    kept: tuple[Any, ...]
    """What every agent carries from its last turn."""


class _Level(NamedTuple):
    """The nodes of one number of moves."""

    nodes: list[_Node]
    places: dict[Hashable, int]


class Origin(NamedTuple):
    """Where a graph comes from: what it takes to find the row of a live state."""

    game: Any
    memory: Memory
    eye: Callable[[Any, int], bytes]
    rows: Mapping[tuple[int, Hashable], int]

    def row(self, state: Any, player: int) -> int | None:
        """The row of what `player` remembers in `state`; None if the graph has none."""
        past, kept = self.game.new_initial_state(), None
        for action in state.history():
            if past.current_player() == player:
                kept = (self.memory.keep(self._remembered(past, player, kept), action),)
            past.apply_action(action)
        now = self._remembered(state, player, kept)
        actions = tuple(state.legal_actions(player))
        return self.rows.get((player, (now, actions) if self.memory.sees_actions else now))

    def _remembered(self, state: Any, player: int, kept: tuple[Any] | None) -> Hashable:
        seen = self.eye(state, player)
        return self.memory.begin(seen) if kept is None else self.memory.resume(kept[0], seen)


def build(
    game: Any, memory: Memory, eye: Callable[[Any, int], bytes], world: World, max_nodes: int
) -> tuple[graph.Graph, Origin]:
    """The graph of `game` for agents with that memory, level by level.

    Every merge is checked: who moves, what can happen next, and what every player sees are the same. Some
    merged pairs are also played to their ends side by side. Raises a ValueError that names two histories
    that were wrongly merged.
    """
    num_agents = game.num_players()
    rewarded = game.get_type().reward_model == pyspiel.GameType.RewardModel.REWARDS
    rows = graph.Rows(num_agents)
    merges: list[tuple[Any, Any]] = []
    rng = np.random.default_rng(0)
    num_merges = 0
    level = _Level([], {})
    _enter(level, game.new_initial_state(), (None,) * num_agents, eye, world, rewarded)
    total = 0
    with tqdm.tqdm(desc="merging", unit=" nodes", delay=3, disable=None, leave=False) as progress:
        while level.nodes:
            following = _Level([], {})
            rows.begin_level()
            for place, (state, player, pairs, views, kept) in enumerate(level.nodes):
                if place % _REFRESH == 0:
                    progress.update(total + place - progress.n)
                before = state.returns() if rewarded else None
                row_state, sight = -1, -1
                if player >= 0:
                    seen, actions = views[player], tuple(pairs)
                    mine = kept[player]
                    agent_state = memory.begin(seen) if mine is None else memory.resume(mine[0], seen)
                    known = (agent_state, actions) if memory.sees_actions else agent_state
                    row_state = rows.agent_state(player, known, actions, seen)
                    sight = rows.sight(player, (seen, actions))
                    pairs = [(action, 1.0) for action in actions]
                rows.node(player, row_state, sight)
                for action, probability in pairs:
                    child = state.child(action)
                    if player >= 0:
                        carried = list(kept)
                        carried[player] = (memory.keep(agent_state, action),)
                        remembered = tuple(carried)
                    else:
                        remembered = kept
                    if child.is_terminal():
                        rows.edge(action, -1, probability, _gained(child, before))
                        continue
                    found, is_new = _enter(following, child, remembered, eye, world, rewarded)
                    if not is_new:
                        num_merges += 1
                        # A sample of all merges, of fixed size.
                        if len(merges) < _CONTINUATIONS:
                            merges.append((following.nodes[found].state, child))
                        elif (slot := int(rng.integers(num_merges))) < _CONTINUATIONS:
                            merges[slot] = following.nodes[found].state, child
                    rows.edge(action, found, probability, _gained(child, before) if rewarded else None)
            total += len(level.nodes)
            if total + len(following.nodes) > max_nodes:
                raise ValueError(
                    f"{game.get_type().short_name} has more than {max_nodes:,} nodes with these agent "
                    "states: raise max_nodes, let agents remember less, or play it live instead."
                )
            level = following
    largest = max((max(actions, default=0) for actions in rows.actions), default=0)
    num_actions = max(game.num_distinct_actions(), largest + 1)
    _continue_side_by_side(merges, eye, world, rng)
    made, numbers = rows.finish(num_actions, str(game))
    return made, Origin(game, memory, eye, numbers)


def _enter(
    level: _Level, state: Any, kept: tuple[Any, ...], eye: Any, world: World, rewarded: bool
) -> tuple[int, bool]:
    """The place of `state` in its level, and whether it is new there; a merge is checked."""
    player = state.current_player()
    views = tuple([eye(state, agent) for agent in range(len(kept))])
    # With what was earned so far, so that returns are sums of what stands at nodes, as in a tree.
    key = (player, world(state), views, kept, tuple(state.returns()) if rewarded else None)
    place = level.places.setdefault(key, len(level.nodes))
    actions = state.chance_outcomes() if player == pyspiel.PlayerId.CHANCE else state.legal_actions()
    if place < len(level.nodes):
        known = level.nodes[place]
        if actions != known.actions:
            raise _wrong(known.state, state, "what can happen next", known.actions, actions)
        return place, False
    level.nodes.append(_Node(state, player, actions, views, kept))
    return place, True


def _gained(child: Any, before: list[float] | None) -> list[float]:
    total = child.returns()
    return total if before is None else [now - then for now, then in zip(total, before, strict=True)]


def _continue_side_by_side(merges: list[Any], eye: Any, world: World, rng: np.random.Generator) -> None:
    """Plays merged histories to their ends with the same random moves: all must go alike."""
    for one, other in merges:
        first, second = one.clone(), other.clone()
        num_players = first.num_players()
        start = np.array(first.returns()), np.array(second.returns())
        while not first.is_terminal():
            what = _difference(first, second, eye, num_players)
            if what is not None:
                raise _wrong(one, other, *what)
            moves = first.legal_actions()
            action = moves[int(rng.integers(len(moves)))]
            first.apply_action(action)
            second.apply_action(action)
            gains = np.array(first.returns()) - start[0], np.array(second.returns()) - start[1]
            if not np.allclose(*gains, atol=1e-9):
                raise _wrong(one, other, "later rewards", gains[0].tolist(), gains[1].tolist())
        if not second.is_terminal():
            raise _wrong(one, other, "when the game ends", "over", "not over")


def _difference(first: Any, second: Any, eye: Any, num_players: int) -> tuple[str, Any, Any] | None:
    if first.current_player() != second.current_player():
        return "whose turn it is", first.current_player(), second.current_player()
    if first.legal_actions() != second.legal_actions():
        return "the legal actions", first.legal_actions(), second.legal_actions()
    if first.is_chance_node() and first.chance_outcomes() != second.chance_outcomes():
        return "the chances", first.chance_outcomes(), second.chance_outcomes()
    for player in range(num_players):
        if eye(first, player) != eye(second, player):
            return f"what player {player} sees", "one thing", "another"
    return None


def _wrong(one: Any, other: Any, what: str, here: Any, there: Any) -> ValueError:
    return ValueError(
        f"histories {one.history()} and {other.history()} were taken for one node, but differ in {what}: "
        f"{here} against {there}; choose a world that tells them apart."
    )
