"""Minimisers at every information state: OpenSpiel's CFR and CFR+ step by step, and a walk of the game."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest

from pohp_neurd import cfr, exact, minimizers, openspiel, self_play

# With the points in random order regrets that should be 0 come out as ±1e-17, and their sign picks an action:
# there no two orders of summation agree.
GOOFSPIEL = "goofspiel(num_cards=4,imp_info=True,points_order=descending)"
GAMES = [
    "kuhn_poker",
    "kuhn_poker(players=3)",
    "leduc_poker",
    pytest.param(GOOFSPIEL, marks=pytest.mark.thorough),
]


class Run:
    """A loop with its arena and state."""

    def __init__(self, tree, minimizer, *, dtype=jnp.float64, power=1.0, **options):
        with jax.enable_x64(True):
            self.arena = cfr.arena_of(tree, dtype)
            self.loop = cfr.loop(cfr.regrets(minimizer), average=self_play.Weights(power), **options)
            self.state = self.loop.init(self.arena)

    def advance(self, count):
        with jax.enable_x64(True):
            self.state = self.loop.advance(self.arena, self.state, np.int32(count), jax.random.key(0))

    def tables(self):
        with jax.enable_x64(True):
            return [
                np.asarray(find(self.arena, self.state)) for find in (self.loop.policies, self.loop.average)
            ]


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("plus", [False, True])
def test_cfr_is_openspiels_iteration_by_iteration(name, plus):
    game = openspiel.load_game(name)
    tree = openspiel.compile_game(game)
    if game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        game = pyspiel.convert_to_turn_based(game)
    peer = (pyspiel.CFRPlusSolver if plus else pyspiel.CFRSolver)(game)
    minimizer = minimizers.regret_matching_plus() if plus else minimizers.regret_matching()
    run = Run(tree, minimizer, power=float(plus))
    for _ in range(50):
        run.advance(1)
        peer.evaluate_and_update_policy()
        theirs = [
            openspiel.table_of(tree, policy) for policy in (peer.current_policy(), peer.average_policy())
        ]
        np.testing.assert_allclose(run.tables(), theirs, rtol=0, atol=1e-9)


class Walk:
    """The same by a walk over all histories, with numbers of each information state in dictionaries."""

    def __init__(self, game, policy, observe, power, alternating):
        self.root, self.players = game.new_initial_state(), range(game.num_players())
        self.policy, self.observe, self.power, self.alternating = policy, observe, power, alternating
        self.sums, self.last, self.average, self.iteration = {}, {}, {}, 0

    def at(self, state):
        name = state.information_state_string()
        zeros = np.zeros(len(state.legal_actions()))
        return self.policy(self.sums.get(name, zeros), self.last.get(name, zeros))

    def value(self, state, player, own, others, regrets, reach):
        """The player's value of `state`; what is found of its information states goes into the last two."""
        if state.is_terminal():
            return state.returns()[player]
        if state.is_chance_node():
            return sum(
                p * self.value(state.child(action), player, own, others * p, regrets, reach)
                for action, p in state.chance_outcomes()
            )
        mine, probabilities = state.current_player() == player, self.at(state)
        values = np.array(
            [
                self.value(
                    state.child(action),
                    player,
                    own * p if mine else own,
                    others if mine else others * p,
                    regrets,
                    reach,
                )
                for action, p in zip(state.legal_actions(), probabilities, strict=True)
            ]
        )
        if mine:
            name = state.information_state_string()
            regrets[name] = regrets[name] + others * (values - probabilities @ values)
            reach[name] = own * probabilities
        return probabilities @ values

    def iterate(self):
        self.iteration += 1
        waiting = []
        for player in self.players:
            regrets, reach = collections.defaultdict(float), {}
            self.value(self.root, player, 1.0, 1.0, regrets, reach)
            for name, plan in reach.items():
                self.average[name] = self.average.get(name, 0.0) + self.iteration**self.power * plan
            waiting.append(regrets)
            if self.alternating or player == self.players[-1]:
                for name, found in (item for each in waiting for item in each.items()):
                    self.sums[name] = self.observe(self.sums.get(name, np.zeros(len(found))), found)
                    self.last[name] = found
                waiting = []


def matched(regrets):
    positive = np.maximum(regrets, 0)
    return positive / positive.sum() if positive.sum() > 0 else np.full(len(regrets), 1 / len(regrets))


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def plus(sums, found):
    return np.maximum(sums + found, 0)


SLOW = {
    "regret_matching": (minimizers.regret_matching, lambda sums, last: matched(sums), np.add),
    "regret_matching_plus": (minimizers.regret_matching_plus, lambda sums, last: matched(sums), plus),
    "predictive_regret_matching_plus": (
        minimizers.predictive_regret_matching_plus,
        lambda sums, last: matched(sums + last),
        plus,
    ),
    "optimistic_hedge": (
        lambda: minimizers.optimistic_hedge(0.7),
        lambda sums, last: softmax(0.7 * (sums + last)),
        np.add,
    ),
}


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("alternating", [True, False])
def test_every_minimizer_is_a_walk_over_all_histories(name, alternating):
    make, policy, observe = SLOW[name]
    # States with one to five actions: more widths than rectangles, so that some have padding.
    game = pyspiel.load_game("liars_dice(numdice=1,dice_sides=2)")
    tree = openspiel.compile_game(game)
    walk = Walk(game, policy, observe, 2, alternating)
    run = Run(tree, make(), power=2.0, alternating=alternating)
    for _ in range(12):
        walk.iterate()
        run.advance(1)
    current, average = run.tables()
    for row, state in enumerate(tree.information_state_strings):
        legal = tree.legal[row]
        expected = policy(walk.sums[state], walk.last[state])
        np.testing.assert_allclose(current[row][legal], expected, rtol=0, atol=1e-12)
        if walk.average[state].sum() > 0:
            expected = walk.average[state] / walk.average[state].sum()
            np.testing.assert_allclose(average[row][legal], expected, rtol=0, atol=1e-12)


def test_single_precision_follows_double():
    tree = openspiel.compile_game("kuhn_poker")
    runs = [Run(tree, minimizers.regret_matching_plus(), dtype=dtype) for dtype in (jnp.float32, jnp.float64)]
    for run in runs:
        run.advance(200)
    single, double = (exact.nash_conv(tree, run.tables()[1]) for run in runs)
    assert runs[0].state.learner.plans[0].dtype == jnp.float32
    assert single == pytest.approx(double, rel=0.05)


def test_calls_make_no_difference(count_compilations):
    tree = openspiel.compile_game("kuhn_poker")
    runs = [Run(tree, minimizers.predictive_regret_matching_plus()) for _ in range(2)]
    runs[0].advance(7)
    runs[1].advance(3)
    with count_compilations() as compiled:
        runs[1].advance(4)
    assert compiled.count == 0
    np.testing.assert_array_equal(runs[0].tables(), runs[1].tables())


def test_imperfect_recall_is_refused():
    with pytest.warns(UserWarning, match="observation strings stand in"):
        tree = openspiel.compile_game("deep_sea(size=3)")
    with pytest.raises(ValueError, match="has no perfect recall, which expected updates"):
        Run(tree, minimizers.regret_matching())
