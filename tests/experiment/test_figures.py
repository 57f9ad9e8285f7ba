"""Figures of sweeps: what is on the axes, not how it looks."""

import contextlib

import numpy as np
import pytest
from matplotlib import colors

from pohp_neurd.results import figures, table


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draws with the function that is given; the figure, once it has been written."""
    kept = []
    figure_of = figures.figure

    @contextlib.contextmanager
    def keeping(*arguments, **options):
        with figure_of(*arguments, **options) as figure:
            kept.append(figure)
            yield figure

    monkeypatch.setattr(figures, "figure", keeping)

    def draw(function, *arguments, **options):
        function(tmp_path / "x.png", *arguments, **options)
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
        return kept.pop()

    return draw


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def sweep_rows():
    generator = np.random.default_rng(0)
    return [
        {
            "environment": environment,
            "learner": learner,
            "exploration": exploration,
            "learning_rate": 0.1,
            "seed": seed,
            "total_reward": float(generator.normal(-100.0, 20.0)),
        }
        for environment in ("catch", "cart_pole")
        for learner, explorations in (("spg", [""]), ("neurd_cix", [1.0, 0.01, 0.0]))
        for exploration in explorations
        for seed in range(6)
    ]


def rewards(rows, **wanted):
    return [r["total_reward"] for r in rows if all(r[name] == wanted[name] for name in wanted)]


def test_the_papers_figure_has_a_dot_for_every_run_their_mean_and_the_reference(drawn):
    rows = sweep_rows()
    runs = [row for row in rows if row["learner"] == "neurd_cix"]
    spg = [row for row in rows if row["learner"] == "spg"]
    figure = drawn(
        figures.sensitivity, runs, x="exploration", reference=spg, panels=["environment"], title="Both"
    )
    assert [axes.get_title() for axes in figure.axes] == ["catch", "cart pole"]
    assert legend(figure) == [
        "SPG: best to worst",
        "SPG: mean of 6 runs",
        "NeuRD-CIX: a run",
        "NeuRD-CIX: mean of 6 runs",
    ]
    for axes, environment in zip(figure.axes, ("catch", "cart_pole"), strict=True):
        assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "0.01", "1"]
        dashed, *dots, mean = axes.lines
        theirs = rewards(rows, environment=environment, learner="spg")
        assert dashed.get_ydata() == pytest.approx([np.mean(theirs)] * 2)
        assert dashed.get_linestyle() == "--"
        (band,) = axes.patches
        assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((min(theirs), max(theirs)))
        for place, exploration in enumerate((0.0, 0.01, 1.0)):
            ours = rewards(rows, environment=environment, exploration=exploration)
            assert sorted(dots[place].get_ydata()) == sorted(ours)
            # Spread sideways, but nearer to their own setting than to any other.
            assert np.all(np.abs(dots[place].get_xdata() - place) < 0.3)
            assert mean.get_ydata()[place] == pytest.approx(np.mean(ours))
        assert list(mean.get_xdata()) == [0, 1, 2]


def test_learning_rates_are_on_a_logarithmic_axis(drawn):
    rows = [
        {"learner": learner, "learning_rate": rate, "seed": seed, "total_reward": rate * (seed - 1)}
        for learner in ("spg", "neurd")
        for rate in (0.001, 0.1, 0.01)
        for seed in range(3)
    ]
    figure = drawn(figures.sensitivity, rows, x="learning_rate")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.001", "0.01", "0.1"]
    np.testing.assert_allclose(np.diff(axes.get_xticks()), 1.0)  # a decade each
    means = [line for line in axes.lines if len(line.get_ydata()) == 3 and line.get_linestyle() != "None"]
    assert len(means) == 2
    assert len({line.get_color() for line in means}) == len({line.get_marker() for line in means}) == 2
    np.testing.assert_allclose([line.get_ydata() for line in means], 0.0, atol=1e-15)


@pytest.mark.parametrize("x", ["exploration", "learning_rate"])
def test_settings_that_agree_to_six_digits_are_told_apart(drawn, x):
    rows = [{**row, "share": share} for share in (0.1, 0.10000001) for row in sweep_rows()]
    rows = [row for row in rows if row["environment"] == "catch" and row["exploration"] == 1.0]
    figure = drawn(figures.sensitivity, rows, x=x, series=["share"])
    assert legend(figure) == [
        f"share {share}: {what}" for share in ("0.1", "0.10000001") for what in ("a run", "mean of 6 runs")
    ]
    figure = drawn(figures.sensitivity, rows, x=x, series=[], panels=["share"])
    assert [axes.get_title() for axes in figure.axes] == ["share 0.1", "share 0.10000001"]


def test_runs_without_seeds_are_not_pooled(tmp_path):
    rows = [row for row in sweep_rows() if row["environment"] == "catch" and row["exploration"] == 1.0]
    rows = [{name: row[name] for name in row if name != "seed"} for row in rows]
    mixed = [rows[0], {**rows[1], "learning_rate": 0.2}]
    sentence = "for no column 'seed' tells runs apart: .* these rows differ in learning_rate, total_reward"
    with pytest.raises(ValueError, match=sentence):
        figures.sensitivity(tmp_path / "x.png", mixed, x="exploration")
    with pytest.raises(ValueError, match=r"there are 6 rows, but one is needed, for no column 'seed'"):
        figures.sensitivity(tmp_path / "x.png", rows[:1], x="exploration", reference=rows)
    assert list(tmp_path.iterdir()) == []
    figures.sensitivity(tmp_path / "x.png", rows[:1], x="exploration", reference=rows[1:2])


def test_dots_show_no_trend():
    # Runs are drawn in the order of their values: a slope of the dots would look like a result.
    for runs in (10, 20, 50):
        places = figures.sideways(runs)
        assert np.all(np.abs(places) <= 1)
        assert abs(np.corrcoef(places, np.arange(runs))[0, 1]) < 0.3
    assert list(figures.sideways(1)) == [0.0]


@pytest.mark.parametrize(
    ("x", "change", "sentence"),
    [
        ("exploration", {"exploration": ""}, "exploration must be a finite number"),
        (
            "exploration",
            {"total_reward": float("nan")},
            "but is nan in learner=neurd_cix, exploration=1",
        ),
        ("exploration", {"learning_rate": 0.2, "seed": 1}, "these rows differ in learning_rate"),
        ("learning_rate", {"learning_rate": 0.0}, "learning_rate must be above 0"),
    ],
)
def test_runs_that_cannot_be_drawn_get_one_sentence(tmp_path, x, change, sentence):
    rows = [row for row in sweep_rows() if row["environment"] == "catch" and row["exploration"] == 1.0]
    rows[0] = {**rows[0], **change}
    with pytest.raises(ValueError, match=sentence):
        figures.sensitivity(tmp_path / "x.png", rows, x=x)
    assert list(tmp_path.iterdir()) == []


def game_rows(seeds=5):
    generator = np.random.default_rng(1)
    return [
        {
            "exploration": exploration,
            "seed": seed,
            "updates": 10 * moment,
            "episodes": 1_000 * moment,
            "steps": 4_000 * moment + seed,
            "nash_conv": float(generator.gamma(2.0)),
            "nash_conv_average": float(generator.gamma(1.0)),
        }
        for exploration in (1.0, 0.0, 0.1)
        for seed in range(seeds)
        for moment in range(1, 8)
    ]


@pytest.mark.parametrize(
    "band", [figures.BANDS["interquartile"], figures.BANDS["bootstrap"]], ids=["interquartile", "bootstrap"]
)
def test_nash_conv_of_settings_has_a_line_and_a_band_in_both_panels(drawn, band):
    rows = game_rows()
    figure = drawn(figures.compare_nash_conv, rows, band=band, title="Leduc poker")
    assert legend(figure) == ["exploration 0", "exploration 0.1", "exploration 1"]
    told = figure.legends[0].get_title().get_text()
    assert (
        told
        == {
            figures.BANDS["interquartile"]: "line: median of 5 runs; band: their middle half",
            figures.BANDS["bootstrap"]: "line: mean of 5 runs; band: 95% bootstrap interval",
        }[band]
    )
    for axes, column in zip(figure.axes, ("nash_conv", "nash_conv_average"), strict=True):
        assert axes.get_yscale() == "log"
        assert len({line.get_marker() for line in axes.lines}) == 3
        for exploration, line, area in zip((0.0, 0.1, 1.0), axes.lines, axes.collections, strict=True):
            here = [row for row in rows if row["exploration"] == exploration]
            if band is figures.BANDS["bootstrap"]:
                found = table.summarise(here, by=["episodes"], value=column)
                low, middle, high = ([r[key] for r in found] for key in ("mean_low", "mean", "mean_high"))
            else:
                values = [[r[column] for r in here if r["updates"] == 10 * m] for m in range(1, 8)]
                low, middle, high = (np.quantile(values, q, axis=1) for q in (0.25, 0.5, 0.75))
            assert list(line.get_xdata()) == [1_000 * moment for moment in range(1, 8)]
            np.testing.assert_allclose(line.get_ydata(), middle)
            corners = area.get_paths()[0].vertices[:, 1]
            assert (corners.min(), corners.max()) == pytest.approx((min(low), max(high)))
            assert colors.to_hex(area.get_facecolor()[0]) == colors.to_hex(line.get_color())


def test_a_run_each_has_no_band_and_expected_updates_count_iterations(drawn):
    rows = [{**row, "episodes": 0} for row in game_rows(seeds=1)]
    figure = drawn(figures.compare_nash_conv, rows)
    assert figure.legends[0].get_title().get_text() == "a run each"
    assert all(not axes.collections and axes.get_xlabel() == "iterations" for axes in figure.axes)


def test_a_median_is_over_all_runs_or_not_drawn(drawn):
    rows = [row for row in game_rows() if row["seed"] != 3 or row["updates"] <= 40]
    figure = drawn(figures.compare_nash_conv, rows)
    assert list(figure.axes[0].lines[0].get_xdata()) == [1_000, 2_000, 3_000, 4_000]


def test_settings_of_games_are_not_mixed(tmp_path):
    rows = [{**row, "step_size": size} for size in (0.1, 0.2) for row in game_rows()]
    with pytest.raises(ValueError, match="these rows differ in step_size"):
        figures.compare_nash_conv(tmp_path / "x.png", rows)
    live = [{**row, "nash_conv": ""} for row in game_rows()]
    with pytest.raises(ValueError, match=r"nash_conv must be a finite number .* in exploration 0"):
        figures.compare_nash_conv(tmp_path / "x.png", live)
    with pytest.raises(ValueError, match="there are no rows"):
        figures.compare_nash_conv(tmp_path / "x.png", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("column", ["updates", "episodes"])
def test_an_empty_cell_of_games_is_told(tmp_path, column):
    rows = [*game_rows(), {**game_rows()[0], "seed": 7, column: ""}]
    with pytest.raises(ValueError, match=f"^{column} must be a finite number .* exploration=1.0, seed=7"):
        figures.compare_nash_conv(tmp_path / "x.png", rows)
    assert list(tmp_path.iterdir()) == []


def test_games_without_seeds_are_not_pooled(drawn, tmp_path):
    rows = [{name: row[name] for name in row if name != "seed"} for row in game_rows(seeds=1)]
    mixed = [{**row, "step_size": size} for size in (0.1, 0.2) for row in rows]
    with pytest.raises(ValueError, match=r"for no column 'seed' tells runs apart: .* differ in step_size"):
        figures.compare_nash_conv(tmp_path / "x.png", mixed)
    assert list(tmp_path.iterdir()) == []
    assert len(drawn(figures.compare_nash_conv, rows).axes[0].lines) == 3
    close = [{**row, "exploration": row["exploration"] + 1e-9} for row in rows]
    assert len(set(legend(drawn(figures.compare_nash_conv, rows + close)))) == 6


def curve_rows(level, learner="spg"):
    return [
        {"learner": learner, "seed": seed, "steps": 5_000 * moment, "reward": level * (seed + 1)}
        for moment in (1, 2, 3)
        for seed in range(3)
    ]


def test_learning_curves_are_a_line_for_each_seed_and_their_mean(drawn):
    rows = curve_rows(-10.0) + curve_rows(-5.0, "neurd")
    figure = drawn(figures.compare_rewards, rows, series=["learner"], title="Catch")
    assert legend(figure) == ["SPG", "NeuRD"]
    (axes,) = figure.axes
    means = [line for line in axes.lines if line.get_label() in ("SPG", "NeuRD")]
    assert len(axes.lines) == 2 * (3 + 1)
    np.testing.assert_allclose([line.get_ydata() for line in means], [[-4.0] * 3, [-2.0] * 3])
    assert len({line.get_linestyle() for line in means}) == 2


def test_learning_curves_of_rates_that_agree_to_six_digits_are_two_lines(drawn):
    rows = [{**row, "rate": rate} for rate in (0.1, 0.10000001, "") for row in curve_rows(-1.0)]
    figure = drawn(figures.compare_rewards, rows, series=["rate"], title="")
    assert legend(figure) == ["rate 0.1", "rate 0.10000001", "without rate"]
    assert len(figure.axes[0].lines) == 3 * (3 + 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: rows + rows[:1], "there are 2 rows with learner=spg, seed=0, steps=5000"),
        (lambda rows: rows[:-1], "some seeds lack rows"),
        (
            lambda rows: [*rows[:-1], {**rows[-1], "reward": ""}],
            "reward must be a finite number .* but is '' in the row with learner=spg, seed=2, steps=15000",
        ),
        (lambda rows: [*rows, {**rows[-1], "steps": ""}], "steps must be a finite number .* seed=2"),
        (lambda rows: [*rows, {**rows[-1], "seed": ""}], "some seeds lack rows"),
        (lambda rows: [{**row, "steps": row["steps"] - 5_000} for row in rows], "steps must be above 0"),
        (lambda rows: [{"steps": 1_000, "reward": 1.0}], "there is no column 'seed'"),
    ],
)
def test_learning_curves_that_do_not_fit_together_are_refused(tmp_path, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        figures.compare_rewards(tmp_path / "x.png", change(curve_rows(-10.0)), series=["learner"], title="")
    assert list(tmp_path.iterdir()) == []


def test_settings_differ_in_more_than_colour():
    looks = [figures.look(index) for index in range(35)]
    assert len({(look.linestyle, look.marker) for look in looks}) == len(looks)
    assert figures.name(["learner", "exploration"], ["spg", ""]) == "SPG"
