"""The study of catch agents, on networks whose figures are known."""

import jax
import jax.numpy as jnp
import networks
import numpy as np
import pytest

from pohp_neurd import neural, returns
from pohp_neurd.experiment import single_agent
from pohp_neurd.online import agent as online


def parameters(bias):
    """A network that says the same of every board: logits `bias`, value −2."""
    fresh = neural.network(50, 3, torso=(6, 6), critic=True).init(key=jax.random.key(0))
    silent = jax.tree.map(jnp.zeros_like, fresh)
    silent["actor"]["b"] = jnp.asarray(bias)
    silent["critic"]["b"] = jnp.asarray([-2.0])
    return silent


@pytest.mark.slow
def test_a_uniform_policy_misses_four_balls_of_five():
    found = networks.inspect(parameters([0.0, 0.0, 0.0]), (6, 6), online.Options())
    assert found["misses"] == 0.8
    assert found["columns_missed"] == 5
    assert found["entropy"] == round(np.log(3), 4)
    assert (found["silent_units_1"], found["silent_units_2"]) == (1.0, 1.0)
    assert (found["value_mean"], found["value_spread"], found["value_correlation"]) == (-2.0, 0.0, 0.0)


@pytest.mark.slow
def test_a_constant_action_catches_one_column():
    """Always left: the paddle waits in the leftmost column, and only that ball is caught."""
    found = networks.inspect(parameters([50.0, 0.0, 0.0]), (6, 6), online.Options())
    assert (found["misses"], found["columns_missed"], found["entropy"]) == (0.8, 4, 0.0)


@pytest.mark.parametrize(("bootstrapped", "horizon"), [("every", 10.0), ("last", 10.0 / 0.9**31)])
def test_the_critic_of_one_board_settles_where_a_geometric_series_says(bootstrapped, horizon):
    """It is r (1 − λ^W) / (1 − λ) in a window, and b or 1 − λ^(W − 1) (1 − b) of the value beyond it."""
    chain = networks.Chain(np.ones((1, 1)), np.array([-0.1]), np.ones(1))
    (found,) = networks.critic_targets(chain, online.Options(bootstrapped=bootstrapped))
    assert found == pytest.approx(-0.1 * (1 - 0.9**32) / 0.1 * horizon, rel=1e-12)


@pytest.mark.parametrize("bootstrapped", ["every", "last"])
def test_the_critics_targets_are_their_own_returns(bootstrapped):
    """Three boards in a circle: the agent's return from board 0, computed from the targets, is the target."""
    options = online.Options(bootstrapped=bootstrapped)
    rewards = np.array([0.0, -0.3, -1.0])
    chain = networks.Chain(np.roll(np.eye(3), 1, axis=1), rewards, np.ones(3) / 3)
    targets = networks.critic_targets(chain, options)
    boards = np.arange(options.window) % 3
    with jax.enable_x64(True):
        factors = np.full(options.window, 0.9 if bootstrapped == "every" else 1.0)
        factors[-1] = 0.9
        found = returns.lambda_returns(
            rewards[boards],
            np.ones(options.window),
            targets[(boards + 1) % 3],
            lambda_=options.lambda_,
            bootstrap=factors,
        )
    assert float(found[0]) == pytest.approx(targets[0], rel=1e-12)


@pytest.mark.slow
def test_a_run_is_studied_seed_by_seed(tmp_path):
    settings = {"num_steps": 40, "interval": 40, "width": 8, "learning_rates": (0.001,)}
    single_agent.run(single_agent.Config(seeds=3, **settings), tmp_path / "catch")
    rows = networks.study(tmp_path / "catch")
    assert [row["seed"] for row in rows] == [0, 1, 2]
    assert all(tuple(row) == networks.COLUMNS and 0 < row["misses"] < 1 for row in rows)
    single_agent.run(single_agent.Config("cart_pole", seeds=1, **settings), tmp_path / "cart_pole")
    with pytest.raises(ValueError, match=r"this study is of catch, but .* is a run in cart_pole"):
        networks.study(tmp_path / "cart_pole")
