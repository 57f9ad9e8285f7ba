"""The registered games under OpenSpiel's own checks, beside the processes, and compiled."""

import itertools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest
from open_spiel.python import observation
from pohp_neurd.games import cart_pole, catch
from pohp_neurd.games import openspiel_games as openspiel_games  # registers what pyspiel loads here

from pohp_neurd import openspiel

GAMES = [
    "python_pohp_catch",
    "python_pohp_catch(rows=3,columns=3,horizon=5)",
    "python_pohp_catch(rows=4,columns=2,horizon=8)",
    "python_pohp_cart_pole",
    "python_pohp_cart_pole(bins=2,horizon=25)",
]


@pytest.mark.parametrize("name", GAMES)
def test_openspiel_accepts_it(name):
    pyspiel.random_sim_test(pyspiel.load_game(name), num_sims=20, serialize=True, verbose=False)


@pytest.mark.parametrize("name", GAMES)
def test_rewards_sum_to_returns_with_and_without_chance_nodes(name):
    game = pyspiel.load_game(name)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        state = game.new_initial_state()
        everywhere = skipping = 0.0
        while not state.is_terminal():
            state.apply_action(int(rng.choice(state.legal_actions())))
            everywhere += state.rewards()[0]
            skipping += 0.0 if state.is_chance_node() else state.rewards()[0]
        assert everywhere == skipping == state.returns()[0]
        assert game.min_utility() <= state.returns()[0] <= 0.0


def test_catch_is_the_process():
    """The same drops and moves: the same boards and rewards."""
    world = catch.Catch(4, 3, horizon=7)
    game = pyspiel.load_game("python_pohp_catch(rows=4,columns=3,horizon=7)")
    for seed in range(10):
        rng = np.random.default_rng(seed)
        history = world.initial(key=jax.random.key(seed))
        state = game.new_initial_state()
        state.apply_action(int(history.board.ball_column))
        for step in range(7):
            np.testing.assert_array_equal(state.observation_tensor(), world.observation(history))
            action = int(rng.integers(3))
            history = world.apply(history, jnp.int32(action), key=jax.random.key(step))
            state.apply_action(action)
            if state.is_chance_node():
                state.apply_action(int(history.board.ball_column))
            assert state.rewards()[0] == float(world.reward(history)[0])
            assert state.is_terminal() == (float(world.continuation(history)) == 0.0)


def test_cart_pole_is_the_process():
    """From the same start, the same moves give the same numbers, up to the rounding of float32."""
    game = pyspiel.load_game("python_pohp_cart_pole(bins=3,horizon=40)")
    world = cart_pole.CartPole(horizon=40)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        state = game.new_initial_state()
        while state.is_chance_node():
            state.apply_action(int(rng.integers(3)))
        start = np.array(state.observation_tensor())
        assert set(np.round(np.abs(start), 5)) <= {0.0, 0.03333}
        history = cart_pole.Balance(
            cart_pole.Cart(*jnp.asarray(start)),
            cart_pole.Cart(*jnp.zeros(4)),
            jnp.asarray(False),
            jnp.int32(0),
        )
        while not state.is_terminal():
            action = int(rng.integers(2))
            state.apply_action(action)
            history = world.apply(history, jnp.int32(action), key=jax.random.key(0))
            np.testing.assert_allclose(state.observation_tensor(0), world.observation(history), atol=1e-5)
            assert state.rewards()[0] == float(world.reward(history)[0])
        assert float(world.continuation(history)) == 0.0


def test_information_states_tell_histories_apart():
    game = pyspiel.load_game("python_pohp_catch(rows=3,columns=2,horizon=3)")
    strings, tensors, count = set(), set(), 0
    for moves in itertools.product(range(2), range(3), range(3), range(2), range(3)):
        state = game.new_initial_state()
        for move in moves:
            if not state.is_chance_node():
                strings.add(state.information_state_string(0))
                tensors.add(tuple(state.information_state_tensor(0)))
            state.apply_action(move)
        count += 1
        assert state.is_terminal()
    decisions = 2 * (1 + 3 + 9 * 2)
    assert count == 108
    assert len(strings) == len(tensors) == decisions


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rows", "columns", "horizon", "value"),
    # The widest ball that can be reached is rows − 1 columns from the middle.
    [(3, 3, 4, 0.0), (2, 3, 1, 0.0), (2, 5, 1, -2 / 5), (2, 5, 2, -4 / 5), (3, 2, 4, 0.0)],
)
def test_small_catch_compiles_and_its_best_value_is_right(rows, columns, horizon, value):
    game = pyspiel.load_game(f"python_pohp_catch(rows={rows},columns={columns},horizon={horizon})")
    tree = openspiel.compile_game(game)
    uniform = tree.legal / tree.legal.sum(axis=1, keepdims=True)
    # With one agent NashConv is the optimality gap; a uniform policy misses a ball of `columns` but one.
    balls = horizon // (rows - 1)
    gap = openspiel.nash_conv(tree, uniform)
    assert gap == pytest.approx(value + balls * (1 - 1 / columns), abs=1e-12)
    best = np.zeros_like(uniform)
    for row, features in enumerate(tree.features[:, : rows * columns]):
        cells = features.reshape(rows, columns)
        ball_column = int(np.argmax(cells[:-1].sum(axis=0)))
        paddle = int(np.argmax(cells[-1]))
        best[row, np.sign(ball_column - paddle) + catch.STAY] = 1
    assert openspiel.nash_conv(tree, best) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["python_pohp_catch(rows=1)", "python_pohp_cart_pole(bins=0)"])
def test_wrong_parameters_are_refused(name):
    with pytest.raises((ValueError, RuntimeError), match="must be at least"):
        pyspiel.load_game(name)


@pytest.mark.thorough
def test_openspiel_hears_of_our_games_when_they_are_asked_for():
    """Importing catch does not touch OpenSpiel; `load_game` registers, and its advice knows the names."""
    code = """
import sys
from pohp_neurd.games import catch, cart_pole
assert "pyspiel" not in sys.modules, "catch imports OpenSpiel"
import pyspiel
assert not any("pohp" in name for name in pyspiel.registered_names()), "catch registers games"
from pohp_neurd import openspiel
print(openspiel.load_game("python_pohp_catch(rows=4)"))
try:
    openspiel.load_game("python_pohp_cach")
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    game, advice = done.stdout.splitlines()
    assert game == "python_pohp_catch(columns=5,horizon=9,rows=4)"
    assert "did you mean python_pohp_catch" in advice


@pytest.mark.parametrize("perfect_recall", [False, True])
def test_all_there_is_to_see_is_public(perfect_recall):
    game = openspiel.load_game("python_pohp_catch")
    state = game.new_initial_state().child(2).child(1)
    for public in (False, True):
        kind = pyspiel.IIGObservationType(perfect_recall=perfect_recall, public_info=public)
        observer = observation.make_observation(game, kind)
        observer.set_from(state, 0)
        assert bool(observer.string_from(state, 0)) == bool(observer.tensor.any()) == public
        tensor = state.information_state_tensor(0) if perfect_recall else state.observation_tensor(0)
        np.testing.assert_array_equal(observer.tensor, tensor if public else [])
