"""NashConv of anything that can be read as a policy, in anything that can be read as a game."""

import collections
from typing import Any

import numpy as np
from jaxtyping import Float

from pohp_neurd import exact
from pohp_neurd.finite import graph
from pohp_neurd.finite import tree as trees
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import policies


def nash_conv(tree_or_game: Any, policy: Any) -> float | Float[np.ndarray, "K"]:
    """NashConv of `policy`: what the players would gain by best responses, added up; exact in float64.

    `tree_or_game` is a compiled tree (the fast way: compile once, evaluate often), an OpenSpiel game or
    its name; `policy` whatever `policies.table_of` reads: an array [S, A] in the tree's order, an OpenSpiel
    policy of any kind, or a network as (model, parameters). A stack of arrays [K, S, A] gives K figures. On a
    compiled graph the policy is an array [S, A] for its agent states.

    >>> import pyspiel
    >>> game = pyspiel.load_game("kuhn_poker")
    >>> round(nash_conv(game, pyspiel.UniformRandomPolicy(game)), 6)
    0.916667
    """
    if isinstance(tree_or_game, graph.Graph):
        return exact.nash_conv(tree_or_game, policy)
    tree = tree_or_game if isinstance(tree_or_game, trees.Tree) else _compiled(tree_or_game)
    return exact.nash_conv(tree, policies.table_of(tree, policy))


_recent: collections.deque[tuple[Any, trees.Tree]] = collections.deque(maxlen=4)


def _compiled(game: Any) -> trees.Tree:
    """The tree of `game`; kept for a while, as training loops ask for the same game again and again."""
    for known, tree in _recent:
        # Games are not hashable, and two that print alike may differ: only the same object will do.
        if known is game or (isinstance(known, str) and isinstance(game, str) and known == game):
            return tree
    tree = compiling.compile_game(game)
    _recent.append((game, tree))
    return tree
