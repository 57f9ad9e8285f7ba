"""Matches against exact values, and a best-response bound that stays below the exact NashConv."""

import jax
import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score

from pohp_neurd import neural, openspiel
from pohp_neurd.openspiel.live import game as live_game
from pohp_neurd.openspiel.live import match as matches
from pohp_neurd.openspiel.live import players
from pohp_neurd.openspiel.live import train as live

pytestmark = pytest.mark.thorough


class Always(openspiel_policy.Policy):
    """One action wherever it is legal, else the first."""

    def __init__(self, game, action):
        openspiel_policy.Policy.__init__(self, game, list(range(game.num_players())))
        self._action = action

    def action_probabilities(self, state, player_id=None):
        legal = state.legal_actions(player_id)
        chosen = self._action if self._action in legal else legal[0]
        return {action: float(action == chosen) for action in legal}


@pytest.fixture(scope="module")
def kuhn():
    return live_game.live_game("kuhn_poker")


@pytest.fixture(scope="module")
def network(kuhn):
    model = neural.network(kuhn.num_features, kuhn.num_actions, torso=(8,))
    return players.Network(model, model.init(key=jax.random.key(3)))


def test_betting_against_folding_wins_every_time(kuhn):
    bet, fold = Always(kuhn.game, 1), Always(kuhn.game, 0)
    assert matches.play(kuhn, [bet, fold], 20, 0) == (1.0, 1.0, 1.0, 20)
    assert matches.play(kuhn, [fold, bet], 19, 0) == (-1.0, -1.0, -1.0, 20)


def test_mean_is_the_exact_value_over_both_seats(kuhn, network):
    """A network against uniform: 10,000 episodes, within 5 standard errors of the exact value."""
    ours, uniform = players.LivePolicy(kuhn, network), openspiel_policy.UniformRandomPolicy(kuhn.game)
    start = kuhn.game.new_initial_state()
    first = expected_game_score.policy_value(start, [ours, uniform])[0]
    second = expected_game_score.policy_value(start, [uniform, ours])[1]
    found = matches.play(kuhn, [network, None], 10_000, 1)
    error = (found.high - found.low) / 2 / matches.NORMAL_95
    assert abs(found.mean - (first + second) / 2) < 5 * error
    # A return lies within 2 of 0, so an interval this narrow or this wide would be a mistake.
    assert 0.5 / np.sqrt(10_000) < error < 2 / np.sqrt(10_000)


def test_policies_are_the_same_whatever_their_form(kuhn, network):
    """The network (4,000 episodes) and its OpenSpiel form (1,000, other draws): within 5 standard errors."""
    one = matches.play(kuhn, [network, None], 4_000, 1)
    forms = [players.LivePolicy(kuhn, network), pyspiel.UniformRandomPolicy(kuhn.game)]
    other = matches.play(kuhn, forms, 1_000, 2)
    error = np.hypot(one.high - one.low, other.high - other.low) / 2 / matches.NORMAL_95
    assert abs(one.mean - other.mean) < 5 * error


def test_two_policies_at_a_table_for_three():
    world = live_game.live_game("kuhn_poker(players=3)")
    bet, fold = Always(world.game, 1), Always(world.game, 0)
    assert matches.play(world, [bet, fold], 30, 0) == (2.0, 2.0, 2.0, 30)


def test_wrong_matches(kuhn):
    with pytest.raises(ValueError, match="has 2 seats, but 3 policies"):
        matches.play(kuhn, [None] * 3, 10, 0)
    with pytest.raises(ValueError, match="num_episodes must be at least 4, but is 3"):
        matches.play(kuhn, [None, None], 3, 0)
    with pytest.raises(ValueError, match="but are 0 and 10"):
        matches.best_response_bound(kuhn, None, num_updates=0, num_episodes=10)


@pytest.mark.slow
def test_bound_is_below_nash_conv_and_most_of_it(kuhn):
    """Uniform in Kuhn poker has NashConv 11/12. 4,000 episodes for each mean; 5 standard errors above."""
    config = live.Config(batch_episodes=128, slots=128, torso=(16,), learning_rate=0.02, magnet_strength=0.0)
    calls = []
    bound = matches.best_response_bound(
        kuhn,
        None,
        num_updates=60,
        num_episodes=4_000,
        config=config,
        progress=lambda seat, done, report: calls.append((seat, done)),
    )
    exact = openspiel.nash_conv("kuhn_poker", openspiel_policy.UniformRandomPolicy(kuhn.game))
    error = (bound.nash_conv.high - bound.nash_conv.mean) / matches.NORMAL_95
    assert 0.7 * exact < bound.nash_conv.mean < exact + 5 * error
    assert bound.nash_conv.mean == pytest.approx(sum(gain.mean for gain in bound.gains))
    assert calls[0] == (0, 6)
    assert calls[-1] == (1, 60)


def test_nothing_is_gained_against_an_equilibrium(kuhn):
    """Kuhn poker's equilibrium with α = 0: responders gain nothing, up to 5 standard errors."""
    table = {"0": 0, "1": 0, "2": 0, "0pb": 0, "1pb": 1 / 3, "2pb": 1}
    table |= {"0p": 1 / 3, "0b": 0, "1p": 0, "1b": 1 / 3, "2p": 1, "2b": 1}
    equilibrium = openspiel_policy.TabularPolicy(kuhn.game)
    for name, bets in table.items():
        equilibrium.policy_for_key(name)[:] = [1 - bets, bets]
    assert openspiel.nash_conv("kuhn_poker", equilibrium) < 1e-12
    config = live.Config(batch_episodes=32, slots=32, torso=(8,), magnet_strength=0.0)
    bound = matches.best_response_bound(kuhn, equilibrium, num_updates=4, num_episodes=2_000, config=config)
    error = (bound.nash_conv.high - bound.nash_conv.mean) / matches.NORMAL_95
    assert bound.nash_conv.mean < 5 * error
