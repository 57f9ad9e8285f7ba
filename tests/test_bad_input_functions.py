"""A wrong argument of any public function is refused in one sentence."""

import gymnasium
import numpy as np
import pyspiel
import pytest
from pohp_neurd.games import cart_pole, catch, matrix_game

from pohp_neurd import (
    agent_state,
    bandit,
    checkpoint,
    checks,
    directions,
    estimators,
    exact,
    learners,
    neural,
    openspiel,
    optimizers,
    returns,
    self_play,
    shaping,
    tabular,
)
from pohp_neurd.experiment import grid, sweep
from pohp_neurd.online import agent as online
from pohp_neurd.online import host
from pohp_neurd.openspiel import players
from pohp_neurd.openspiel.live import match, play, train
from pohp_neurd.results import records, table

KUHN = openspiel.compile_game("kuhn_poker")
UNIFORM = exact.uniform(KUHN)
OPTIONS = online.Options()


def changed(row, values):
    rows = UNIFORM.copy()
    rows[row] = values
    return rows


def paying():
    """An environment whose rewards are positive, which the paper's learners do not take."""
    return host.Gymnasium(gymnasium.make("CartPole-v1"), seed=0)


FUNCTIONS = {
    "estimators.ix_weight": lambda: estimators.ix_weight(0.5, 2.0),
    "estimators.cix_weight": lambda: estimators.cix_weight(0.5, np.nan),
    "estimators.action_values": lambda: estimators.action_values(-1.0, 0, np.array([0.5, 0.4]), 0.1),
    "estimators.action_values, action": lambda: estimators.action_values(-1.0, 2, np.array([0.5, 0.5]), 0.1),
    "returns.lambda_returns": lambda: returns.lambda_returns(
        np.zeros(2), np.ones(2), np.zeros(2), lambda_=1.5, bootstrap=0.9
    ),
    "exact.nash_conv, shape": lambda: exact.nash_conv(KUHN, UNIFORM[:3]),
    "exact.nash_conv, sum": lambda: exact.nash_conv(KUHN, changed(0, 0.9)),
    "exact.nash_conv, NaN": lambda: exact.nash_conv(KUHN, changed(0, np.nan)),
    "exact.nash_conv, negative": lambda: exact.nash_conv(KUHN, changed(0, [1.5, -0.5])),
    "exact.best_response": lambda: exact.best_response(KUHN, UNIFORM, 2),
    "exact.expected_direction": lambda: exact.expected_direction(KUHN, UNIFORM, learner="ppo"),
    "compile_game, name": lambda: openspiel.compile_game("kuhn_pokr"),
    "compile_game, size": lambda: openspiel.compile_game("leduc_poker", max_histories=10),
    "compile_game, object": lambda: openspiel.compile_game(7),
    "load_game, parameters": lambda: openspiel.load_game("kuhn_poker(players=99)"),
    "nash_conv, policy": lambda: openspiel.nash_conv("kuhn_poker", "best"),
    "nash_conv, game": lambda: openspiel.nash_conv("kuhn_pokr", UNIFORM),
    "NeuRDCIX, learner": lambda: openspiel.NeuRDCIX(0, 11, 2, learner="ppo"),
    "NeuRDCIX, keyword": lambda: openspiel.NeuRDCIX(0, 11, 2, batchsize=3),
    "NeuRDCIX, size": lambda: openspiel.NeuRDCIX(0, 0, 2),
    "NeuRDCIX, exploration": lambda: openspiel.NeuRDCIX(0, 11, 2, exploration=np.nan),
    "NeuRDCIX, restore": lambda: openspiel.NeuRDCIX(0, 11, 2).restore("/nowhere"),
    "NeuRDCIXSolver, update": lambda: openspiel.NeuRDCIXSolver("kuhn_poker", update="exact"),
    "NeuRDCIXSolver, game": lambda: openspiel.NeuRDCIXSolver("kuhn_pokr"),
    "NeuRDCIXSolver, batch_size": lambda: openspiel.NeuRDCIXSolver(KUHN, update="sampled", batch_size=0),
    "NeuRDCIXSolver, updates": lambda: openspiel.NeuRDCIXSolver(KUHN).evaluate_and_update_policy(0),
    "bot, policy": lambda: openspiel.bot(7, 0),
    "bot, folder": lambda: openspiel.bot("/nowhere", 0),
    "bot, seat": lambda: openspiel.bot(pyspiel.UniformRandomPolicy(pyspiel.load_game("kuhn_poker")), -1),
    "match.play": lambda: match.play("kuhn_poker", [None], 100, seed=0),
    "players.play_in_terminal": lambda: players.play_in_terminal("kuhn_poker", None, 2),
    "train.responder": lambda: train.responder(play.live_game("kuhn_poker"), None, 0, batch_episodes=0),
    "bandit.reduction, estimator": lambda: bandit.reduction(bandit.learners.regret_matching(), "icx"),
    "bandit.reduction, schedule": lambda: bandit.reduction(bandit.learners.regret_matching(), "cix", 2.0),
    "bandit.learners.hedge": lambda: bandit.learners.hedge(-1.0),
    "bandit.problems.bernoulli": lambda: bandit.problems.bernoulli([0.5, 1.5]),
    "bandit.best_xi": lambda: bandit.best_xi(5, 0.0),
    "online.Options, window": lambda: online.Options(window=0),
    "online.Options, learner": lambda: online.Options("ppo"),
    "host.train, exploration": lambda: host.train(paying(), OPTIONS, 1, learning_rate=0.1, exploration=2.0),
    "host.train, steps": lambda: host.train(paying(), OPTIONS, 0, learning_rate=0.1),
    "host.train, rate": lambda: host.train(paying(), OPTIONS, 1, learning_rate=-1.0),
    "host.train, rewards": lambda: host.train(paying(), OPTIONS, 1, learning_rate=0.1),
    "learners.rule": lambda: learners.rule("ppo", 0.0),
    "directions.neurd_cix": lambda: directions.neurd_cix(1.5),
    "optimizers.sgd": lambda: optimizers.sgd(-1.0),
    "shaping.Magnet": lambda: shaping.Magnet(-1.0),
    "self_play.Weights": lambda: self_play.Weights(forgetting=2.0),
    "neural.network": lambda: neural.network(3, 2, torso=(0,)),
    "tabular.table": lambda: tabular.table(0, 2),
    "agent_state.window": lambda: agent_state.window(catch.Catch(), 0),
    "catch.Catch": lambda: catch.Catch(rows=1),
    "cart_pole.CartPole": lambda: cart_pole.CartPole(horizon=0),
    "matrix_game.bandit": lambda: matrix_game.bandit([]),
    "checkpoint.save": lambda: checkpoint.save("/nowhere", -1, {}),
    "checkpoint.save, kind": lambda: checkpoint.save("/nowhere", 1, {}, keep=0),
    "checks.whole": lambda: checks.whole("1.5"),
    "grid.settings": lambda: grid.settings([]),
    "sweep.run": lambda: sweep.run([], "", lambda *_: ()),
    "table.conditions": lambda: table.conditions("learner"),
    "records.write_csv": lambda: records.write_csv("/nowhere.csv", [{"a": 1}], ["b"]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    with pytest.raises((ValueError, TypeError)) as caught:
        FUNCTIONS[name]()
    told = str(caught.value)
    assert "\n" not in told
    assert told.endswith((".", "?"))
