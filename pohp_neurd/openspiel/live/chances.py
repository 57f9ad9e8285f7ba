"""Chance in live games: what is drawn, and what need not be asked of the game again and again."""

import bisect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyspiel

_MOST = 4096
"""Opening chance events that are remembered; a game with more is asked for the others."""


class Deals:
    """The tree of chance events before the first decision, grown as they are drawn.

    A node is a chance node's outcomes and its children by outcome; a leaf, the state that someone decides
    in. What is remembered changes no draw: each chance node takes one uniform number, known or not.
    """

    def __init__(self, game: Any) -> None:
        kind = game.get_type().chance_mode
        # A game that samples its own chance events would repeat, in a copy, what it has drawn.
        self.room = _MOST if kind == pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC else 0
        self.root: Any = None


def dealer(game: Any, deals: Deals, rng: np.random.Generator) -> Callable[[], tuple[Any, int]]:
    """A function that begins an episode: its state when the first decision is due, and whose that is."""
    if not deals.room and deals.root is None:

        def begin() -> tuple[Any, int]:
            state = game.new_initial_state()
            return state, settle(state, rng)

        return begin
    if deals.root is None:
        deals.root = _node(game.new_initial_state())

    def deal() -> tuple[Any, int]:
        node = deals.root
        while node[0] is not None:
            outcome = _drawn(node[0], rng.random())
            following = node[1].get(outcome)
            if following is None:
                state = node[2].child(outcome)
                if deals.room <= 0:
                    return state, settle(state, rng)
                deals.room -= 1
                following = node[1][outcome] = _node(state)
            node = following
        return node[2].clone(), node[3]

    return deal


def _node(state: Any) -> tuple[Any, dict[int, Any], Any, int]:
    """Outcomes as `_ends` gives them (None where it is no chance node), children, state, who decides."""
    seat = state.current_player()
    outcomes = _ends(state.chance_outcomes()) if seat == pyspiel.PlayerId.CHANCE else None
    return outcomes, {}, state, seat


def _ends(outcomes: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    """The outcomes that are possible, and where the part of each in [0, 1) ends; the last one's at 1.

    What rounding leaves open is below 1e-15 and goes to the last, as nothing else is known of these odds.
    """
    possible = [(outcome, probability) for outcome, probability in outcomes if probability > 0]
    ends = list(itertools.accumulate(probability for _, probability in possible))
    return [outcome for outcome, _ in possible], [*(end / ends[-1] for end in ends[:-1]), 1.0]


def _drawn(known: tuple[list[int], list[float]], uniform: float) -> int:
    outcomes, ends = known
    return outcomes[bisect.bisect_right(ends, uniform)]


def settle(state: Any, rng: np.random.Generator) -> int:
    """Plays chance until someone has to decide or it is over; whose turn it is then."""
    seat = state.current_player()
    while seat == pyspiel.PlayerId.CHANCE:
        state.apply_action(_drawn(_ends(state.chance_outcomes()), rng.random()))
        seat = state.current_player()
    return seat
