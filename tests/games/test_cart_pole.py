"""Cart pole beside Gymnasium's classic CartPole, and the paper's rewards."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pohp_neurd.games import cart_pole

from pohp_neurd import process


@pytest.mark.thorough
@pytest.mark.parametrize(
    "world",
    [cart_pole.CartPole(horizon=30), pytest.param(cart_pole.CartPole(), marks=pytest.mark.slow)],
    ids=str,
)
def test_it_is_a_process(world):
    process.check_process(world)


def random_episode(seed, apply, dtype):
    """The largest difference between Gymnasium's state and ours, side by side to the fall; and the actions.

    Both begin at one state that `dtype` can hold: what it cannot hold of a start is no matter of the physics.
    """
    environment = gymnasium.make("CartPole-v1", sutton_barto_reward=True).unwrapped
    environment.reset(seed=seed)
    start = environment.state.astype(dtype)
    environment.state = start.astype(np.float64)
    cart = cart_pole.Cart(*(jnp.asarray(number, dtype) for number in start))
    nothing = jax.tree.map(jnp.zeros_like, cart)
    history = cart_pole.Balance(cart, nothing, jnp.asarray(False), jnp.zeros((), jnp.int32))
    rng = np.random.default_rng(seed)
    actions: list[int] = []
    error, terminated = 0.0, False
    while not terminated:
        actions.append(int(rng.integers(2)))
        _, reward, terminated, _, _ = environment.step(actions[-1])
        history = apply(history, jnp.asarray(actions[-1], jnp.int32))
        ours = np.array([np.asarray(number) for number in history.cart])
        assert ours.dtype == dtype
        assert bool(history.fell) == terminated, f"seed {seed}, actions {actions}"
        # The paper's reward is Sutton and Barto's.
        assert -float(history.fell) == reward, f"seed {seed}, actions {actions}"
        error = max(error, np.abs(ours.astype(np.float64) - environment.state).max())
    return error, f"off by {error:.2g}: seed {seed}, actions {actions}"


def applied():
    world = cart_pole.CartPole(horizon=10_000)
    return jax.jit(lambda history, action: world.apply(history, action, key=jax.random.key(0)))


def test_it_steps_in_lock_step_with_gymnasium():
    """100 random action sequences, each to the fall, in float64: 1e-12, absolute."""
    with jax.enable_x64(True):
        apply = applied()
        for seed in range(100):
            error, played = random_episode(seed, apply, "float64")
            assert error <= 1e-12, played


def test_it_steps_in_lock_step_with_gymnasium_in_float32():
    """100 random action sequences, each to the fall, in float32: far within 1e-5, absolute.

    What float32 can show of numbers below 4 is 1.2e-7 at best; the longest of them stands for 93 steps.
    """
    apply = applied()
    for seed in range(100):
        error, played = random_episode(seed, apply, "float32")
        assert error <= 2.4e-7, played


def test_rounding_every_step_to_float32_is_not_enough():
    """Why a history keeps the remainders: exact steps, merely rounded, end 3.9e-5 off after 93 steps."""
    rng = np.random.default_rng(43)
    environment = gymnasium.make("CartPole-v1").unwrapped
    environment.reset(seed=43)
    exact = rounded = cart_pole.Cart(*environment.state.astype(np.float32).astype(np.float64))
    steps, error = 0, 0.0
    while not cart_pole.has_fallen(exact):
        action = int(rng.integers(2))
        exact = cart_pole.advance(exact, action, xp=np)
        after = np.asarray(cart_pole.advance(rounded, action, xp=np))
        rounded = cart_pole.Cart(*after.astype(np.float32).astype(np.float64))
        steps, error = steps + 1, max(error, np.abs(np.subtract(exact, rounded)).max())
    assert steps == 93
    assert error == pytest.approx(3.9e-5, abs=5e-7)


def test_the_bare_physics_is_the_same():
    """`advance` on four float64 numbers is what the process takes a step of."""
    with jax.enable_x64(True):
        world = cart_pole.CartPole()
        history = world.initial(key=jax.random.key(0))
        after = world.apply(history, jnp.int32(1), key=jax.random.key(1))
        expected = cart_pole.advance(history.cart, jnp.int32(1))
        np.testing.assert_allclose(np.asarray(after.cart), np.asarray(expected), rtol=1e-15)
        assert not np.any(np.asarray(after.remainder))


def test_a_fall_costs_one_and_the_pole_stands_again():
    world = cart_pole.CartPole()
    apply = jax.jit(lambda history, key: world.apply(history, jnp.int32(1), key=key))
    history = world.initial(key=jax.random.key(0))
    falls = 0
    for step in range(60):
        expected = cart_pole.advance(history.cart, jnp.int32(1))
        history = apply(history, jax.random.key(step))
        fell = bool(cart_pole.has_fallen(expected))
        assert float(world.reward(history)[0]) == -float(fell)
        assert float(world.continuation(history)) == 1.0
        falls += fell
        if fell:
            assert np.all(np.abs(np.asarray(history.cart)) <= 0.05)
        else:
            np.testing.assert_allclose(np.asarray(history.cart), np.asarray(expected), rtol=1e-6)
    assert falls >= 3  # pushed to one side, a pole falls within about ten steps


def test_an_episode_ends_at_a_fall_or_at_the_horizon():
    world = cart_pole.CartPole(horizon=30)
    history = world.initial(key=jax.random.key(0))
    lengths = 0
    while float(world.continuation(history)) > 0:
        history = world.apply(history, jnp.int32(1), key=jax.random.key(1))
        lengths += 1
    assert lengths < 30
    assert float(world.reward(history)[0]) == -1.0
    short = cart_pole.CartPole(horizon=3)
    history = short.initial(key=jax.random.key(0))
    for _ in range(3):
        history = short.apply(history, jnp.int32(1), key=jax.random.key(1))
    assert float(short.continuation(history)) == 0.0
    assert float(short.reward(history)[0]) == 0.0


def test_starts_are_uniform():
    """4 · 4,000 numbers: mean 0 and variance 0.1² / 12 within 5 sigma."""
    world = cart_pole.CartPole()
    keys = jax.random.split(jax.random.key(0), 4_000)
    starts = np.asarray(jax.vmap(lambda key: world.observation(world.initial(key=key)))(keys)).ravel()
    variance = 0.1**2 / 12
    assert np.abs(starts).max() <= 0.05
    assert abs(starts.mean()) < 5 * np.sqrt(variance / starts.size)
    fourth = 0.05**4 / 5
    assert abs(starts.var() - variance) < 5 * np.sqrt((fourth - variance**2) / starts.size)


@pytest.mark.parametrize(("angle", "pole"), [(0.0, "|"), (0.15, "/"), (-0.15, "\\")])
def test_it_renders(angle, pole):
    picture = cart_pole.render(cart_pole.Cart(2.4, 0.0, angle, 0.0))
    assert pole in picture.splitlines()[0].strip("|") + ("|" if angle == 0 else "")
    assert picture.splitlines()[1].endswith("#|")


def test_a_wrong_horizon_is_refused():
    with pytest.raises(ValueError, match="horizon must be at least 1, or None, but is 0"):
        cart_pole.CartPole(horizon=0)
