"""How live episodes begin, remembered: what need not be asked of the game again; and its chance events.

Episodes share their first moves with many before them. The tree of these is grown by histories that have been
played before, so that what is played most is in it; a state leaves it as a copy. Where all episodes have the
same chance events before the first decision, and few, these are laid out beforehand. What is remembered
changes no draw: each chance node takes one uniform number, known or not.
"""

import bisect
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyspiel

_MOST = 1 << 15
"""Histories that are remembered."""
_BYTES = 1 << 26
"""Memory for them, roughly."""
_DEALS = 1 << 12
"""First decisions that are laid out beforehand, at the most."""
CHANCE = int(pyspiel.PlayerId.CHANCE)
Draw = Callable[[], float]
"""The next uniform number of a stream."""


def one_by_one(rng: np.random.Generator) -> Draw:
    """The generator's own numbers, in their order, taken from it many at a time: one call costs as much."""

    def numbers() -> Iterator[float]:
        while True:
            yield from rng.random(256).tolist()

    return numbers().__next__


class Node:
    """A history: its state, which nobody may change, who decides, what that seat sees, and what follows."""

    __slots__ = ("children", "ends", "outcomes", "seat", "seen", "state")

    def __init__(self, state: Any, see: Callable[[Any, int], bytes]) -> None:
        self.state, self.seat = state, int(state.current_player())
        self.seen = see(state, self.seat) if self.seat >= 0 else b""
        self.outcomes: tuple[int, ...] | None = None
        self.ends: tuple[float, ...] | None = None
        if self.seat == CHANCE:
            self.outcomes, self.ends = _ends(tuple(state.chance_outcomes()))
        self.children: dict[int, Node | None] = {}
        """By action; after a chance event by its place among the outcomes. None: has been played once."""


class Openings:
    """The tree; `see(state, seat)` is all that decides there, the agent state and what is legal, as bytes."""

    def __init__(self, game: Any, see: Callable[[Any, int], bytes], size: int) -> None:
        self._game, self._see = game, see
        # A game that samples its own chance events would repeat, in a copy, what it has drawn.
        known = game.get_type().chance_mode != pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
        self._room = min(_MOST, _BYTES // (2048 + size)) if known else 0
        self._root = Node(game.new_initial_state(), see) if self._room else None
        self._deals = self._dealt(self._root) if self._root else None

    def _dealt(self, root: Node) -> tuple[list[np.ndarray], list[Node]] | None:
        """The ends of each chance event before the first decision, and what they lead to, in their order.

        None where these events are not the same on every way, or too many.
        """
        levels, nodes = [], [root]
        while (ends := nodes[0].ends) is not None:
            count = len(nodes) * len(ends)
            if any(node.ends != ends for node in nodes) or count > min(_DEALS, self._room // 2):
                return None
            self._room -= count
            levels.append(np.array(ends))
            nodes = [self._grown(node, place) for node in nodes for place in range(len(ends))]
        return None if any(node.ends is not None for node in nodes) else (levels, nodes)

    def begin(
        self, count: int, rng: np.random.Generator
    ) -> tuple[list[Node | None], list[Any], list[int], Draw]:
        """Episodes when their first decisions are due, or over; and the draws that chance goes on with.

        Of all episodes: where they are in the tree, their states, who decides. `rng` is theirs from now on:
        how far it has gone depends on what is known.
        """
        if self._deals is None:
            draw = one_by_one(rng)
            columns = zip(*(self._begun(draw) for _ in range(count)), strict=True)
            walked, states, seats = (list(column) for column in columns)
            return walked, states, seats, draw
        levels, nodes = self._deals
        which = np.zeros(count, np.intp)
        for ends, uniform in zip(levels, rng.random((count, len(levels))).T, strict=True):
            which = which * len(ends) + np.searchsorted(ends, uniform, side="right")
        dealt: list[Any] = [nodes[place] for place in which.tolist()]
        return dealt, [node.state for node in dealt], [node.seat for node in dealt], one_by_one(rng)

    def _begun(self, draw: Draw) -> tuple[Node | None, Any, int]:
        if self._root is None:
            state = self._game.new_initial_state()
            return None, state, settle(state, draw)
        return self.settled(self._root, draw)

    def after(self, node: Node, action: int, draw: Draw) -> tuple[Node | None, Any, int]:
        """What follows in the tree, when the next decision is due; out of it, with a state of its own."""
        following = node.children.get(action)
        return self._left(node, action, draw) if following is None else self.settled(following, draw)

    def settled(self, node: Node, draw: Draw) -> tuple[Node | None, Any, int]:
        """The same after all chance events that are due."""
        bisect_right = bisect.bisect_right
        while (ends := node.ends) is not None:
            place = bisect_right(ends, draw())
            following = node.children.get(place)
            if following is None:
                return self._left(node, place, draw)
            node = following
        return node, node.state, node.seat

    def _grown(self, node: Node, place: int) -> Node:
        node.children[place] = known = Node(_child(node, place), self._see)
        return known

    def _left(self, node: Node, place: int, draw: Draw) -> tuple[Node | None, Any, int]:
        state = _child(node, place)
        if self._room > 0:
            self._room -= 1
            if place in node.children:
                node.children[place] = known = Node(state, self._see)
                return self.settled(known, draw)
            node.children[place] = None
        return None, state, settle(state, draw)


def _child(node: Node, place: int) -> Any:
    return node.state.child(place if node.outcomes is None else node.outcomes[place])


# Most chance nodes have the odds of others: one copy for all of them stays in the processor's own memory.
@functools.lru_cache(maxsize=1024)
def _ends(outcomes: tuple[tuple[int, float], ...]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The outcomes that are possible, and where the part of each in [0, 1) ends; the last one's at 1.

    What rounding leaves open is below 1e-15 and goes to the last, as nothing else is known of these odds.
    """
    possible = [(outcome, probability) for outcome, probability in outcomes if probability > 0]
    ends = list(itertools.accumulate(probability for _, probability in possible))
    return tuple(outcome for outcome, _ in possible), (*(end / ends[-1] for end in ends[:-1]), 1.0)


def settle(state: Any, draw: Draw) -> int:
    """Plays chance until someone has to decide or it is over; whose turn it is then."""
    seat = state.current_player()
    while seat == CHANCE:
        outcomes, ends = _ends(tuple(state.chance_outcomes()))
        state.apply_action(outcomes[bisect.bisect_right(ends, draw())])
        seat = state.current_player()
    return seat
