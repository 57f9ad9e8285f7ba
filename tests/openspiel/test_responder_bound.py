"""The interval of a bound on NashConv: whose variance is in it."""

import numpy as np
import pytest
from open_spiel.python import policy as openspiel_policy

from pohp_neurd.openspiel import live, live_game, matches


class Rock(openspiel_policy.Policy):
    """Always the first action."""

    def __init__(self, game):
        openspiel_policy.Policy.__init__(self, game, list(range(game.num_players())))

    def action_probabilities(self, state, player_id=None):
        return {action: float(action == 0) for action in state.legal_actions(player_id)}


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
        world, Rock(world.game), num_updates=1, num_episodes=episodes, config=config
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
