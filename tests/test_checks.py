"""Checks of user input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pohp_neurd import checks


@pytest.mark.parametrize(
    ("check", "good", "bad", "sentence"),
    [
        (checks.in_unit_interval, [0, 0.5, 1.0, np.zeros(3)], 1.5, "x must lie in [0, 1], but is 1.5."),
        (checks.in_unit_interval, [], float("nan"), "x must lie in [0, 1], but is nan."),
        (checks.in_unit_interval, [], np.array([0, 2.0]), "x must lie in [0, 1], but is [0. 2.]."),
        (checks.non_negative, [0, 3.0], -1, "x must be a finite number of at least 0, but is -1."),
        (checks.non_negative, [], float("inf"), "x must be a finite number of at least 0, but is inf."),
        (checks.positive, [1e-9, 2], 0, "x must be a finite number above 0, but is 0."),
        (checks.distribution, [[1.0], [[0.5, 0.5], [0, 1]]], [0.5, 0.6], "x must sum to 1, but sums to 1.1."),
        (checks.distribution, [], [[0.5, 0.5], [0, 0]], "x must sum to 1, but sums to 0."),
        (checks.distribution, [], [2.0, -1.0], "x must be non-negative, but holds -1.0."),
        (checks.distribution, [], [np.nan, 1.0], "x must be non-negative, but holds nan."),
        (checks.distribution, [], [np.inf, 1.0], "x must sum to 1, but sums to inf."),
    ],
)
def test_values(check, good, bad, sentence):
    for value in good:
        check("x", value)
        check("x", jnp.asarray(value))
    with pytest.raises(ValueError, match=r".*") as error:
        check("x", bad)
    assert str(error.value) == sentence


def test_one_of():
    checks.one_of("x", "a", ("a", "b"))
    with pytest.raises(ValueError, match=r"^x must be one of a, b, but is 'c'\.$"):
        checks.one_of("x", "c", ("a", "b"))


def test_index():
    checks.index("x", [0, 2], 3)
    for bad in (-1, 3):
        with pytest.raises(ValueError, match=rf"^x must be one of 0 to 2, but is {bad}\.$"):
            checks.index("x", bad, 3)


def test_shape():
    checks.shape("x", np.zeros((2, 3)), (2, None))
    with pytest.raises(ValueError, match=r"^x must have the shape \(any, 4\), but has \(2, 3\)\.$"):
        checks.shape("x", np.zeros((2, 3)), (None, 4))
    with pytest.raises(ValueError, match=r"^x must have the shape \(2\), but has \(\)\.$"):
        checks.shape("x", 1.0, (2,))


def test_float32_distributions_of_many_actions_pass():
    checks.distribution("x", np.full(777, 1 / 777, np.float32))


def test_traced_values_pass_and_traced_shapes_do_not():
    @jax.jit
    def inside(x):
        checks.in_unit_interval("x", x)
        checks.distribution("x", x)
        checks.index("x", x, 1)
        return x

    inside(jnp.array([5.0, -5.0]))
    assert checks.known(3.0) == 3
    with pytest.raises(ValueError, match="shape"):
        jax.jit(lambda x: checks.shape("x", x, (3,)))(jnp.zeros(2))


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("20", 20),
        ("2e7", 20_000_000),
        ("1E6", 10**6),
        ("-3", -3),
        (" 7 ", 7),
        (7, 7),
        (1e6, 10**6),
        ("1.0", 1),
    ],
)
def test_whole_numbers(value, number):
    assert checks.whole(value) == number
    assert type(checks.whole(value)) is int


@pytest.mark.parametrize(
    "value", ["1.5", "", "many", "nan", "inf", "1e-3", "1e400", True, None, 0.5, float("inf")]
)
def test_what_is_no_whole_number(value):
    with pytest.raises(ValueError, match=r"^must be a whole number, such as 20000000 or 2e7, but is "):
        checks.whole(value)


def test_all_finite_looks_at_every_leaf():
    fine = {"weights": jnp.ones(3), "count": jnp.int32(2)}
    assert checks.all_finite(fine)
    for wrong in (jnp.inf, -jnp.inf, jnp.nan):
        assert not jax.jit(checks.all_finite)({**fine, "moment": jnp.array([0.0, wrong])})


def test_divergence_is_a_floating_point_error_that_says_what_to_try():
    plain = checks.Diverged("a logit", after="update 3", remedy="step_size")
    assert isinstance(plain, FloatingPointError)
    sentence = "Training diverged: a logit was not finite after update 3. Try a smaller step_size."
    assert str(plain) == plain.without_checkpoint == sentence
    kept = checks.Diverged("x", after="y", remedy="z", checkpoint="there is no checkpoint yet")
    assert (
        str(kept)
        == "Training diverged: x was not finite after y; there is no checkpoint yet. Try a smaller z."
    )
