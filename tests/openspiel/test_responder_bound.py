"""Seats of a match, and the interval of a bound on NashConv: who sits where, whose variance counts."""

import numpy as np
import pytest
from open_spiel.python import policy as openspiel_policy

from pohp_neurd.openspiel.live import game as live_game
from pohp_neurd.openspiel.live import match as matches
from pohp_neurd.openspiel.live import train as live


class Always(openspiel_policy.Policy):
    """One action wherever it is legal."""

    def __init__(self, game, action):
        openspiel_policy.Policy.__init__(self, game, list(range(game.num_players())))
        self._action = action

    def action_probabilities(self, state, player_id=None):
        return {action: float(action == self._action) for action in state.legal_actions(player_id)}


def squared_error(estimate):
    """Of the mean, from the interval."""
    return ((estimate.high - estimate.low) / 2 / matches.NORMAL_95) ** 2


def test_the_responders_own_variance_is_in_the_interval():
    """Rock against rock always ends in a draw: all variance is the responders'.

    A responder that still plays each action with a probability of about a third gains −1, 0 or 1 with a
    variance of about 2/3, and exactly (wins + losses) / n − mean².
    """
    world = live_game.live_game("matrix_rps")
    config = live.Config(batch_episodes=64, slots=64, torso=(4,), learning_rate=1e-6, magnet_strength=0.0)
    episodes = 400
    bound = matches.best_response_bound(
        world, Always(world.game, 0), num_updates=1, num_episodes=episodes, config=config
    )
    for gain in bound.gains:
        assert 0.2 < squared_error(gain) * episodes < 1.01
    total = sum(map(squared_error, bound.gains))
    assert squared_error(bound.nash_conv) == pytest.approx(total, rel=1e-9)


@pytest.mark.thorough
def test_both_variances_are_in_the_interval_of_a_gain():
    """In Kuhn poker, zero-sum, the seats' own returns cancel in the sum and count once in each gain."""
    config = live.Config(batch_episodes=64, slots=64, torso=(4,), learning_rate=1e-6, magnet_strength=0.0)
    episodes = 1_000
    bound = matches.best_response_bound(
        "kuhn_poker", None, num_updates=1, num_episodes=episodes, config=config
    )
    own = [squared_error(gain) for gain in bound.gains]
    # Uniform against nearly uniform: both sides of a gain have about the same variance, and the sum of gains
    # has the responders' halves alone.
    assert squared_error(bound.nash_conv) == pytest.approx(sum(own) / 2, rel=0.1)
    assert np.ptp(own) < 0.1 * max(own)


def test_every_policy_sits_where_it_is_counted():
    """A player who always bets wins both antes of two who always fold, from every one of three seats."""
    world = live_game.live_game("kuhn_poker(players=3)")
    bet, fold = Always(world.game, 1), Always(world.game, 0)
    for policies, mean in (([bet, fold], 2.0), ([bet, fold, fold], 2.0), ([fold, bet, fold], -1.0)):
        found = matches.play(world, policies, 6, seed=0)
        assert (found.mean, found.low, found.high) == (mean, mean, mean)
