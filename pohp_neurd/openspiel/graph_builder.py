"""An OpenSpiel game as a graph: histories that agree in all that the future depends on are one node."""

import collections
import ctypes
import hashlib
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel
import tqdm
from jaxtyping import Float

from pohp_neurd import agent_state
from pohp_neurd.finite import graph

MAX_NODES = 5_000_000
_CONTINUATIONS = 2_000  # pairs of merged histories that are played on side by side
_REFRESH = 4096  # nodes between two looks at the progress bar
_OVER = int(pyspiel.PlayerId.TERMINAL)
_CROWD = 20_000  # nodes after which playouts tell whether there are too many


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
    is_seen: bool = False
    """Whether a network sees the agent state, a window; elsewhere it sees what the agent sees."""

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
        is_seen=True,
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


def _features(shown: Any, num_actions: int) -> Float[np.ndarray, "D"]:
    """What is seen; of a window each pair's own action, one-hot, and observation, zeros where it is blank."""
    if isinstance(shown, bytes):
        return np.frombuffer(shown, np.float32)
    observed = np.zeros((len(shown), len(shown[-1][1]) // 4), np.float32)
    acted = np.zeros((len(shown), num_actions), np.float32)
    for place, (action, seen) in enumerate(shown):
        if seen:
            observed[place] = np.frombuffer(seen, np.float32)
        if action >= 0:
            acted[place, action] = 1.0
    return np.concatenate([acted, observed], axis=1).reshape(-1)


def digest(player: int, known: Hashable) -> bytes:
    """An agent state of tuples, numbers and bytes in 16 bytes, the same wherever it is computed."""
    return hashlib.blake2b(repr((player, known)).encode(), digest_size=16).digest()


class Origin(NamedTuple):
    """Where a graph comes from: what it takes to find the row of a live state."""

    game: Any
    agent_state: Any
    """As the user wrote it; so is the world."""
    world: Any
    memory: Memory
    eye: Eye
    rows: Mapping[Any, int]
    """By `digest`, or by player and agent state where `agent_state` is no string."""

    def row(self, state: Any, player: int) -> int | None:
        """The row of what `player` remembers in `state`; None if the graph has none."""
        past, kept = self.game.new_initial_state(), None
        for action in state.history():
            if past.current_player() == player:
                kept = (self.memory.keep(self.memory.at(kept, self.eye(past, player)), action),)
            past.apply_action(action)
        known = self.memory.at(kept, self.eye(state, player))
        if self.memory.sees_actions:
            known = known, tuple(state.legal_actions(player))
        return self.rows.get(digest(player, known) if isinstance(self.agent_state, str) else (player, known))


class _Node(NamedTuple):
    """A node of a level, which is known by its `_Key`."""

    place: int
    """In its level: the nodes of one number of moves."""
    state: Any
    """Of its first history."""
    actions: tuple[Any, ...]
    """Legal actions, or chance outcomes with their probabilities."""


_Key = tuple[int, tuple[Any, ...], tuple[bytes, ...], Hashable, tuple[float, ...] | None]
"""What makes a node: who moves, what every agent carries from its last turn and what it sees, the world, and
what was earned so far, as returns are sums of what stands at nodes."""


def build(
    game: Any, memory: Memory, eye: Eye, world: World, *, max_nodes: int
) -> tuple[graph.Graph, dict[Any, int]]:
    """The graph of `game` for agents with that memory, level by level, and the rows of their states.

    Every merge is checked: who moves, what can happen next, and what every player sees are the same. Some
    merged pairs are also played to their ends side by side. Raises a ValueError that names two histories
    that were wrongly merged.
    """
    rewarded = game.get_type().reward_model == pyspiel.GameType.RewardModel.REWARDS
    agents = range(game.num_players())
    rows = graph.Rows(len(agents))
    action_of, child_of = rows.action.append, rows.child.append
    one_of_each: dict[Any, Any] = {}  # what is equal is one object: less memory, and it is hashed once
    one_of = one_of_each.setdefault
    merges: list[tuple[Any, Any]] = []
    rng = np.random.default_rng(0)
    num_merges = total = 0

    def identified(state: Any, player: int, kept: tuple[Any, ...]) -> _Key:
        """What makes the node of `state`, where `player` moves."""
        seen = tuple([one_of(view := eye(state, agent), view) for agent in agents])
        return player, kept, seen, world(state), tuple(state.returns()) if rewarded else None

    def carried_on(kept: tuple[Any, ...], player: int, agent_state: Any, action: int) -> tuple[Any, ...]:
        """What every agent carries on after an action."""
        mine = (memory.keep(agent_state, action),)
        if mine == kept[player]:
            return kept
        after = (*kept[:player], mine, *kept[player + 1 :])
        return one_of(after, after)

    def entered(level: dict[_Key, _Node], state: Any, player: int, kept: tuple[Any, ...]) -> _Node:
        """The node of `state` in its level, new or a merge, which is checked."""
        key = identified(state, player, kept)
        actions = tuple(state.legal_actions() if player >= 0 else state.chance_outcomes())
        node = level.get(key)
        if node is None:
            node = level[key] = _Node(len(level), state, one_of(actions, actions))
        elif actions != node.actions:
            raise _wrong(node.state, state, "what can happen next", list(node.actions), list(actions))
        return node

    def surely_larger() -> bool:
        """Whether playouts show more than `max_nodes` nodes: a few, and many where a few leave that open."""
        return at_least(5) > max_nodes / 8 and at_least(40) > max_nodes

    def at_least(pairs_per_node: int) -> float:
        """Fewer nodes than there are, as playouts show.

        Two playouts meet at the same node of a level with a probability of at least one over the number of
        its nodes. So the pairs over those that met is less than that number, but for chance, which the
        allowance is for (three standard errors and ten).
        """
        begin = game.new_initial_state()
        playouts: list[Any] = [(begin, begin.current_player(), (None,) * len(agents))]
        playouts *= int((pairs_per_node * max_nodes) ** 0.5)
        least = 0.0
        while len(playouts) > 1 and least <= max_nodes:
            counts = collections.Counter(identified(*playout) for playout in playouts).values()
            pairs, met = (sum(n * (n - 1) / 2 for n in sizes) for sizes in ([len(playouts)], counts))
            least += pairs / (met + 3 * met**0.5 + 10)
            playouts = [after for playout in playouts if (after := stepped(*playout))[1] != _OVER]
        return least

    def stepped(state: Any, player: int, kept: tuple[Any, ...]) -> tuple[Any, int, tuple[Any, ...]]:
        """A random move."""
        actions = state.legal_actions()
        action = actions[int(rng.integers(len(actions)))]
        if player >= 0:
            kept = carried_on(kept, player, memory.at(kept[player], eye(state, player)), action)
        child = state.child(action)
        return child, child.current_player(), kept

    limit = min(max_nodes, max(_CROWD, max_nodes // 50))
    level: dict[_Key, _Node] = {}
    root = game.new_initial_state()
    entered(level, root, root.current_player(), (None,) * len(agents))
    with tqdm.tqdm(desc="merging", unit=" nodes", delay=3, disable=None, leave=False) as progress:
        while level:
            # From the end, so that each state can go as soon as its node is done.
            keys, following = list(level)[::-1], dict[_Key, _Node]()
            rows.begin_level()
            size = len(keys)
            while keys:
                key = keys.pop()
                player, kept, views, _, before = key
                place, state, pairs = level.pop(key)
                if place % _REFRESH == 0:
                    progress.update(total + place - progress.n)
                if total + size + len(following) > limit:
                    if limit == max_nodes or surely_larger():
                        raise _too_large(game, max_nodes)
                    limit = max_nodes
                actions = pairs
                if player >= 0:
                    seen = views[player]
                    agent_state = memory.at(kept[player], seen)
                    known = (agent_state, actions) if memory.sees_actions else agent_state
                    shown = agent_state if memory.is_seen else seen
                    rows.node(player, rows.agent_state(player, known, actions, shown), (seen, actions))
                else:
                    actions, probabilities = zip(*pairs, strict=True)
                    rows.node(player, -1, None)
                    rows.chances(probabilities)
                for action, child in _children(state, actions):
                    action_of(action)
                    mover = child.current_player()
                    if mover == _OVER:
                        child_of(-1)
                        rows.reward(_gained(child, before))
                        continue
                    remembered = kept if player < 0 else carried_on(kept, player, agent_state, action)
                    found = entered(following, child, mover, remembered)
                    child_of(found.place)
                    if rewarded:
                        rows.reward(_gained(child, before))
                    if found.state is not child:
                        num_merges += 1
                        # A sample of all merges, of fixed size.
                        slot = len(merges) if len(merges) < _CONTINUATIONS else int(rng.integers(num_merges))
                        if slot < _CONTINUATIONS:
                            merges[slot : slot + 1] = [(found.state.clone(), child)]
            total += size
            level = following
    largest = max((max(actions, default=0) for actions in rows.actions), default=0)
    num_actions = max(game.num_distinct_actions(), largest + 1)
    _continue_side_by_side(merges, eye, rng)
    return rows.finish(num_actions, str(game), _features)


def give_back() -> None:
    """Returns the memory of states that are gone to the system, which the C library keeps unless told."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; others do so by themselves
    if trim is not None:
        trim(0)


def _children(state: Any, actions: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Every action and the state after it; after the last, `state` itself: copies take most of the time."""
    for action in actions[:-1]:
        yield action, state.child(action)
    state.apply_action(actions[-1])
    yield actions[-1], state


def _too_large(game: Any, max_nodes: int) -> ValueError:
    return ValueError(
        f"{game.get_type().short_name} has more than {max_nodes:,} nodes with these agent states: raise "
        "max_nodes, let agents remember less, or play it live instead."
    )


def _gained(child: Any, before: Sequence[float] | None) -> list[float]:
    total = child.returns()
    return total if before is None else [now - then for now, then in zip(total, before, strict=True)]


def _continue_side_by_side(merges: list[Any], eye: Eye, rng: np.random.Generator) -> None:
    """Plays merged histories to their ends with the same random moves: all must go alike."""
    for one, other in merges:
        first, second = one.clone(), other.clone()
        start = first.returns(), second.returns()
        while not first.is_terminal():
            for (what, here), (_, there) in zip(_facts(first, eye), _facts(second, eye), strict=False):
                if here != there:
                    shown = ("one thing", "another") if isinstance(here, bytes) else (here, there)
                    raise _wrong(one, other, what, *shown)
            moves = first.legal_actions()
            action = moves[int(rng.integers(len(moves)))]
            first.apply_action(action)
            second.apply_action(action)
            here, there = _gained(first, start[0]), _gained(second, start[1])
            if any(abs(mine - yours) > 1e-9 for mine, yours in zip(here, there, strict=True)):
                raise _wrong(one, other, "later rewards", here, there)
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
        f"{_brief(here)} against {_brief(there)}; choose a world that tells them apart."
    )


def _brief(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
