"""Bots: always a legal action, in OpenSpiel's own loop, with policies of Python and of C++."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import evaluate_bots
from open_spiel.python.bots import policy as policy_bots

from pohp_neurd import openspiel
from pohp_neurd.openspiel import saved

ONE_ACTION = """
  EFG 2 R "Only one action" { "One" "Two" } ""
  p "ROOT" 1 1 "ROOT" { "only" } 0
    p "NEXT" 2 1 "NEXT" { "l" "r" } 0
      t "L" 1 "Outcome L" { 1.0 -1.0 }
      t "R" 2 "Outcome R" { -1.0 1.0 }
"""


def test_the_only_legal_action_is_number_zero():
    game = pyspiel.load_efg_game(ONE_ACTION)
    uniform = openspiel_policy.UniformRandomPolicy(game)
    stock = policy_bots.PolicyBot(0, np.random.RandomState(0), uniform)
    assert stock.step(game.new_initial_state()) == pyspiel.INVALID_ACTION  # why there is a bot of our own
    bots = [openspiel.bot(uniform, player) for player in range(2)]
    assert bots[0].step_with_policy(game.new_initial_state()) == ([(0, 1.0)], 0)
    assert sum(evaluate_bots.evaluate_bots(game.new_initial_state(), bots, np.random)) == 0


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "goofspiel(num_cards=3)", "tic_tac_toe"])
@pytest.mark.parametrize("kind", [openspiel_policy.UniformRandomPolicy, pyspiel.UniformRandomPolicy])
def test_matches(name, kind):
    if kind is pyspiel.UniformRandomPolicy and name.startswith("goofspiel"):
        pytest.skip("C++ policies do not answer in simultaneous moves")
    game = pyspiel.load_game(name)
    policy = kind(game)
    bots = [openspiel.bot(policy, player, seed=player) for player in range(2)]
    random = np.random.RandomState(0)
    results = {tuple(evaluate_bots.evaluate_bots(game.new_initial_state(), bots, random)) for _ in range(20)}
    assert len(results) > 1
    assert [bot.player_id() for bot in bots] == [0, 1]


def test_actions_have_their_probabilities():
    game = pyspiel.load_game("kuhn_poker")
    table = openspiel_policy.TabularPolicy(game)
    table.policy_for_key("0")[:] = [0.8, 0.2]
    state = game.new_initial_state()
    state.apply_action(0)
    state.apply_action(1)
    bot = openspiel.bot(table, 0, seed=1)
    assert bot.get_policy(state) == [(0, 0.8), (1, 0.2)]
    draws = 4000
    share = np.mean([bot.step(state) for _ in range(draws)])
    assert abs(share - 0.2) < 5 * np.sqrt(0.2 * 0.8 / draws)
    again, other = openspiel.bot(table, 0, seed=1), openspiel.bot(table, 0, seed=1)
    assert [again.step(state) for _ in range(30)] == [other.step(state) for _ in range(30)]


def test_an_agents_policy():
    game = pyspiel.load_game("leduc_poker")
    agent = openspiel.NeuRDCIX(None, game.information_state_tensor_size(), game.num_distinct_actions())
    bots = [openspiel.bot(openspiel.JointPolicy(game, agent), player) for player in range(2)]
    for _ in range(5):
        assert sum(evaluate_bots.evaluate_bots(game.new_initial_state(), bots, np.random)) == 0


class Odd(openspiel_policy.Policy):
    def __init__(self, game, answer):
        openspiel_policy.Policy.__init__(self, game, [0, 1])
        self.answer = answer

    def action_probabilities(self, state, player_id=None):
        return self.answer


def test_odd_policies():
    game = pyspiel.load_game("kuhn_poker")
    state = game.new_initial_state()
    state.apply_action(0)
    state.apply_action(1)
    # An illegal action is never drawn, whatever the policy says; rounding in a sum does not matter.
    assert openspiel.bot(Odd(game, {1: 0.1, 5: 0.9}), 0).step(state) == 1
    assert openspiel.bot(Odd(game, {0: np.float32(1 / 3), 1: np.float32(0.1)}), 0).step(state) in (0, 1)
    for answer in ({5: 1.0}, {}, {0: float("nan")}, {0: 1.5, 1: -0.5}):
        with pytest.raises(ValueError, match=r"^the policy must give legal actions \[0, 1\] probabilities"):
            openspiel.bot(Odd(game, answer), 0).step(state)
    with pytest.raises(ValueError, match=r"^player 1 has no legal action in this state.$"):
        openspiel.bot(Odd(game, {0: 1.0}), 1).step(state)
    with pytest.raises(ValueError, match=r"^a bot needs an OpenSpiel policy, but was given int.$"):
        openspiel.bot(3, 0)
    with pytest.raises(ValueError, match=r"^player_id must be at least 0, but is -1.$"):
        openspiel.bot(openspiel_policy.UniformRandomPolicy(game), -1)


def mean_return(bots, episodes):
    """Of player 0 in Kuhn poker, and its standard error."""
    game, random = pyspiel.load_game("kuhn_poker"), np.random.RandomState(0)
    returns = np.array(
        [evaluate_bots.evaluate_bots(game.new_initial_state(), bots, random)[0] for _ in range(episodes)]
    )
    return returns.mean(), returns.std() / np.sqrt(episodes)


@pytest.fixture
def folder(tmp_path):
    """A uniform table for Kuhn poker, as a training run would leave it."""
    about, table = saved.About("kuhn_poker", "tabular"), np.full((12, 2), 0.5)
    saved.save(tmp_path, 1, saved.Saved(about, table, table))
    return tmp_path


@pytest.mark.parametrize("kind", ["policy", "folder"])
def test_bots_of_one_seed_play_independently(kind, folder):
    """Uniform play in Kuhn poker is worth 1/8 to player 0: 4,000 episodes, 5 standard errors."""
    uniform = openspiel_policy.UniformRandomPolicy(pyspiel.load_game("kuhn_poker"))
    bots = [openspiel.bot(uniform if kind == "policy" else folder, player) for player in range(2)]
    mean, error = mean_return(bots, 4_000)
    assert abs(mean - 0.125) < 5 * error
