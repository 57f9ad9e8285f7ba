"""The study of bias and variance: its sums against episodes one by one, and the recorded rows and README."""

import pathlib

import bias_variance
import jax
import numpy as np
import pytest

from pohp_neurd import directions, exact, openspiel
from pohp_neurd.results import table

RECORDED = pathlib.Path(bias_variance.__file__).parent


def episodes(state, policy, chance=1.0, made=()):
    """Every episode of a game from `state` on: its probability, returns and decisions."""
    if state.is_terminal():
        yield chance, state.returns(), made
        return
    if state.is_chance_node():
        for action, probability in state.chance_outcomes():
            yield from episodes(state.child(action), policy, chance * probability, made)
        return
    player, name = state.current_player(), state.information_state_string()
    for action in state.legal_actions():
        here = chance * policy[name][action]
        yield from episodes(state.child(action), policy, here, (*made, (player, name, action)))


@pytest.mark.parametrize("baseline", bias_variance.BASELINES)
@pytest.mark.parametrize("exploration", [0.0, 0.1, 1.0])
def test_moments_are_those_of_episodes_one_by_one(baseline, exploration):
    game = openspiel.load_game("kuhn_poker")
    tree = openspiel.compile_game(game)
    rng = np.random.default_rng(0)
    table_ = tree.legal * rng.uniform(0.1, 1.0, tree.legal.shape)
    table_ /= table_.sum(axis=1, keepdims=True)
    rows = {name: row for row, name in enumerate(tree.information_state_strings)}
    policy = {name: table_[row] for name, row in rows.items()}
    played = list(episodes(game.new_initial_state(), policy))
    assert sum(chance for chance, _, _ in played) == pytest.approx(1.0)

    # Kuhn poker pays -2 to 2: returns are scaled to [-1, 0].
    reached, worth = np.zeros(len(rows)), np.zeros(len(rows))
    for chance, returns, made in played:
        for player, name, _ in made:
            reached[rows[name]] += chance
            worth[rows[name]] += chance * (returns[player] - 2) / 4
    value = worth / reached if baseline == "value" else np.zeros(len(rows))
    mean, square = np.zeros((2, *table_.shape))
    for chance, returns, made in played:
        for player, name, action in made:
            row = rows[name]
            decision = directions.Decision(
                None, tree.legal[row], action, table_[row, action], (returns[player] - 2) / 4, value[row]
            )
            with jax.enable_x64(True):
                direction = directions.neurd_cix_direction(table_[row], decision, exploration)
            direction = np.asarray(direction) - np.mean(np.asarray(direction))
            mean[row] += chance * direction
            square[row] += chance * direction**2
    found = bias_variance.bias_and_variance(
        bias_variance.moments(tree, table_), table_, tree.legal, exploration, baseline
    )
    np.testing.assert_allclose(found[0], mean, atol=1e-12)
    assert found[1] == pytest.approx(np.sum(square - mean**2), rel=1e-9)


def test_without_exploration_the_mean_is_the_direction_of_exact_neurd():
    tree = openspiel.compile_game("leduc_poker")
    policy = exact.uniform(tree)
    direction = exact.expected_direction(tree, policy, "neurd")
    centred = np.where(
        tree.legal, direction - direction.sum(axis=1, keepdims=True) / tree.legal.sum(axis=1)[:, None], 0.0
    )
    for baseline in bias_variance.BASELINES:
        found = bias_variance.moments(tree, policy)
        mean, _ = bias_variance.bias_and_variance(found, policy, tree.legal, 0.0, baseline)
        np.testing.assert_allclose(mean * -tree.shifted_returns.min(), centred, atol=1e-12)


def test_the_error_is_that_of_the_best_multiple():
    row = {"bias": 0.3, "along": 0.8, "variance": 5.0}
    scales = np.linspace(0.0, 2.0, 20_001)
    size = row["bias"] + 2 * row["along"] - 1  # ‖E[d]‖², from ‖E[d] − g‖²
    errors = scales**2 * (size + row["variance"] / 10) - 2 * scales * row["along"] + 1
    assert bias_variance.error(row, 10) == pytest.approx(errors.min(), abs=1e-7)


@pytest.mark.thorough
def test_a_small_study_leaves_its_rows_and_its_figure(tmp_path):
    rows = bias_variance.run(tmp_path, "kuhn_poker", 10 * bias_variance.BATCH, seed=0)
    assert len(rows) == 11 * len(bias_variance.BASELINES) * len(bias_variance.EXPLORATIONS)
    assert table.read(tmp_path / "rows.csv") == rows
    assert (tmp_path / "bias_variance.png").stat().st_size > 10_000
    assert list(rows[0]) == list(table.read(RECORDED / "rows.csv")[0])


def test_the_readme_says_what_the_rows_say():
    rows = table.read(RECORDED / "rows.csv")
    text = (RECORDED / "README.md").read_text(encoding="utf-8")
    assert bias_variance.best_explorations(rows) in text
    last = max(row["episodes"] for row in rows)
    found = {r["exploration"]: r for r in table.select(rows, {"episodes": last, "baseline": "value"})}

    def error(exploration):
        return f"{bias_variance.error(found[exploration], 131_072):.2f}"

    noise = {key: row["variance"] / bias_variance.BATCH for key, row in found.items()}
    for claim in (
        f"it is {noise[0.0]:.1e} times the squared direction in a batch of 2,048; at exploration 0.001 it is "
        f"{noise[0.001]:.0f}.",
        f"as large as the direction itself**: {found[1.0]['bias']:.2f}, at the same policy.",
        f"an error of {error(0.0)} at exploration 0, {error(0.001)} at 0.001, {error(0.1)} at 0.1 and "
        f"{error(1.0)} at 1.",
    ):
        assert claim in " ".join(text.split()), claim
