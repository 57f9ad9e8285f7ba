"""OpenSpiel's own conformance tests, which it runs on every game it ships, on ours."""

import numpy as np
import pytest
from open_spiel.integration_tests import api_test
from pohp_neurd.games import cart_pole

from pohp_neurd import openspiel

CATCH = "python_pohp_catch(rows=3,columns=2,horizon=3)"
CART_POLE = "python_pohp_cart_pole(bins=1,horizon=9)"


def decisions_and_ends(cart=cart_pole.Cart(0.0, 0.0, 0.0, 0.0), moves=9):  # noqa: B008 (a tuple)
    """Of cart pole from its middle, by its rules alone."""
    if moves == 0 or cart_pole.has_fallen(cart):
        return 0, 1
    below = [decisions_and_ends(cart_pole.advance(cart, move, xp=np), moves - 1) for move in (0, 1)]
    return 1 + sum(decisions for decisions, _ in below), sum(ends for _, ends in below)


NODES = {
    # Chance, decisions, terminals. Catch: a ball falls for two moves, then the next is drawn.
    CATCH: (1 + 2 * 9, 2 * (1 + 3 + 9 * 2), 2 * 9 * 2 * 3),
    CART_POLE: (4, *decisions_and_ends()),
}


def names_of(base):
    return [name for name in dir(base) if name.startswith("test_")]


def checked(base, game_name, check):
    """Runs one of OpenSpiel's checks as unittest would."""
    case = type("Check", (base,), {"game_name": game_name, "game": openspiel.load_game(game_name)})
    case.setUpClass()
    try:
        getattr(case(check), check)()
    finally:
        case.tearDownClass()


@pytest.mark.parametrize("check", names_of(api_test.EnforceAPIOnFullTreeBase))
@pytest.mark.parametrize("game", NODES)
def test_on_the_full_tree(game, check, monkeypatch):
    monkeypatch.setitem(api_test.TOTAL_NUM_STATES, game, NODES[game])
    monkeypatch.setitem(api_test.PERFECT_RECALL_NUM_STATES, game, NODES[game][1])
    checked(api_test.EnforceAPIOnFullTreeBase, game, check)


@pytest.mark.parametrize("check", names_of(api_test.EnforceAPIOnPartialTreeBase))
@pytest.mark.parametrize("game", ["python_pohp_catch", "python_pohp_cart_pole", CATCH, CART_POLE])
def test_on_sampled_states(game, check):
    checked(api_test.EnforceAPIOnPartialTreeBase, game, check)
