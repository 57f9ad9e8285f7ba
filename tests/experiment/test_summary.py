"""Statistics over seeds against scipy, exact enumeration and normal theory."""

import itertools

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies
from scipy import stats

from pohp_neurd.results import records, table

STATISTICS = {
    "mean": np.mean,
    "median": np.median,
    "iqm": lambda values: stats.trim_mean(values, 0.25),
}
SIGMAS = 5


def rows_of(values, **setting):
    return [{**setting, "seed": seed, "total_reward": value} for seed, value in enumerate(values)]


def summary_of(values, **options):
    (row,) = table.summarise(rows_of(values), by=[], value="total_reward", **options)
    return row


@hypothesis.given(strategies.lists(strategies.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_figures_are_those_of_numpy_and_scipy(values):
    row = summary_of(values, resamples=10)
    assert row["runs"] == len(values)
    assert (row["worst"], row["best"]) == (min(values), max(values))
    for name, statistic in STATISTICS.items():
        np.testing.assert_allclose(row[name], statistic(values), rtol=1e-12, atol=1e-6)


def test_the_interquartile_mean_works_along_the_last_axis():
    table_ = np.random.default_rng(0).normal(size=(50, 11))
    np.testing.assert_allclose(
        table.interquartile_mean(table_), stats.trim_mean(table_, 0.25, axis=1), rtol=1e-13
    )


def test_one_run_has_no_interval():
    row = summary_of([3.0])
    assert (row["mean"], row["median"], row["iqm"]) == (3.0, 3.0, 3.0)
    assert {row[name] for name in table.FIGURES if name.endswith(("_low", "_high"))} == {""}
    rows = rows_of([1.0, 2.0], environment="catch") + rows_of([5.0], environment="cart_pole")
    (row,) = table.summarise(rows, by=[], value="total_reward", stratum="environment")
    assert row["mean_low"] == ""  # what the single run could have been is not known


def bracket(atoms, level, resamples):
    """Between which quantiles of the exact distribution a sampled one lies, with 5 sigma in the level."""
    error = SIGMAS * np.sqrt(level * (1 - level) / resamples)
    return np.quantile(atoms, [level - error, level + error], method="inverted_cdf")


@pytest.mark.parametrize(
    "strata", [[[0.3, 2.0, -1.0]], [[5.0, 1.0, 2.5, -3.0]], [[1.0, 2.0, 4.0], [30.0, 37.0]]]
)
def test_intervals_are_quantiles_of_all_resamples_there_are(strata):
    resamples = 20_000
    each = [itertools.product(values, repeat=len(values)) for values in strata]
    drawn = [sum(parts, ()) for parts in itertools.product(*each)]
    assert len(drawn) == np.prod([len(values) ** len(values) for values in strata])
    rows = [row for place, values in enumerate(strata) for row in rows_of(values, stratum=place)]
    (row,) = table.summarise(rows, by=[], value="total_reward", stratum="stratum", resamples=resamples)
    for name, statistic in STATISTICS.items():
        exact = np.array([statistic(values) for values in drawn])
        for end, level in (("low", 0.025), ("high", 0.975)):
            least, most = bracket(exact, level, resamples)
            assert least - 1e-12 <= row[f"{name}_{end}"] <= most + 1e-12, name


@pytest.mark.parametrize("name", list(STATISTICS))
def test_intervals_are_scipys_within_monte_carlo_error(name):
    values = np.random.default_rng(1).gamma(2.0, size=20)
    resamples = 10_000
    row = summary_of(values, resamples=resamples)

    def statistic(sample, axis):
        if name == "iqm":
            return stats.trim_mean(sample, 0.25, axis=axis)
        return STATISTICS[name](sample, axis=axis)

    theirs = stats.bootstrap(
        (values,), statistic, method="percentile", n_resamples=resamples, rng=np.random.default_rng(2)
    )
    for end, level in (("low", 0.025), ("high", 0.975)):
        # Two sampled quantiles of one distribution, so sqrt(2).
        error = SIGMAS * np.sqrt(2 * level * (1 - level) / resamples)
        least, most = np.quantile(theirs.bootstrap_distribution, [level - error, level + error])
        assert least <= row[f"{name}_{end}"] <= most


@pytest.mark.thorough
def test_the_interval_of_a_mean_covers_as_theory_says():
    # The bootstrap's standard error is s √((n − 1) / n) / √n, so 95% becomes P(|t| ≤ 1.96 √((n − 1) / n)).
    samples, runs = 2_000, 10
    values = np.random.default_rng(3).normal(7.0, 2.0, size=(samples, runs))
    rows = [row for place in range(samples) for row in rows_of(values[place], sample=place)]
    found = table.summarise(rows, by=["sample"], value="total_reward", resamples=1_000)
    covered = np.mean([row["mean_low"] <= 7.0 <= row["mean_high"] for row in found])
    expected = 1 - 2 * stats.t.sf(stats.norm.ppf(0.975) * np.sqrt((runs - 1) / runs), runs - 1)
    assert 0.90 < expected < 0.91
    # A normal curve stands in for the bootstrap distribution and 1,000 resamples for all: 0.01 for both.
    assert abs(covered - expected) < 0.01 + SIGMAS * np.sqrt(expected * (1 - expected) / samples)


def test_strata_keep_their_differences_out_of_the_interval():
    generator = np.random.default_rng(4)
    worlds = {"catch": -26_000.0, "cart_pole": -500.0, "other": 4_000.0}
    runs, rows = 12, []
    for world, mean in worlds.items():
        rows += rows_of(mean + generator.normal(size=runs), environment=world)
    (row,) = table.summarise(rows, by=[], value="total_reward", stratum="environment")
    parts = [[r["total_reward"] for r in rows if r["environment"] == world] for world in worlds]
    within = np.sqrt(sum(runs * np.var(part) for part in parts)) / (runs * len(worlds))
    width = row["mean_high"] - row["mean_low"]
    # A quantile at 2.5% of 10,000 has an error of 0.027 standard deviations, and there are two of them.
    assert abs(width / within - 2 * stats.norm.ppf(0.975)) < SIGMAS * 0.027 * np.sqrt(2) + 0.05
    pool = [{"total_reward": r["total_reward"]} for r in rows]
    (pooled,) = table.summarise(pool, by=[], value="total_reward")
    assert pooled["mean_high"] - pooled["mean_low"] > 1_000 * width
    assert pooled["mean"] == pytest.approx(row["mean"])


def test_nothing_depends_on_the_order_of_rows_or_on_other_settings():
    generator = np.random.default_rng(5)
    rows = [
        {"environment": world, "exploration": exploration, "seed": seed, "total_reward": generator.normal()}
        for world in ("catch", "cart_pole")
        for exploration in (0.1, 0.0)
        for seed in range(5)
    ]
    options = {"by": ["exploration"], "value": "total_reward", "stratum": "environment", "resamples": 500}
    found = table.summarise(rows, **options)
    assert [row["exploration"] for row in found] == [0.0, 0.1]
    assert found == table.summarise([rows[i] for i in generator.permutation(len(rows))], **options)
    assert found[1:] == table.summarise(table.select(rows, {"exploration": 0.1}), **options)
    assert found != table.summarise(rows, **options, seed=1)


def test_the_best_nash_conv_is_the_smallest():
    rows = [{"seed": 0, "nash_conv": 0.1}, {"seed": 1, "nash_conv": 0.3}]
    (row,) = table.summarise(rows, by=[], value="nash_conv")
    assert (row["worst"], row["best"]) == (0.3, 0.1)


@pytest.mark.parametrize("bad", [float("nan"), float("-inf"), ""])
def test_a_run_without_a_figure_is_named(bad):
    rows = rows_of([1.0, 2.0], learner="spg", exploration=0) + rows_of(
        [1.0, bad], learner="spg", exploration=1
    )
    with pytest.raises(
        ValueError, match=r"total_reward must be a finite number .* learner=spg, exploration=1\."
    ):
        table.summarise(rows, by=["learner", "exploration"], value="total_reward")


def test_wrong_arguments_get_one_sentence():
    rows = rows_of([1.0, 2.0])
    with pytest.raises(ValueError, match="no column 'learner'; the columns are seed, total_reward"):
        table.summarise(rows, by=["learner"], value="total_reward")
    with pytest.raises(ValueError, match="no column 'nash_conv'"):
        table.summarise(rows, by=[], value="nash_conv")
    with pytest.raises(ValueError, match="the second has none"):
        table.difference(rows, [], "total_reward")
    assert table.summarise([], by=["learner"], value="total_reward") == []


def test_differences_are_those_of_all_pairs_of_resamples():
    ours, theirs, resamples = [1.0, 2.0, 4.0], [0.0, 0.5, 3.5], 20_000
    mean, low, high = table.difference(rows_of(ours), rows_of(theirs), "total_reward", resamples=resamples)
    means = [[np.mean(drawn) for drawn in itertools.product(part, repeat=3)] for part in (ours, theirs)]
    exact = np.subtract.outer(*means).ravel()
    assert mean == pytest.approx(7 / 3 - 4 / 3)
    for value, level in ((low, 0.025), (high, 0.975)):
        least, most = bracket(exact, level, resamples)
        assert least - 1e-12 <= value <= most + 1e-12


def test_a_difference_keeps_strata_out_and_one_run_has_no_interval():
    sides = []
    for shift in (1.0, 0.0):
        sides.append(rows_of([shift, shift], world="a") + rows_of([shift + 1e3, shift + 1e3], world="b"))
    assert table.difference(*sides, "total_reward", stratum="world") == (1.0, 1.0, 1.0)
    _, low, high = table.difference(*sides, "total_reward")
    assert low < 0 < high
    assert table.difference(sides[0], sides[1][:1], "total_reward") == (501.0, "", "")


def test_settings_held_against_a_reference():
    rows = rows_of([1.0, 2.0, 4.0], learner="a") + rows_of([0.0, 0.5], learner="b")
    ours, theirs = table.summarise(rows, by=["learner"], value="total_reward", against=rows[3:])
    expected = table.difference(rows[:3], rows[3:], "total_reward")
    assert tuple(ours[name] for name in table.DIFFERENCES) == expected
    assert [theirs[name] for name in table.DIFFERENCES] == ["", "", ""]
    (one, _) = table.summarise(rows, by=["learner"], value="total_reward", against=rows[3:4])
    assert one["difference"] == expected[0] + 0.25
    assert one["difference_low"] == one["difference_high"] == ""


def test_runs_of_several_settings_are_not_thrown_together():
    rows = [{"learner": "spg", "rate": rate, "seed": s, "r": 1.0} for rate in (0.1, 0.2) for s in range(3)]
    with pytest.raises(ValueError, match=r"2 rows with learner=spg, seed=0, .* differ in rate"):
        table.summarise(rows, by=["learner"], value="r")
    assert len(table.summarise(rows, by=["learner", "rate"], value="r")) == 2
    assert len(table.summarise(rows, by=["learner"], value="r", stratum="rate")) == 1
    with pytest.raises(ValueError, match=r"2 rows with seed=0"):
        table.summarise(rows, by=["learner", "rate"], value="r", against=rows)
    with pytest.raises(ValueError, match="the column runs cannot be one to group by"):
        table.summarise([{"runs": 3, "r": 1.0}], by=["runs"], value="r")


@pytest.mark.parametrize("column", ["losses_per_step_at_end", "cix_regret_median", "nash_conv_average"])
def test_of_losses_the_smallest_is_the_best(column):
    (row,) = table.summarise([{column: 1.0}, {column: 2.0}], by=[], value=column)
    assert (row["worst"], row["best"]) == (2.0, 1.0)


def test_tables_are_for_people():
    rows = [
        {"learner": "spg", "learning_rate": 0.00003, "mean": -26667.4, "mean_low": "", "best": 0.012634},
        {"learner": "neurd", "learning_rate": 0.001797, "mean": 0.0, "mean_low": -0.5, "best": 8.2e-7},
    ]
    assert table.markdown(rows, {name: f"{{{name}}}" for name in rows[0]}).splitlines() == [
        "| learner | learning_rate | mean | mean_low | best |",
        "|---|---|---|---|---|",
        "| spg | 0.00003 | −26,667 | – | 0.01263 |",
        "| neurd | 0.001797 | 0 | −0.5 | 8.2e-7 |",
    ]
    columns = {"rate": "{learning_rate}", "reward: mean (best)": "{mean} ({best})"}
    assert table.markdown(rows[:1], columns).splitlines() == [
        "| rate | reward: mean (best) |",
        "|---|---|",
        "| 0.00003 | −26,667 (0.01263) |",
    ]
    with pytest.raises(ValueError, match="no column 'worst'; the columns are learner"):
        table.markdown(rows, {"worst": "{worst}"})


def test_summaries_are_written_as_csv(tmp_path):
    found = table.summarise(rows_of([1.0, 2.0], learner="spg"), by=["learner"], value="total_reward")
    records.write_csv(tmp_path / "summary.csv", found, ["learner", *table.FIGURES])
    assert table.read(tmp_path / "summary.csv") == found
