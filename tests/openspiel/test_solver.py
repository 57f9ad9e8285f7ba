"""The solver: OpenSpiel's names, CFR's and MCCFR's bars, and its policies in OpenSpiel's own hands."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score, exploitability

from pohp_neurd import openspiel


def test_expected_updates_find_the_value_of_kuhn_poker():
    game = pyspiel.load_game("kuhn_poker")
    solver = openspiel.NeuRDCIXSolver(game)
    solver.evaluate_and_update_policy(1_500)
    average, current = solver.average_policy(), solver.current_policy()
    assert isinstance(average, openspiel_policy.TabularPolicy)
    assert isinstance(current, openspiel_policy.TabularPolicy)
    value = expected_game_score.policy_value(game.new_initial_state(), [average] * 2)
    np.testing.assert_allclose(value, [-1 / 18, 1 / 18], atol=1e-3)
    assert solver.nash_conv() == pytest.approx(exploitability.nash_conv(game, average), abs=1e-9)
    assert solver.nash_conv("current") == pytest.approx(exploitability.nash_conv(game, current), abs=1e-9)
    assert solver.updates == 1_500
    for which in ("average", "current"):
        theirs = getattr(solver, f"tabular_{which}_policy")()
        assert pyspiel.nash_conv(game, theirs) == pytest.approx(solver.nash_conv(which), abs=1e-9)


@pytest.mark.thorough
def test_updates_one_by_one_are_updates_in_one_call():
    one_by_one, at_once = (openspiel.NeuRDCIXSolver("kuhn_poker", update="sampled") for _ in range(2))
    for _ in range(2):
        one_by_one.evaluate_and_update_policy()
    one_by_one.iteration()
    one_by_one.run_iteration()
    at_once.evaluate_and_update_policy(4)
    np.testing.assert_array_equal(
        one_by_one.current_policy().action_probability_array,
        at_once.current_policy().action_probability_array,
    )


@pytest.mark.parametrize(
    ("game", "bar"),
    [
        ("kuhn_poker", 0.17),
        pytest.param("leduc_poker", 3.07, marks=pytest.mark.slow),
        pytest.param("kuhn_poker(players=3)", 0.22, marks=pytest.mark.slow),
    ],
)
def test_sampled_updates_meet_mccfrs_bars(game, bar):
    """The thresholds of OpenSpiel's outcome-sampling tests after 10,000 iterations, of 16 episodes each."""
    solver = openspiel.NeuRDCIXSolver(game, update="sampled")
    solver.evaluate_and_update_policy(10_000)
    assert solver.nash_conv() < bar


def test_agents_that_forget_are_not_led_away_again():
    """On this board a magnet of 0.03 at rest, with step size 1 and no exploration, is at 0.34 to 0.40."""
    game = "dark_hex(gameversion=adh,num_cols=2,num_rows=3)"
    solver = openspiel.NeuRDCIXSolver(openspiel.compile_game(game, agent_state="observation"))
    reached = []
    for _ in range(2):
        solver.evaluate_and_update_policy(2_000)
        reached.append(solver.nash_conv())
    assert reached[1] < 0.0015 < reached[0] < 0.005


@pytest.mark.parametrize("learner", ["regret_matching", "rm_plus"])
def test_regret_minimizers_are_openspiels_solvers(learner):
    """`test_cfr` has this turn by turn; here it is of the solver's defaults and of its own policies."""
    game = pyspiel.load_game("kuhn_poker")
    peer = {"regret_matching": pyspiel.CFRSolver, "rm_plus": pyspiel.CFRPlusSolver}[learner](game)
    solver = openspiel.NeuRDCIXSolver(game, learner=learner)
    solver.evaluate_and_update_policy(20)
    for _ in range(20):
        peer.evaluate_and_update_policy()
    for which in ("average", "current"):
        theirs = pyspiel.nash_conv(game, getattr(peer, f"{which}_policy")())
        assert solver.nash_conv(which) == pytest.approx(theirs, abs=1e-9)
        ours = getattr(solver, f"tabular_{which}_policy")()
        assert pyspiel.nash_conv(game, ours) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(("learner", "bar"), [("predictive_rm_plus", 1e-5), ("optimistic_hedge", 4e-4)])
def test_predictive_minimizers_are_far_below_cfr_plus(learner, bar):
    """Which has 9e-4 in Kuhn poker after as many iterations."""
    solver = openspiel.NeuRDCIXSolver("kuhn_poker", learner=learner)
    solver.evaluate_and_update_policy(300)
    assert solver.nash_conv() < bar


def test_the_current_policy_of_neurd_comes_to_an_equilibrium():
    solver = openspiel.NeuRDCIXSolver("kuhn_poker")
    solver.evaluate_and_update_policy(1000)
    assert solver.nash_conv("current") < 1e-8
    assert solver.nash_conv() < 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize(("precision", "bound"), [("float64", 1e-4), ("float32", 1e-3)])
def test_the_current_policy_of_neurd_stays_near_the_equilibrium(precision, bound):
    """In Leduc poker: C++ CFR+ has about 5e-4 after 1,000 iterations, which take it ten seconds."""
    solver = openspiel.NeuRDCIXSolver("leduc_poker", precision=precision)
    solver.evaluate_and_update_policy(20_000)
    for _ in range(4):
        solver.evaluate_and_update_policy(1_000)
        assert solver.nash_conv("current") < bound


def test_regret_minimizers_refuse_what_they_do_not_read():
    graph = openspiel.compile_game("kuhn_poker", agent_state="observation")
    with pytest.raises(ValueError, match="takes a tree with perfect recall"):
        openspiel.NeuRDCIXSolver(graph, learner="rm_plus")
    with pytest.raises(ValueError, match="does not read step_size, exploration: leave it out"):
        openspiel.NeuRDCIXSolver("kuhn_poker", learner="rm_plus", exploration=0.1, step_size=1.0)
    with pytest.raises(ValueError, match="precision must be one of float32, float64"):
        openspiel.NeuRDCIXSolver("kuhn_poker", learner="rm_plus", precision="float16")
    with pytest.raises(ValueError, match="precision is for expected updates on a tree"):
        openspiel.NeuRDCIXSolver("kuhn_poker", update="sampled", precision="float32")
    with pytest.raises(ValueError, match="batch_size is for sampled updates"):
        openspiel.NeuRDCIXSolver("kuhn_poker", batch_size=16)
    for given in ({"update": "expected"}, {"update": "sampled", "learner": "spg"}):
        with pytest.raises(ValueError, match="play_exploration is for sampled updates on a tree"):
            openspiel.NeuRDCIXSolver("kuhn_poker", play_exploration=0.1, **given)


def test_bad_input():
    with pytest.raises(ValueError, match="update must be one of"):
        openspiel.NeuRDCIXSolver("kuhn_poker", update="exact")
    with pytest.raises(ValueError, match=r"exploration must lie in \[0, 1\]"):
        openspiel.NeuRDCIXSolver("kuhn_poker", exploration=2.0)
    solver = openspiel.NeuRDCIXSolver("kuhn_poker", step_size=1e38, magnet_strength=0.0, precision="float32")
    with pytest.raises(ValueError, match="num_updates must be at least 1, but is 0"):
        solver.evaluate_and_update_policy(0)
    with pytest.raises(FloatingPointError, match="not finite after update"):
        solver.evaluate_and_update_policy(50)


@pytest.mark.parametrize("name", ["matrix_brps", "goofspiel(num_cards=3,imp_info=True)"])
def test_openspiel_judges_policies_of_simultaneous_games(name):
    """On the game with simultaneous moves and on the one in turns, by Python and by C++."""
    game = pyspiel.load_game(name)
    solver = openspiel.NeuRDCIXSolver(game)
    solver.evaluate_and_update_policy(20)
    expected = pytest.approx(solver.nash_conv(), abs=1e-9)
    assert exploitability.nash_conv(game, solver.average_policy()) == expected
    in_turns = pyspiel.convert_to_turn_based(game)
    assert exploitability.nash_conv(in_turns, solver.average_policy()) == expected
    assert pyspiel.nash_conv(in_turns, solver.tabular_average_policy()) == expected
