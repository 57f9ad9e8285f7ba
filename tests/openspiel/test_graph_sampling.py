"""Episodes on a graph have the distribution of OpenSpiel's; worlds that merge too much are found out."""

import array
import bisect
import collections
import itertools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest
from scipy import stats

from pohp_neurd import openspiel
from pohp_neurd.finite import rollout
from pohp_neurd.openspiel import compile as compiling


def random_table(world, seed):
    weights = np.where(world.legal, np.random.default_rng(seed).exponential(size=world.legal.shape), 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def here(world, table, num_episodes, long):
    """How often each return of the first player, and each agent state at the first decisions, was met."""
    board = rollout.board(world)
    counts = [collections.Counter() for _ in range(long + 1)]
    play = jax.jit(rollout.play, static_argnames="num_episodes")
    batch = min(num_episodes, 50_000)
    for number in range(num_episodes // batch):
        key = jax.random.fold_in(jax.random.key(0), number)
        episodes = play(board, jnp.asarray(table, jnp.float32), num_episodes=batch, key=key)
        returns = np.asarray(board.returns)[np.asarray(episodes.end)][:, 0] + world.best_return_to_go[0, 0]
        states = np.asarray(board.state)[np.asarray(episodes.row)[:long]]
        for count, what in zip(counts, [np.round(returns, 4), *states], strict=True):
            count.update(what.tolist())
    return counts


def there(world, name, table, num_episodes, long):
    """The same of pyspiel's states, drawn with another generator; rows are found by their tensors."""
    known = zip(world.state_player.tolist(), world.features, world.legal, strict=True)
    row_of = {
        (player, seen.tobytes(), tuple(np.flatnonzero(legal).tolist())): row
        for row, (player, seen, legal) in enumerate(known)
    }
    bounds = [
        list(itertools.accumulate(row[legal].tolist())) for row, legal in zip(table, world.legal, strict=True)
    ]
    draw, game, over = random.Random(5).random, pyspiel.load_game(name), int(pyspiel.PlayerId.TERMINAL)
    counts = [collections.Counter() for _ in range(long + 1)]
    for _ in range(num_episodes):
        state, decisions = game.new_initial_state(), 0
        while (player := state.current_player()) != over:
            if player < 0:
                actions, chances = zip(*state.chance_outcomes(), strict=True)
                reached = list(itertools.accumulate(chances))
            else:
                actions = state.legal_actions()
                seen = array.array("f", state.observation_tensor(player)).tobytes()
                row = row_of[player, seen, tuple(actions)]
                reached = bounds[row]
                if decisions < long:
                    counts[1 + decisions][row] += 1
                decisions += 1
            state.apply_action(actions[bisect.bisect_right(reached, draw() * reached[-1])])
        for number in range(decisions, long):
            counts[1 + number][world.num_agent_states] += 1
        counts[0][round(state.returns()[0], 4)] += 1
    return counts


@pytest.mark.parametrize(
    ("name", "told", "ours", "theirs", "long"),
    [
        ("kuhn_poker", "string", 50_000, 3_000, 3),
        pytest.param("phantom_ttt", "string", 1_000_000, 1_000_000, 6, marks=pytest.mark.slow),
        pytest.param(
            "liars_dice(numdice=2,dice_sides=5)",
            "observations",
            1_000_000,
            1_000_000,
            4,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_episodes_have_the_distribution_of_openspiel(name, told, ours, theirs, long):
    """Chi-square of two samples: of returns, and of the agent states at the first decisions."""
    world = openspiel.compile_game(name, agent_state="observation", world=told)
    table = random_table(world, 2)
    samples = here(world, table, ours, long), there(world, name, table, theirs, long)
    for what, (mine, yours) in enumerate(zip(*samples, strict=True)):
        # What pyspiel should meet fewer than ten times is one kind; the larger sample tells what that is.
        often = sorted(kind for kind, count in mine.items() if count * theirs >= 10 * ours)
        counts = np.array([[sample[kind] for kind in often] for sample in (mine, yours)])
        rest = np.array([[ours], [theirs]]) - counts.sum(axis=1, keepdims=True)
        table_of_both = np.concatenate([counts, rest], axis=1)
        table_of_both = table_of_both[:, table_of_both.sum(axis=0) > 0]
        # The first decision of a player may always be at the same agent state.
        assert 0 < what < long or table_of_both.shape[1] > 1
        assert stats.chi2_contingency(table_of_both).pvalue > 1e-6, what


def game_type(short_name):
    return pyspiel.GameType(
        short_name=short_name,
        long_name=short_name,
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
        information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
        utility=pyspiel.GameType.Utility.GENERAL_SUM,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=1,
        min_num_players=1,
        provides_information_state_string=True,
        provides_information_state_tensor=False,
        provides_observation_string=False,
        provides_observation_tensor=True,
        parameter_specification={},
    )


class LateGame(pyspiel.Game):
    """Five moves of one player, who sees how many were made. The first decides what the fifth may be."""

    def __init__(self, params=None):
        info = pyspiel.GameInfo(2, 0, 1, 0.0, 1.0, None, 5)
        pyspiel.Game.__init__(self, game_type("python_late"), info, params or {})

    def new_initial_state(self):
        return LateState(self)

    def make_py_observer(self, iig_obs_type=None, params=None):
        return LateObserver()


class LateState(pyspiel.State):
    """The moves so far."""

    def __init__(self, game):
        pyspiel.State.__init__(self, game)
        self.moves = []

    def current_player(self):
        return pyspiel.PlayerId.TERMINAL if len(self.moves) == 5 else 0

    def _legal_actions(self, player):
        return [0] if len(self.moves) == 4 and self.moves[0] else [0, 1]

    def _apply_action(self, action):
        self.moves.append(action)

    def is_terminal(self):
        return len(self.moves) == 5

    def returns(self):
        return [float(self.is_terminal())]

    def __str__(self):
        return str(self.moves)


class LateObserver:
    """The number of moves, one-hot."""

    def __init__(self):
        self.tensor = np.zeros(6, np.float32)
        self.dict = {"moves": self.tensor}

    def set_from(self, state, player):
        self.tensor[:] = np.eye(6)[len(state.moves)]

    def string_from(self, state, player):
        return str(state.moves)


def test_histories_that_differ_only_later_are_found_out():
    """After one move all is alike for three more; only playing on, side by side, tells the two apart."""
    with pytest.raises(
        ValueError, match=r"histories \[0.*\] and \[1.*\] were taken for one node, but differ in"
    ):
        openspiel.compile_game(LateGame(), agent_state="observation", world="observations")


def test_a_world_that_tells_them_apart_is_right():
    """With the moves as the world every history is a node; the agent's own view must tell its actions."""
    world = openspiel.compile_game(LateGame(), agent_state="observation")
    assert world.num_nodes == 1 + 2 + 4 + 8 + 16
    assert world.num_agent_states == 4 + 2
    assert compiling.origin_of(world).world == "string"
