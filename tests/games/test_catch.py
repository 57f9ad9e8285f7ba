"""Catch beside bsuite's catch, and figures that are mathematics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bsuite.environments import catch as bsuite_catch
from pohp_neurd.games import catch

from pohp_neurd import process

WORLDS = [
    catch.Catch(),
    catch.Catch(4, 3, horizon=7, swap_every=3),
    *[
        pytest.param(world, marks=pytest.mark.slow)
        for world in (catch.Catch(4, 3), catch.Catch(2, 1), catch.Catch(horizon=9))
    ],
]


@pytest.mark.thorough
@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_it_is_a_process(world):
    process.check_process(world)


def test_it_steps_in_lock_step_with_bsuite():
    """100 random action sequences of ten balls each; rewards +1 / −1 become 0 / −1."""

    @jax.jit
    def advance(board, action):
        board = catch.advance(board, action, 5)
        return board, catch.has_landed(board, 10), catch.is_missed(board, 10)

    def drop(column):
        return jax.tree.map(np.int32, catch.drop(column, 5, xp=np))

    for episode in range(100):
        rng = np.random.default_rng(episode)
        actions = rng.integers(3, size=90)
        theirs = bsuite_catch.Catch(seed=episode)
        moment = theirs.reset()
        board = drop(np.argmax(moment.observation[0]))
        for step, action in enumerate(actions):
            played = f"seed {episode}, actions {actions[: step + 1].tolist()}"
            np.testing.assert_array_equal(_pixels(board), moment.observation, err_msg=played)
            moment = theirs.step(int(action))
            board, landed, missed = advance(board, np.int32(action))
            assert bool(landed) == moment.last(), played
            assert -float(missed) == min(moment.reward, 0.0), played
            if moment.last():
                np.testing.assert_array_equal(_pixels(board), moment.observation, err_msg=played)
                moment = theirs.reset()
                board = drop(np.argmax(moment.observation[0]))


def _pixels(board):
    pixels = np.zeros((10, 5), np.float32)
    pixels[int(board.ball_row), int(board.ball_column)] = 1
    pixels[9, int(board.paddle)] = 1
    return pixels


def test_the_process_follows_the_rules():
    """The Process is the rules plus a fresh ball at every landing, and shows the board."""
    world = catch.Catch()
    apply = jax.jit(lambda history, action, key: world.apply(history, action, key=key))
    history = world.initial(key=jax.random.key(0))
    rng = np.random.default_rng(0)
    for step in range(60):
        np.testing.assert_array_equal(world.observation(history), _pixels(history.board).ravel())
        assert sorted(np.flatnonzero(world.observation(history))) == sorted(
            world.active_features(history).tolist()
        )
        action = jnp.int32(rng.integers(3))
        expected = catch.advance(history.board, action, 5)
        history = apply(history, action, jax.random.key(step))
        assert float(world.reward(history)[0]) == -float(catch.is_missed(expected, 10))
        if catch.has_landed(expected, 10):
            assert (int(history.board.ball_row), int(history.board.paddle)) == (0, 2)
        else:
            assert jax.tree.map(int, history.board) == jax.tree.map(int, expected)


def test_left_and_right_swap_after_every_few_decisions():
    """The same as the plain world, played with the actions mirrored in every other stretch."""
    plain, swapping = catch.Catch(), catch.Catch(swap_every=7)
    step = jax.jit(lambda world, *rest, key: world.apply(*rest, key=key), static_argnums=0)
    one, two = (world.initial(key=jax.random.key(0)) for world in (plain, swapping))
    rng = np.random.default_rng(0)
    for time in range(60):
        action = int(rng.integers(3))
        meant = 2 - action if time // 7 % 2 else action
        key = jax.random.key(time)
        one, two = (
            step(plain, one, jnp.int32(meant), key=key),
            step(swapping, two, jnp.int32(action), key=key),
        )
        assert jax.tree.map(int, one.board) == jax.tree.map(int, two.board)
        assert bool(one.missed) == bool(two.missed)
    assert int(two.time) == 60


def _play(world, policy, num_steps, seed):
    def step(history, index):
        act_key, reply_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), index))
        history = world.apply(history, policy(history, act_key), key=reply_key)
        return history, (world.reward(history)[0], history.board.ball_column)

    return jax.jit(
        lambda: jax.lax.scan(step, world.initial(key=jax.random.key(seed)), jnp.arange(num_steps))
    )()


@pytest.mark.thorough
def test_a_uniform_policy_misses_four_balls_of_five():
    """20,000 balls, 5 sigma: σ = √(0.8 · 0.2 / 20,000) = 0.0028."""
    balls = 20_000
    uniform = lambda history, key: jax.random.randint(key, (), 0, 3)  # noqa: E731
    _, (rewards, columns) = _play(catch.Catch(), uniform, 9 * balls, 1)
    assert abs(float(rewards.sum()) / balls + 0.8) < 5 * np.sqrt(0.16 / balls)
    drops = np.bincount(np.asarray(columns)[8::9], minlength=5) / balls
    assert np.all(np.abs(drops - 0.2) < 5 * np.sqrt(0.16 / balls))


@pytest.mark.parametrize("world", [catch.Catch(), catch.Catch(4, 7), catch.Catch(2, 3)], ids=str)
def test_the_best_policy_misses_no_ball(world):
    def towards_the_ball(history, key):
        return jnp.sign(history.board.ball_column - history.board.paddle) + catch.STAY

    _, (rewards, _) = _play(world, towards_the_ball, 5_000, 2)
    assert float(rewards.sum()) == 0.0


def test_the_horizon_ends_an_episode():
    world = catch.Catch(3, 3, horizon=4)
    assert world.spec.return_bound == 2.0
    history = world.initial(key=jax.random.key(0))
    for step in range(4):
        assert float(world.continuation(history)) == 1.0
        history = world.apply(history, jnp.int32(0), key=jax.random.key(step))
    assert float(world.continuation(history)) == 0.0


def test_it_renders():
    assert catch.Catch(3, 3).render(catch.Fall(catch.Board(1, 0, 2), False, 0)) == "|   |\n|o  |\n|  =|"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"rows": 1}, "rows must be at least 2, but is 1."),
        ({"columns": 0}, "columns must be at least 1, but is 0."),
        ({"horizon": 0}, "horizon must be at least 1, or None, but is 0."),
    ],
)
def test_wrong_sizes_are_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        catch.Catch(**arguments)
