"""Rewards on the way, in a compiled game: they add up to what OpenSpiel says at the end."""

import numpy as np
import pyspiel
from pohp_neurd.games import openspiel_games as openspiel_games  # registers the game below

from pohp_neurd import openspiel
from pohp_neurd.finite import tree

TWO_BALLS = "python_pohp_catch(rows=3,columns=2,horizon=4)"


def test_rewards_add_up_to_the_returns_of_every_episode():
    game = openspiel.compile_game(TWO_BALLS)
    ends = np.flatnonzero(game.player == tree.TERMINAL)
    missed = set()
    for end in ends:
        row, actions, total = int(end), [], np.zeros(game.num_agents)
        while row >= 0:
            total += game.rewards[row]
            actions.append(int(game.incoming_action[row]))
            row = int(game.parent[row])
        state = pyspiel.load_game(TWO_BALLS).new_initial_state()
        for action in reversed(actions[:-1]):
            state.apply_action(action)
        np.testing.assert_allclose(total, state.returns())
        missed.add(float(total[0]))
    # Episodes with a reward before the last: only they can tell a sum from a difference.
    assert min(missed) == -2.0
