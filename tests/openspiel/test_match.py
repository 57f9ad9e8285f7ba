"""Matches against exact values, bounds below the exact NashConv, and the intervals of both."""

import functools
import math
from types import SimpleNamespace

import jax
import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score

from pohp_neurd import neural, openspiel
from pohp_neurd.openspiel.live import match, play, train


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
    return play.live_game("kuhn_poker")


@pytest.fixture(scope="module")
def network(kuhn):
    model = neural.network(kuhn.num_features, kuhn.num_actions, torso=(8,))
    return play.Network(model, model.init(key=jax.random.key(3)))


@pytest.mark.thorough
def test_betting_against_folding_wins_every_time(kuhn):
    bet, fold = Always(kuhn.game, 1), Always(kuhn.game, 0)
    assert match.play(kuhn, [bet, fold], 20, 0) == (1.0, 1.0, 1.0, 20)
    assert match.play(kuhn, [fold, bet], 19, 0) == (-1.0, -1.0, -1.0, 20)


@pytest.mark.thorough
def test_mean_is_the_exact_value_over_both_seats(kuhn, network):
    """A network against uniform: 10,000 episodes, within 5 standard errors of the exact value."""
    ours, uniform = openspiel.LivePolicy(kuhn, network), openspiel_policy.UniformRandomPolicy(kuhn.game)
    start = kuhn.game.new_initial_state()
    first = expected_game_score.policy_value(start, [ours, uniform])[0]
    second = expected_game_score.policy_value(start, [uniform, ours])[1]
    found = match.play(kuhn, [network, None], 10_000, 1)
    error = (found.high - found.low) / 2 / match.NORMAL_95
    assert abs(found.mean - (first + second) / 2) < 5 * error
    # A return lies within 2 of 0, so an interval this narrow or this wide would be a mistake.
    assert 0.5 / np.sqrt(10_000) < error < 2 / np.sqrt(10_000)


@pytest.mark.thorough
def test_policies_are_the_same_whatever_their_form(kuhn, network):
    """The network (4,000 episodes) and its OpenSpiel form (1,000, other draws): within 5 standard errors."""
    one = match.play(kuhn, [network, None], 4_000, 1)
    forms = [openspiel.LivePolicy(kuhn, network), pyspiel.UniformRandomPolicy(kuhn.game)]
    other = match.play(kuhn, forms, 1_000, 2)
    error = np.hypot(one.high - one.low, other.high - other.low) / 2 / match.NORMAL_95
    assert abs(one.mean - other.mean) < 5 * error


def test_wrong_matches(kuhn):
    with pytest.raises(ValueError, match="has 2 seats, but 3 policies"):
        match.play(kuhn, [None] * 3, 10, 0)
    with pytest.raises(ValueError, match="num_episodes must be at least 4, but is 3"):
        match.play(kuhn, [None, None], 3, 0)
    with pytest.raises(ValueError, match="num_updates must be at least 1, but is 0"):
        match.best_response_bound(kuhn, None, num_updates=0, num_episodes=10)


@pytest.mark.slow
def test_bound_is_below_nash_conv_and_most_of_it(kuhn):
    """Uniform in Kuhn poker has NashConv 11/12. 4,000 episodes for each mean; 5 standard errors above."""
    quick = functools.partial(train.responder, batch_episodes=128, hidden_layers=(16,), learning_rate=0.02)
    bound = match.best_response_bound(
        kuhn,
        None,
        num_updates=60,
        num_episodes=4_000,
        responder=quick,
    )
    exact = openspiel.nash_conv("kuhn_poker", openspiel_policy.UniformRandomPolicy(kuhn.game))
    error = (bound.nash_conv.high - bound.nash_conv.mean) / match.NORMAL_95
    assert 0.7 * exact < bound.nash_conv.mean < exact + 5 * error
    assert bound.nash_conv.mean == pytest.approx(sum(gain.mean for gain in bound.gains))


@pytest.mark.thorough
def test_nothing_is_gained_against_an_equilibrium(kuhn):
    """Kuhn poker's equilibrium with α = 0: responders gain nothing, up to 5 standard errors."""
    table = {"0": 0, "1": 0, "2": 0, "0pb": 0, "1pb": 1 / 3, "2pb": 1}
    table |= {"0p": 1 / 3, "0b": 0, "1p": 0, "1b": 1 / 3, "2p": 1, "2b": 1}
    equilibrium = openspiel_policy.TabularPolicy(kuhn.game)
    for name, bets in table.items():
        equilibrium.policy_for_key(name)[:] = [1 - bets, bets]
    assert openspiel.nash_conv("kuhn_poker", equilibrium) < 1e-12
    quick = functools.partial(train.responder, batch_episodes=32, hidden_layers=(8,), learning_rate=0.01)
    bound = match.best_response_bound(kuhn, equilibrium, num_updates=4, num_episodes=2_000, responder=quick)
    error = (bound.nash_conv.high - bound.nash_conv.mean) / match.NORMAL_95
    assert bound.nash_conv.mean < 5 * error


STILL = functools.partial(train.responder, batch_episodes=64, hidden_layers=(4,), learning_rate=1e-6)
"""Learns next to nothing."""


def squared_error(estimate):
    """Of the mean, from the interval."""
    return ((estimate.high - estimate.low) / 2 / match.NORMAL_95) ** 2


def test_the_responders_own_variance_is_in_the_interval():
    """Rock against rock always ends in a draw: all variance is the responders'.

    A responder that still plays each action with a probability of about a third gains −1, 0 or 1 with a
    variance of about 2/3, and exactly (wins + losses) / n − mean².
    """
    world = play.live_game("matrix_rps")
    episodes = 400
    bound = match.best_response_bound(
        world, Always(world.game, 0), num_updates=1, num_episodes=episodes, responder=STILL
    )
    for gain in bound.gains:
        assert 0.2 < squared_error(gain) * episodes < 1.01
    total = sum(map(squared_error, bound.gains))
    assert squared_error(bound.nash_conv) == pytest.approx(total, rel=1e-9)


def test_every_policy_sits_where_it_is_counted():
    """A player who always bets wins both antes of two who always fold, from every one of three seats."""
    world = play.live_game("kuhn_poker(players=3)")
    bet, fold = Always(world.game, 1), Always(world.game, 0)
    for policies, mean in (([bet, fold], 2.0), ([bet, fold, fold], 2.0), ([fold, bet, fold], -1.0)):
        found = match.play(world, policies, 6, seed=0)
        assert (found.mean, found.low, found.high) == (mean, mean, mean)


def half_width(estimate):
    assert estimate.high - estimate.mean == pytest.approx(estimate.mean - estimate.low)
    return estimate.high - estimate.mean


def given(monkeypatch, *returns):
    """Matches and evaluations of a bound that end like this, instead of being played."""
    left = iter(np.array(one, float) for one in returns)
    monkeypatch.setattr(train, "advance", lambda trainer, state, count: (state, None))
    monkeypatch.setattr(play, "play", lambda *_, **__: SimpleNamespace(returns=next(left)))


def test_a_bound_is_as_uncertain_as_all_it_was_measured_from(monkeypatch):
    """Variances of means: own returns 1/3 in each seat and 0 in their sum; the responders' 1/3 and 1."""
    given(
        monkeypatch,
        [[1, -1], [-1, 1], [1, -1], [-1, 1]],
        [[2, -2], [0, 0], [2, -2], [0, 0]],
        [[-1, 1], [-1, 1], [-1, 1], [3, -3]],
    )
    bound = match.best_response_bound("kuhn_poker", None, num_updates=1, num_episodes=4)
    assert [gain.mean for gain in bound.gains] == [1.0, 0.0]
    assert half_width(bound.gains[0]) == pytest.approx(match.NORMAL_95 * math.sqrt(1 / 3 + 1 / 3))
    assert half_width(bound.gains[1]) == pytest.approx(match.NORMAL_95 * math.sqrt(1 / 3 + 1))
    assert bound.nash_conv.mean == 1.0
    assert half_width(bound.nash_conv) == pytest.approx(match.NORMAL_95 * math.sqrt(0 + 1 / 3 + 1))


def test_a_sum_over_seats_counts_what_they_have_in_common(monkeypatch):
    """Both seats get the same, and responders always 3: the sum of own returns alone has a variance."""
    given(monkeypatch, [[1, 1], [-1, -1]], [[3, 0]] * 2, [[0, 3]] * 2)
    bound = match.best_response_bound("kuhn_poker", None, num_updates=1, num_episodes=2)
    assert bound.nash_conv.mean == 6.0
    # Sums 2 and -2: variance 8, of their mean 4. Seat by seat it would be 1 + 1.
    assert half_width(bound.nash_conv) == pytest.approx(match.NORMAL_95 * math.sqrt(4))


def test_a_rotation_is_one_draw(monkeypatch):
    """The first player's edge of 1 cancels within a rotation: means 0 and 1, of variance 1/4."""
    given(monkeypatch, [[1, -1], [1, -1], [2, -2], [0, 0]])
    found = match.play("kuhn_poker", [None, None], 4, 0)
    assert found.mean == 0.5
    assert half_width(found) == pytest.approx(match.NORMAL_95 * math.sqrt(1 / 4))


def test_the_best_responder_is_chosen_on_other_episodes_than_it_is_judged_on(monkeypatch):
    """Of two seeds a seat: the second does better in the choice, and then gains less than it did there."""
    own, poor, better = [[0, 0]] * 2, [[1, 1]] * 2, [[5, 5]] * 2
    given(monkeypatch, own, poor, better, [[3, 3]] * 2, better, poor, [[2, 2]] * 2)
    kept, judged = [], match._returns
    monkeypatch.setattr(match, "_returns", lambda *args: kept.append(args[1][-1]) or judged(*args))
    bound = match.best_response_bound("kuhn_poker", None, num_updates=1, num_episodes=2, num_seeds=2)
    assert [gain.mean for gain in bound.gains] == [3.0, 2.0]
    assert kept[3] is kept[2] is not kept[1]
    assert kept[6] is kept[4] is not kept[5]


@pytest.mark.thorough
@pytest.mark.parametrize(("game", "least"), [("kuhn_poker", 0.4), ("tic_tac_toe", 1.4)])
def test_search_gains_no_more_than_a_best_response(game, least):
    """Against uniform play: 400 episodes, 50 simulations a move; NashConv within 5 standard errors above."""
    world = play.live_game(game)
    bound = match.bound(world, None, lambda seat: [match.Search(world.game, 50)], num_episodes=400)
    exact = openspiel.nash_conv(game, openspiel_policy.UniformRandomPolicy(world.game))
    error = half_width(bound.nash_conv) / match.NORMAL_95
    assert least < bound.nash_conv.mean < exact + 5 * error


def test_search_needs_states_that_cannot_be_told_apart():
    with pytest.raises(ValueError, match="OpenSpiel's phantom_ttt draws none"):
        match.Search(play.live_game("phantom_ttt").game, 10)
