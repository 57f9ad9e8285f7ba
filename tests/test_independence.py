"""The checks of independence find what is not independent, and pass what is."""

import independence
import jax
import numpy as np
import pytest


def uniform_draws(seed, count=2_000):
    return np.random.default_rng(seed).random(count)


def test_independent_draws_pass():
    """60 pairs of sources; a bound of 5 sigma in some 400 statistics fails once in 4,000 such tests."""
    for seed in range(30):
        independence.check(uniform_draws(2 * seed), uniform_draws(2 * seed + 1), "reals")
        rng = np.random.default_rng(seed)
        independence.check(rng.integers(3, size=1_000), rng.integers(5, size=1_000), "whole numbers")


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        (lambda u: u, "the same"),
        (
            lambda u: np.concatenate([uniform_draws(9, 1_500), u[:500]]),
            "the same 3 draws begin at 0 and at 1500",
        ),
        (lambda u: np.roll(u, 700), "the same"),
        (lambda u: 1 - u, "correlation -1.000 at lag 0"),
        (lambda u: np.roll(1 - u, 1), "correlation -1.000 at lag 1"),
        (lambda u: np.abs(u - 0.5), "the joint table"),
        (lambda u: (3 * u).astype(int), "correlation"),
        (lambda u: np.where(u < 0.3, u, uniform_draws(9)) + 1e-9, "correlation"),
    ],
)
def test_dependent_draws_do_not(made, complaint):
    draws = uniform_draws(0)
    with pytest.raises(AssertionError, match=complaint):
        independence.check(draws, made(draws), "these")


def test_a_stream_that_comes_again_does_not_pass():
    draws = uniform_draws(0, 1_024)
    independence.check_stream(draws, "once")
    for again in (np.tile(draws, 2), np.repeat(draws, 2)):
        with pytest.raises(AssertionError):
            independence.check_stream(again, "twice")


def test_too_few_draws_are_no_check():
    with pytest.raises(AssertionError, match="too few"):
        independence.check(np.arange(20) % 2, np.arange(20) % 3, "these")
    with pytest.raises(AssertionError, match="always draws the same"):
        independence.check(np.zeros(99), np.zeros(99), "these")


def test_equal_keys_are_found():
    keys = jax.random.split(jax.random.key(0), 3)
    independence.check_keys({"some": keys, "another": jax.random.key(1)})
    with pytest.raises(AssertionError, match=r"some\[1\] and again\[0\] are one key"):
        independence.check_keys({"some": keys, "again": keys[1]})
