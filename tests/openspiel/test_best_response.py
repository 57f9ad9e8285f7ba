"""Best responses that play, against the values that are computed for them."""

import numpy as np
import pyspiel
import pytest

from pohp_neurd import exact, openspiel
from pohp_neurd.finite import tree_builder
from pohp_neurd.openspiel import players
from pohp_neurd.openspiel.live import match


def random_table(world, seed):
    """Some actions are never taken."""
    rng = np.random.default_rng(seed)
    weights = np.where(world.legal, rng.exponential(size=world.legal.shape), 0.0)
    kept = np.where(rng.random(world.legal.shape) < 0.8, weights, 0.0)
    weights = np.where(kept.sum(axis=1, keepdims=True) > 0, kept, weights)
    return weights / weights.sum(axis=1, keepdims=True)


def expected_return(state, policies, player):
    """A full walk of the pyspiel game: every history that play can come to."""
    if state.is_terminal():
        return state.returns()[player]
    if state.is_chance_node():
        outcomes = state.chance_outcomes()
    else:
        outcomes = policies[state.current_player()].action_probabilities(state).items()
    return sum(
        chance * expected_return(state.child(action), policies, player)
        for action, chance in outcomes
        if chance > 0
    )


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("kuhn_poker", "observation"),
        ("kuhn_poker(players=3)", "window:1"),
        pytest.param("leduc_poker", "observation", marks=pytest.mark.thorough),
        ("dark_hex(board_size=2,gameversion=adh)", "observation"),
        ("dark_hex(board_size=2,gameversion=cdh)", "observation"),
        ("leduc_poker", None),
    ],
)
def test_play_is_worth_what_a_best_response_is(name, memory):
    game = pyspiel.load_game(name)
    world = openspiel.compile_game(name, **({} if memory is None else {"agent_state": memory}))
    table = random_table(world, 0)
    others = (openspiel.TablePolicy if memory is None else openspiel.MemoryPolicy)(world, table)
    for player, value in enumerate(exact.best_response_values(world, table)):
        seats = [others] * world.num_agents
        seats[player] = openspiel.best_response(world, table, player)
        assert expected_return(game.new_initial_state(), seats, player) == pytest.approx(value, abs=1e-9)


def test_it_plays_wherever_policies_do():
    world = openspiel.compile_game("kuhn_poker", agent_state="observation")
    table = random_table(world, 1)
    responder = openspiel.best_response(world, table, 1)
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    for action in (0, 1, 1):
        state.apply_action(action)
    answer = responder.action_probabilities(state)
    assert sorted(answer.values()) == [0.0, 1.0]
    assert answer[openspiel.bot(responder, 1).step(state)] == 1.0
    told = []
    players.play_in_terminal("kuhn_poker", responder, 0, ask=lambda question: "0", tell=told.append)
    assert any(line.startswith("Player 1: ") for line in told)
    first = pyspiel.load_game("kuhn_poker").new_initial_state()
    for action in (0, 1):
        first.apply_action(action)
    with pytest.raises(ValueError, match="does not know the state"):  # it is for the other seat
        responder.action_probabilities(first)


def test_it_wins_matches_by_its_value():
    """4,000 episodes: the mean return is the best responses' mean value, within 5 standard errors."""
    world = openspiel.compile_game("kuhn_poker", agent_state="observation")
    table = exact.uniform(world)
    both = [openspiel.best_response(world, table, player) for player in (0, 1)]

    class Both(openspiel.TablePolicy):
        """Either seat's response."""

        def __init__(self):
            self.game = both[0].game

        def action_probabilities(self, state, player_id=None):
            player = state.current_player() if player_id is None else player_id
            return both[player].action_probabilities(state, player)

    found = match.play("kuhn_poker", [Both(), openspiel.MemoryPolicy(world, table)], 4000, seed=0)
    wide = (found.high - found.low) / (2 * match.NORMAL_95) * 5
    assert found.mean == pytest.approx(exact.best_response_values(world, table).mean(), abs=wide)


def test_what_has_no_best_response_is_told():
    world = openspiel.compile_game("kuhn_poker", agent_state="observation")
    with pytest.raises(ValueError, match="player must be"):
        openspiel.best_response(world, exact.uniform(world), 2)
    with pytest.raises(ValueError, match="table must have the shape"):
        openspiel.best_response(world, np.ones((3, 2)) / 2, 0)


def test_a_tree_whose_players_forget_has_none():
    """Two actions in a row of a player who does not remember the first."""

    def describe(path):
        if len(path) < 2:
            return tree_builder.Node(0, [0.0], ("first", "second")[len(path)], range(2))
        return tree_builder.Node(-2, [float(sum(path))])

    forgetful = tree_builder.grow(
        (), describe, lambda path, action: (*path, action), num_agents=1, num_actions=2, name="forgetful"
    )
    with pytest.raises(ValueError, match="needs more memory than the information states of player 0 have"):
        openspiel.best_response(forgetful, np.full((2, 2), 0.5), 0)
