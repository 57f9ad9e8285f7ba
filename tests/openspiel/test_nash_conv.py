"""NashConv, best responses and expected values against OpenSpiel's own."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability

from pohp_neurd import exact, openspiel

GAMES = (
    "kuhn_poker",
    "kuhn_poker(players=3)",
    "leduc_poker",
    "goofspiel(num_cards=3,imp_info=True)",
    "matrix_rps",
    "matrix_brps",
    "matrix_pd",
    "matching_pennies_3p",
    "tiny_hanabi",
    "python_kuhn_poker",
    "sheriff(num_rounds=1,max_bribe=1)",
    "blotto(coins=4)",
    "lewis_signaling",
    "coordinated_mp",
    "nim(pile_sizes=1;2)",
)
LARGE_GAMES = (
    "goofspiel(num_cards=4,imp_info=True,points_order=descending)",
    "oshi_zumo(coins=4,size=1,min_bid=1)",
    "first_sealed_auction",
    "kuhn_poker(players=4)",
    "oshi_zumo(coins=5,size=2,min_bid=1)",
    "tiny_bridge_2p",
    "liars_dice",
)


def random_policy(tree, rng, *, zeros=False):
    """A random policy; with `zeros`, half of the entries are 0 and many states unreached."""
    weights = rng.exponential(size=tree.legal.shape) * tree.legal
    if zeros:
        kept = weights * (rng.random(weights.shape) < 0.5)
        weights = np.where(kept.sum(axis=1, keepdims=True) > 0, kept, weights)
    return weights / weights.sum(axis=1, keepdims=True)


def policies_of(tree, count):
    rng = np.random.default_rng(0)
    return [exact.uniform(tree), *[random_policy(tree, rng, zeros=i % 2 == 1) for i in range(count)]]


def assert_agrees(name, count):
    game = openspiel.load_game(name)
    tree = openspiel.compile_game(game)
    for table in policies_of(tree, count):
        theirs = openspiel.to_pyspiel_policy(tree, table)
        root = game.new_initial_state()
        assert openspiel.nash_conv(tree, table) == pytest.approx(pyspiel.nash_conv(game, theirs), abs=1e-9)
        expected = pyspiel.expected_returns(root, theirs, -1, True)
        np.testing.assert_allclose(exact.expected_returns(tree, table), expected, rtol=0, atol=1e-9)
        best = exact.best_response_values(tree, table)
        for player in range(game.num_players()):
            answer = pyspiel.TabularBestResponse(game, player, theirs)
            assert best[player] == pytest.approx(answer.value_from_state(root), abs=1e-9)


@pytest.mark.parametrize("name", GAMES)
def test_agrees_with_openspiel(name):
    assert_agrees(name, count=2)  # uniform, random, and random with zeros


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES + LARGE_GAMES)
def test_agrees_with_openspiel_on_more_policies_and_larger_games(name):
    assert_agrees(name, count=5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kuhn_poker", 11 / 12),
        ("leduc_poker", 4.747222222222222),
        ("kuhn_poker(players=3)", 2.0625),
        ("goofspiel(num_cards=4,imp_info=True,points_order=descending)", 1.4166666666666667),
    ],
)
def test_known_values_of_the_uniform_policy(name, value):
    tree = openspiel.compile_game(name)
    assert openspiel.nash_conv(tree, exact.uniform(tree)) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1 / 3])
def test_analytic_equilibria_of_kuhn_poker(alpha):
    """Kuhn (1950): a family of equilibria, with the value -1/18 for the first player."""
    bet = {
        "0": alpha,
        "1": 0.0,
        "2": 3 * alpha,
        "0pb": 0.0,
        "1pb": alpha + 1 / 3,
        "2pb": 1.0,
        "0p": 1 / 3,
        "1p": 0.0,
        "2p": 1.0,
        "0b": 0.0,
        "1b": 1 / 3,
        "2b": 1.0,
    }
    tree = openspiel.compile_game("kuhn_poker")
    table = np.array([[1 - bet[name], bet[name]] for name in tree.information_state_strings])
    assert abs(openspiel.nash_conv(tree, table)) < 1e-12
    np.testing.assert_allclose(exact.expected_returns(tree, table), [-1 / 18, 1 / 18], atol=1e-12)


@pytest.mark.slow
def test_value_of_leduc_poker():
    """An equilibrium found by OpenSpiel's own CFR+ bounds the game's value from both sides."""
    game = pyspiel.load_game("leduc_poker")
    tree = openspiel.compile_game(game)
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(200):
        solver.evaluate_and_update_policy()
    table = openspiel.table_of(tree, solver.average_policy())
    best = exact.best_response_values(tree, table)
    assert best[0] >= -0.0856064 - 1e-6
    assert -best[1] <= -0.0856064 + 1e-6
    assert openspiel.nash_conv(tree, table) < 0.02
    assert exact.expected_returns(tree, table)[0] == pytest.approx(-0.0856064, abs=0.01)


@pytest.mark.thorough
def test_every_kind_of_policy_gives_the_same_answer():
    game = pyspiel.load_game("leduc_poker")
    tree = openspiel.compile_game(game)
    table = random_policy(tree, np.random.default_rng(3))
    expected = openspiel.nash_conv(tree, table)
    tabular = openspiel.to_tabular_policy(tree, table)
    assert openspiel.nash_conv(game, tabular) == pytest.approx(expected, abs=1e-12)
    assert openspiel.nash_conv("leduc_poker", openspiel.TablePolicy(tree, table)) == pytest.approx(
        expected, abs=1e-12
    )
    cpp = openspiel.to_pyspiel_policy(tree, table)
    assert openspiel.nash_conv(tree, cpp) == pytest.approx(expected, abs=1e-12)
    mapping = {
        name: list(enumerate(row)) for name, row in zip(tree.information_state_strings, table, strict=True)
    }
    assert openspiel.nash_conv(tree, mapping) == pytest.approx(expected, abs=1e-12)
    assert exploitability.nash_conv(game, tabular) == pytest.approx(expected, abs=1e-9)


def test_stack_of_policies_in_one_call():
    tree = openspiel.compile_game("kuhn_poker(players=3)")
    tables = np.stack(policies_of(tree, 6))
    together = openspiel.nash_conv(tree, tables)
    alone = [openspiel.nash_conv(tree, table) for table in tables]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)


def test_second_call_does_not_recompile(count_compilations):
    tree = openspiel.compile_game("kuhn_poker")
    openspiel.nash_conv(tree, exact.uniform(tree))
    with count_compilations() as compiled:
        openspiel.nash_conv(tree, random_policy(tree, np.random.default_rng(0)))
    assert compiled.count == 0


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda table: table[:-1], r"shape \(12, 2\) of kuhn_poker\(\), but has \(11, 2\)"),
        (lambda table: table[:, 0], r"shape \(12, 2\)"),
        (
            lambda table: np.where(np.arange(12)[:, None] == 4, np.nan, table),
            r"state 4 \('.*'\) holds a number",
        ),
        (
            lambda table: np.where(np.arange(12)[:, None] == 7, 0.6, table),
            r"state 7 \('.*'\) does not sum to 1",
        ),
        (lambda table: table * [3, -1], r"state 0 .* holds a negative probability"),
    ],
)
def test_bad_tables_are_named(spoil, sentence):
    tree = openspiel.compile_game("kuhn_poker")
    with pytest.raises(ValueError, match=sentence):
        openspiel.nash_conv(tree, spoil(exact.uniform(tree)))


def test_illegal_actions_are_named():
    tree = openspiel.compile_game("leduc_poker")
    row = int(np.flatnonzero(~tree.legal[:, 0])[0])
    table = exact.uniform(tree)
    table[row] = [0.5, 0.25, 0.25]
    with pytest.raises(ValueError, match=f"state {row} .* illegal action"):
        openspiel.nash_conv(tree, table)


def test_a_policy_that_is_nothing_like_one():
    tree = openspiel.compile_game("kuhn_poker")
    with pytest.raises(ValueError, match="array of numbers, but is"):
        openspiel.nash_conv(tree, "uniform")
    with pytest.raises(ValueError, match="says nothing of information state"):
        openspiel.nash_conv(tree, {"0": [(0, 1.0)]})


def test_a_missing_state_of_a_foreign_tabular_policy_is_asked_for():
    """A TabularPolicy of another variant of the game knows other strings."""
    tree = openspiel.compile_game("kuhn_poker(players=3)")
    foreign = openspiel_policy.UniformRandomPolicy(pyspiel.load_game("kuhn_poker(players=3)"))
    assert openspiel.nash_conv(tree, foreign) == pytest.approx(2.0625, abs=1e-12)
