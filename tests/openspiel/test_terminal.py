"""A game in the terminal: what is shown, what is understood, and who may leave."""

import numpy as np
import pytest

from pohp_neurd.openspiel import players


def sit(answers, seat=0, seed=0, game="kuhn_poker"):
    """Plays with these answers against uniform play; what was told, and the returns."""
    told, left = [], iter(answers)

    class Asked:
        def action_probabilities(self, state, player):
            legal = state.legal_actions(player)
            return {action: 1 / len(legal) for action in legal}

    found = players.play_in_terminal(
        game, Asked(), seat, seed=seed, ask=lambda _: next(left), tell=told.append
    )
    return told, found


def test_a_game_by_number_and_by_name():
    for answers in (["0", "0"], ["pass", "PASS"]):
        told, returns = sit(answers)
        assert sum(returns) == 0
        assert told[-1].startswith("Returns: player 0 ")
        assert any(line.startswith("Player 1: ") for line in told)


def test_advice_wrong_answers_and_leaving():
    told, returns = sit(["?", "7", "raise", "q"])
    assert returns is None
    assert "Pass 50.0%, Bet 50.0%" in told
    assert "'7' is none of the choices: type a number from 0 to 1, or a name." in told
    assert "'raise' is none of the choices: type a number from 0 to 1, or a name." in told


def test_a_seat_that_is_not_there():
    with pytest.raises(ValueError, match="seat"):
        sit([], seat=2)


def test_the_opponents_draws_are_independent_of_the_cards():
    """Uniform play against one who always passes: 1,500 games, the opponent's bets for each card it holds."""
    bets = {card: [] for card in "012"}
    for seed in range(1_500):
        told, _ = sit(["0", "0"], seed=seed)
        (move,) = [line for line in told if line.startswith("Player 1: ")]
        bets[told[-2][2]].append(move == "Player 1: Bet")
    for chosen in bets.values():
        assert abs(np.mean(chosen) - 0.5) < 5 * 0.5 / np.sqrt(len(chosen))


def test_hidden_moves_stay_hidden():
    """In phantom tic-tac-toe nobody sees the other's stones; in Kuhn poker every action is public."""
    told, _ = sit(["0"] * 20, game="phantom_ttt")
    assert any(line == "Player 1 moves." for line in told)
    assert not any(line.startswith("Player 1: ") for line in told)
