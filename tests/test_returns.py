"""λ-returns: Monte Carlo returns, and windows of them as the online agent takes them."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import oracles
import pytest

from pohp_neurd import returns

RNG = np.random.default_rng(0)
T = 11
REWARDS = -RNG.random(T)
CONTINUATIONS = RNG.random(T)
CONTINUATIONS[[2, 7]] = (0.0, 1.0)  # an end inside the window, and a plain step
VALUES = -RNG.random(T) * 3


@pytest.fixture
def unchecked():
    """Without the shape checks of the tests, as users run the package."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def windows(rewards, continuations, values, *, steps, **options):
    """The λ-return after every decision, each cut off after its own `steps` steps, or at the end."""
    arrays = (rewards, continuations, values)
    cut = ([x[start : start + steps] for x in arrays] for start in range(rewards.shape[0]))
    return jnp.stack([returns.lambda_returns(*window, **options)[0] for window in cut])


compiled = jax.jit(windows, static_argnames="steps")


def monte_carlo(rewards, continuations):
    """Without values, the whole return-to-go."""
    return returns.lambda_returns(rewards, continuations, np.zeros_like(rewards), lambda_=1.0)


def truncated(**options):
    with jax.enable_x64(True):
        arrays = [jnp.asarray(x) for x in (REWARDS, CONTINUATIONS, VALUES)]
        return np.asarray(compiled(*arrays, **options))


def test_monte_carlo_by_hand():
    got = monte_carlo(jnp.array([-1.0, -2.0, -4.0]), jnp.array([0.5, 1.0, 0.0]))
    np.testing.assert_array_equal(got, [-4, -6, -4])


def test_monte_carlo_matches_a_loop():
    with jax.enable_x64(True):
        got = monte_carlo(jnp.asarray(REWARDS), jnp.asarray(CONTINUATIONS))
    for start in range(T):
        expected = oracles.n_step_return(REWARDS, CONTINUATIONS, np.zeros(T), start, T - start, np.ones(T))
        np.testing.assert_allclose(got[start], expected, rtol=1e-13)


def test_monte_carlo_in_expectation_over_sampled_continuations():
    # Enumerate all outcomes of three sampled continuations: the expected weights give the mean return.
    rewards, chances = np.array([-1.0, -0.5, -2.0, -3.0]), np.array([0.7, 0.2, 0.9])
    total = 0.0
    for outcome in np.ndindex(2, 2, 2):
        weight = np.prod(np.where(outcome, chances, 1 - chances))
        sampled = np.array([*outcome, 0.0], np.float32)
        total += weight * float(monte_carlo(jnp.asarray(rewards, jnp.float32), jnp.asarray(sampled))[0])
    expected = monte_carlo(jnp.asarray(rewards, jnp.float32), jnp.array([0.7, 0.2, 0.9, 0.0]))[0]
    np.testing.assert_allclose(total, expected, rtol=1e-6)


def test_lambda_returns_by_hand():
    arrays = (jnp.array([-1.0, -2.0]), jnp.array([0.5, 1.0]), jnp.array([-8.0, -4.0]))
    # G_1 = −2 + 1 · 0.5 · (−4) = −4;  G_0 = −1 + 0.5 · (0.5 · 0.5 · (−8) + 0.5 · G_1) = −3.
    got = returns.lambda_returns(*arrays, lambda_=0.5, bootstrap=0.5)
    np.testing.assert_array_equal(got, [-3, -4])


@pytest.mark.parametrize("lambda_", [0.0, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("bootstrap", [1.0, 0.9, 0.0])
@pytest.mark.parametrize("steps", [1, 2, 5, T, 32])
def test_truncated_lambda_returns_match_the_forward_view(lambda_, bootstrap, steps):
    got = truncated(steps=steps, lambda_=lambda_, bootstrap=bootstrap)
    arguments = (REWARDS, CONTINUATIONS, VALUES)
    expected = oracles.truncated_lambda_returns(*arguments, steps, lambda_, bootstrap)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("lambda_", [0.0, 0.4, 1.0])
def test_lambda_returns_with_an_array_of_bootstrap_factors(lambda_):
    factors = np.ones(T)
    factors[-1], factors[4] = 0.9, 0.3
    with jax.enable_x64(True):
        arrays = [jnp.asarray(x) for x in (REWARDS, CONTINUATIONS, VALUES)]
        got = returns.lambda_returns(*arrays, lambda_=lambda_, bootstrap=jnp.asarray(factors))
        cut_alone = returns.lambda_returns(*arrays, lambda_=1.0, bootstrap=jnp.ones(T).at[-1].set(0.9))
        scalar = returns.lambda_returns(*arrays, lambda_=1.0, bootstrap=0.9)
    expected = oracles.truncated_lambda_returns(REWARDS, CONTINUATIONS, VALUES, T, lambda_, factors)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    # With λ = 1 the cut is the only place where a value counts.
    np.testing.assert_allclose(cut_alone, scalar, rtol=1e-14)


def test_a_window_of_the_whole_trajectory_is_the_lambda_return():
    with jax.enable_x64(True):
        arrays = [jnp.asarray(x) for x in (REWARDS, CONTINUATIONS, VALUES)]
        whole = returns.lambda_returns(*arrays, lambda_=0.9, bootstrap=0.9)
    for steps in (T, T + 1, 100):
        np.testing.assert_allclose(truncated(steps=steps, lambda_=0.9, bootstrap=0.9), whole, rtol=1e-14)


@pytest.mark.parametrize("steps", [1, 3, 32])
def test_lambda_one_is_the_n_step_return(steps):
    got = truncated(steps=steps, lambda_=1.0, bootstrap=0.9)
    for start in range(T):
        longest = min(steps, T - start)
        arguments = (REWARDS, CONTINUATIONS, VALUES, start, longest, np.full(T, 0.9))
        np.testing.assert_allclose(got[start], oracles.n_step_return(*arguments), rtol=1e-13)


@pytest.mark.parametrize("options", [{"steps": 32, "lambda_": 0.0}, {"steps": 1, "lambda_": 0.7}])
def test_lambda_zero_and_one_step_are_one_step_td(options):
    got = truncated(**options, bootstrap=0.9)
    np.testing.assert_allclose(got, REWARDS + CONTINUATIONS * 0.9 * VALUES, rtol=1e-14)


def test_nothing_passes_a_continuation_of_zero():
    changed = [x.copy() for x in (REWARDS, CONTINUATIONS, VALUES)]
    for array in changed:
        array[3:] = 0.5
    changed[2][2] = 99.0  # the value of a terminal history
    with jax.enable_x64(True):
        options = {"steps": 5, "lambda_": 0.9}
        before = compiled(*(jnp.asarray(x) for x in (REWARDS, CONTINUATIONS, VALUES)), **options)
        after = compiled(*(jnp.asarray(x) for x in changed), **options)
    np.testing.assert_array_equal(before[:3], after[:3])


def test_perfect_values_are_a_fixed_point():
    # With V equal to the true return-to-go, every λ and every window gives it back.
    truth = np.zeros(T + 1)
    for t in reversed(range(T)):
        truth[t] = REWARDS[t] + CONTINUATIONS[t] * truth[t + 1]
    with jax.enable_x64(True):
        arrays = [jnp.asarray(x) for x in (REWARDS, CONTINUATIONS, truth[1:])]
        for steps, lambda_ in ((1, 0.3), (4, 0.9), (32, 1.0)):
            got = compiled(*arrays, steps=steps, lambda_=lambda_)
            np.testing.assert_allclose(got, truth[:-1], rtol=1e-12)


@pytest.mark.thorough
def test_gradient_flows_to_values_with_the_forward_views_weights():
    with jax.enable_x64(True):
        arrays = [jnp.asarray(x) for x in (REWARDS, CONTINUATIONS, VALUES)]

        def first(values):
            options = {"steps": 4, "lambda_": 0.6, "bootstrap": 0.9}
            return windows(*arrays[:2], values, **options)[4]

        numeric = oracles.finite_differences(
            lambda v: oracles.truncated_lambda_returns(REWARDS, CONTINUATIONS, v, 4, 0.6, 0.9)[4], VALUES
        )
        np.testing.assert_allclose(jax.grad(first)(arrays[2]), numeric, atol=1e-8)


def test_under_vmap_and_in_single_precision():
    batch = jnp.asarray(np.stack([REWARDS, 2 * REWARDS]), jnp.float32)
    continuations = jnp.asarray(np.stack([CONTINUATIONS] * 2), jnp.float32)
    values = jnp.asarray(np.stack([VALUES, 2 * VALUES]), jnp.float32)

    def one(rewards, continuations, values):
        return windows(rewards, continuations, values, steps=4, lambda_=0.9)

    got = jax.jit(jax.vmap(one))(batch, continuations, values)
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got[1], 2 * got[0], rtol=1e-6)
    np.testing.assert_allclose(got[0], truncated(steps=4, lambda_=0.9), rtol=1e-5)


ONES = np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: monte_carlo(ONES, np.ones(2)),
            "continuations must have the shape (3), but has (2,).",
        ),
        (
            lambda: monte_carlo(np.ones((2, 3)), ONES),
            "rewards must have the shape (any), but has (2, 3).",
        ),
        (lambda: monte_carlo(ONES, ONES * 2), "continuations must lie in [0, 1], but is [2. 2. 2.]."),
        (
            lambda: monte_carlo(ONES[:0], ONES[:0]),
            "a return needs at least one reward, but there is none.",
        ),
        (
            lambda: returns.lambda_returns(ONES, ONES, np.ones(4), lambda_=0.9),
            "next_values must have the shape (3), but has (4,).",
        ),
        (
            lambda: returns.lambda_returns(ONES, ONES, ONES, lambda_=1.9),
            "lambda_ must lie in [0, 1], but is 1.9.",
        ),
        (
            lambda: returns.lambda_returns(ONES, ONES, ONES, lambda_=0.9, bootstrap=np.ones(2)),
            "bootstrap must have the shape (3), but has (2,).",
        ),
    ],
)
def test_bad_input_gets_one_sentence(unchecked, call, sentence):
    with pytest.raises(ValueError, match=r".*") as error:
        call()
    assert str(error.value) == sentence
