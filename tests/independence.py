"""Whether two random sources draw independently: equality, correlation and joint frequencies of their draws.

A test that compares numbers with what they should be does not see that two components draw the same numbers:
each alone has the right distribution. These checks are about pairs.
"""

import itertools
import math

import jax
import numpy as np

SIGMAS = 5.0
"""Every statistical bound; a fixed seed that passes keeps passing."""

_LAGS = (-2, -1, 0, 1, 2)
_ACCIDENT = 1e-9


def check_keys(keys):
    """Asserts that no two of the named JAX keys {name: key, or keys with leading axes} are the same."""
    seen = {}
    for name, found in keys.items():
        rows = np.asarray(jax.random.key_data(found) if _is_key(found) else found).reshape(-1, 2)
        for number, row in enumerate(rows.tolist()):
            where = f"{name}[{number}]"
            other = seen.setdefault(tuple(row), where)
            assert other == where, f"{other} and {where} are one key: {row}."


def check_all(draws, *, bins=4):
    """Asserts that every two of the named draws {name: array} are independent; see `check`."""
    for (one, first), (other, second) in itertools.combinations(draws.items(), 2):
        check(first, second, f"{one} and {other}", bins=bins)


def check(one, other, what, *, bins=4):
    """Asserts that two arrays of draws, made side by side, are independent.

    No stretch of the one is in the other, at any place (so long a stretch that among independent draws it
    has a chance of 1e-9); correlations at lags from −2 to 2 are below 5 / √n; and the chi-square of the joint
    table is within 5 standard deviations. Real numbers are sorted into `bins` bins of like size for it.
    Each source must draw from one distribution: under policies that change, everything is correlated.
    """
    one, other = np.asarray(one).reshape(-1), np.asarray(other).reshape(-1)
    assert one.shape == other.shape, f"{what}: {len(one)} draws cannot be held against {len(other)}."
    _check_stretches(one, other, what)
    _check_correlations(one, other, what)
    _check_table(_categories(one, bins), _categories(other, bins), what)


def check_stream(draws, what, *, bins=4):
    """Asserts that the draws of one source do not come again, nor depend on those one and two before."""
    draws = np.asarray(draws).reshape(-1)
    half = len(draws) // 2
    check(draws[:half], draws[half : 2 * half], f"{what}: the first half and the second", bins=bins)
    for lag in (1, 2):
        before, after = draws[:-lag], draws[lag:]
        # Neighbours share stretches by construction: the statistics alone.
        correlation = _correlation(before, after)
        bound = SIGMAS / math.sqrt(len(before))
        assert abs(correlation) < bound, f"{what}: draws {lag} apart have correlation {correlation:.3f}."
        _check_table(_categories(before, bins), _categories(after, bins), f"{what}: draws {lag} apart")


def _check_stretches(one, other, what):
    collision = min(_collision(one), _collision(other))
    assert collision < 1, f"{what}: a source always draws the same, {one[0]} or {other[0]}."
    # n² pairs of stretches, each of which agrees by accident with the probability collision^length.
    length = math.ceil(math.log(_ACCIDENT / len(one) ** 2) / math.log(max(collision, 2.0**-20)))
    assert len(one) >= 2 * length, f"{what}: {len(one)} draws are too few, at least {2 * length} are needed."
    if one.dtype != other.dtype:
        one, other = one.astype(np.float64), other.astype(np.float64)
    windows = [np.lib.stride_tricks.sliding_window_view(draws, length) for draws in (one, other)]
    first = {window.tobytes(): place for place, window in enumerate(windows[0])}
    for place, window in enumerate(windows[1]):
        where = first.get(window.tobytes())
        assert where is None, f"{what}: the same {length} draws begin at {where} and at {place}."


def _check_correlations(one, other, what):
    for lag in _LAGS:
        before, after = (
            one[max(0, -lag) : len(one) - max(0, lag)],
            other[max(0, lag) :][: len(one) - abs(lag)],
        )
        correlation, bound = _correlation(before, after), SIGMAS / math.sqrt(len(before))
        assert abs(correlation) < bound, (
            f"{what}: correlation {correlation:.3f} at lag {lag}, of {len(before)} draws; bound {bound:.3f}."
        )


def _check_table(one, other, what):
    counts = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(counts, (one, other), 1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True) / len(one)
    assert expected.min() >= 5, f"{what}: {len(one)} draws are too few for a table of {counts.shape}."
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    statistic = np.sum((counts - expected) ** 2 / expected)
    # Wilson and Hilferty (1931): the cube root of a chi-square is nearly normal.
    spread = 2 / (9 * freedom)
    deviation = ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    assert deviation < SIGMAS, (
        f"{what}: the joint table is {deviation:.1f} standard deviations off:\n{counts}"
    )


def _correlation(one, other):
    return float(np.corrcoef(one.astype(np.float64), other.astype(np.float64))[0, 1])


def _collision(draws):
    """The probability that two draws are the same, as estimated from all pairs."""
    counts = np.unique(draws, return_counts=True)[1].astype(np.float64)
    return float(np.sum(counts * (counts - 1)) / (len(draws) * (len(draws) - 1)))


def _categories(draws, bins):
    """Draws as numbers of categories: bins of like size where they are real numbers."""
    if draws.dtype.kind == "f":
        edges = np.quantile(draws, np.arange(1, bins) / bins)
        return np.searchsorted(edges, draws)
    return np.unique(draws, return_inverse=True)[1].reshape(-1)


def _is_key(array):
    return hasattr(array, "dtype") and jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key)
