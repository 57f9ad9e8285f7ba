"""An OpenSpiel game as a graph: histories that agree in all that the future depends on are one node."""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
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

    def at(self, kept: tuple[Any] | None, seen: bytes) -> Hashable:
        """The agent state where `seen` is seen; `kept` holds what was kept, None at the first turn."""
        return self.begin(seen) if kept is None else self.resume(kept[0], seen)


_LAST_OBSERVATION = Memory(lambda seen: seen, lambda state, action: None, lambda kept, seen: seen)


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


Eye = Callable[[Any, int], bytes]
"""What a player sees of an OpenSpiel state: a float32 tensor's bytes."""
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
        memory, view = _LAST_OBSERVATION, "information_state_tensor"
    elif memory == "observation":
        memory = _LAST_OBSERVATION
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

    place: int
    """In its level: the nodes of one number of moves."""
    state: Any
    player: int
    actions: Any
    """Legal actions, or chance outcomes with their probabilities."""
    views: tuple[bytes, ...]
    """What every agent sees."""
    kept: tuple[Any, ...]
    """What every agent carries from its last turn."""


class Origin(NamedTuple):
    """Where a graph comes from: what it takes to find the row of a live state."""

    game: Any
    memory: Memory
    eye: Eye
    rows: Mapping[tuple[int, Hashable], int]

    def row(self, state: Any, player: int) -> int | None:
        """The row of what `player` remembers in `state`; None if the graph has none."""
        past, kept = self.game.new_initial_state(), None
        for action in state.history():
            if past.current_player() == player:
                kept = (self.memory.keep(self.memory.at(kept, self.eye(past, player)), action),)
            past.apply_action(action)
        now = self.memory.at(kept, self.eye(state, player))
        actions = tuple(state.legal_actions(player))
        return self.rows.get((player, (now, actions) if self.memory.sees_actions else now))


def build(game: Any, memory: Memory, eye: Eye, world: World, max_nodes: int) -> tuple[graph.Graph, Origin]:
    """The graph of `game` for agents with that memory, level by level.

    Every merge is checked: who moves, what can happen next, and what every player sees are the same. Some
    merged pairs are also played to their ends side by side. Raises a ValueError that names two histories
    that were wrongly merged.
    """
    rewarded = game.get_type().reward_model == pyspiel.GameType.RewardModel.REWARDS
    rows = graph.Rows(game.num_players())
    merges: list[tuple[Any, Any]] = []
    rng = np.random.default_rng(0)
    num_merges = total = 0
    level: dict[Hashable, _Node] = {}
    _enter(level, game.new_initial_state(), (None,) * game.num_players(), eye, world, rewarded)
    with tqdm.tqdm(desc="merging", unit=" nodes", delay=3, disable=None, leave=False) as progress:
        while level:
            following: dict[Hashable, _Node] = {}
            rows.begin_level()
            for place, state, player, pairs, views, kept in level.values():
                if place % _REFRESH == 0:
                    progress.update(total + place - progress.n)
                before = state.returns() if rewarded else None
                row_state, sight = -1, -1
                if player >= 0:
                    seen, actions = views[player], tuple(pairs)
                    agent_state = memory.at(kept[player], seen)
                    known = (agent_state, actions) if memory.sees_actions else agent_state
                    row_state = rows.agent_state(player, known, actions, seen)
                    sight = rows.sight(player, (seen, actions))
                    pairs = [(action, 1.0) for action in actions]
                rows.node(player, row_state, sight)
                for action, probability in pairs:
                    child = state.child(action)
                    remembered = kept
                    if player >= 0:
                        carried = (memory.keep(agent_state, action),)
                        remembered = (*kept[:player], carried, *kept[player + 1 :])
                    if child.is_terminal():
                        rows.edge(action, -1, probability, _gained(child, before))
                        continue
                    found = _enter(following, child, remembered, eye, world, rewarded)
                    if found.state is not child:
                        num_merges += 1
                        # A sample of all merges, of fixed size.
                        if len(merges) < _CONTINUATIONS:
                            merges.append((found.state, child))
                        elif (slot := int(rng.integers(num_merges))) < _CONTINUATIONS:
                            merges[slot] = found.state, child
                    rows.edge(action, found.place, probability, _gained(child, before) if rewarded else None)
            total += len(level)
            if total + len(following) > max_nodes:
                raise ValueError(
                    f"{game.get_type().short_name} has more than {max_nodes:,} nodes with these agent "
                    "states: raise max_nodes, let agents remember less, or play it live instead."
                )
            level = following
    largest = max((max(actions, default=0) for actions in rows.actions), default=0)
    num_actions = max(game.num_distinct_actions(), largest + 1)
    _continue_side_by_side(merges, eye, rng)
    made, numbers = rows.finish(num_actions, str(game))
    return made, Origin(game, memory, eye, numbers)


def _enter(
    level: dict[Hashable, _Node], state: Any, kept: tuple[Any, ...], eye: Eye, world: World, rewarded: bool
) -> _Node:
    """The node of `state` in its level, new or a merge, which is checked."""
    player = state.current_player()
    views = tuple([eye(state, agent) for agent in range(len(kept))])
    # With what was earned so far, so that returns are sums of what stands at nodes, as in a tree.
    key = (player, world(state), views, kept, tuple(state.returns()) if rewarded else None)
    actions = state.chance_outcomes() if player == pyspiel.PlayerId.CHANCE else state.legal_actions()
    node = level.setdefault(key, _Node(len(level), state, player, actions, views, kept))
    if actions != node.actions:
        raise _wrong(node.state, state, "what can happen next", node.actions, actions)
    return node


def _gained(child: Any, before: list[float] | None) -> list[float]:
    total = child.returns()
    return total if before is None else [now - then for now, then in zip(total, before, strict=True)]


def _continue_side_by_side(merges: list[Any], eye: Eye, rng: np.random.Generator) -> None:
    """Plays merged histories to their ends with the same random moves: all must go alike."""
    for one, other in merges:
        first, second = one.clone(), other.clone()
        start = np.array(first.returns()), np.array(second.returns())
        while not first.is_terminal():
            for (what, here), (_, there) in zip(_facts(first, eye), _facts(second, eye), strict=False):
                if here != there:
                    shown = ("one thing", "another") if isinstance(here, bytes) else (here, there)
                    raise _wrong(one, other, what, *shown)
            moves = first.legal_actions()
            action = moves[int(rng.integers(len(moves)))]
            first.apply_action(action)
            second.apply_action(action)
            gains = np.array(first.returns()) - start[0], np.array(second.returns()) - start[1]
            if not np.allclose(*gains, atol=1e-9):
                raise _wrong(one, other, "later rewards", gains[0].tolist(), gains[1].tolist())
        if not second.is_terminal():
            raise _wrong(one, other, "when the game ends", "over", "not over")


def _facts(state: Any, eye: Eye) -> Iterator[tuple[str, Any]]:
    yield "whose turn it is", state.current_player()
    yield "the legal actions", state.legal_actions()
    if state.is_chance_node():
        yield "the chances", state.chance_outcomes()
    for player in range(state.num_players()):
        yield f"what player {player} sees", eye(state, player)


def _wrong(one: Any, other: Any, what: str, here: Any, there: Any) -> ValueError:
    return ValueError(
        f"histories {one.history()} and {other.history()} were taken for one node, but differ in {what}: "
        f"{here} against {there}; choose a world that tells them apart."
    )
