"""Agents and bots draw independently, at all seats and in all roles, of one seed and of two.

2,048 games of rock-paper-scissors: two blocks of an agent's numbers. `independence` has the checks.
"""

import functools

import independence
import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from open_spiel.python import rl_environment

from pohp_neurd import openspiel

GAMES = 2_048


def agent(player, *, seed=0, network="table", **keywords):
    """An agent that acts by its first policy for ever: its first batch is never full."""
    env = rl_environment.Environment("matrix_rps")
    sizes = env.observation_spec()["info_state"][0], env.action_spec()["num_actions"]
    return openspiel.NeuRDCIX(player, *sizes, network=network, batch_size=10 * GAMES, seed=seed, **keywords)


def played(agents, *, is_evaluation=False, count=GAMES):
    """The actions of agents that play each other, or are asked at the same time steps: [agents, games]."""
    env = rl_environment.Environment("matrix_rps")
    actions = np.zeros((len(agents), count), np.int64)
    for game in range(count):
        time_step = env.reset()
        for number, one in enumerate(agents):
            actions[number, game] = one.step(time_step, is_evaluation=is_evaluation).action
        last = env.step([0, 0])
        for one in agents:
            one.step(last, is_evaluation=is_evaluation)
    return actions


def bot_actions(player, *, seed=0, count=GAMES):
    state = pyspiel.load_game("matrix_rps").new_initial_state()
    bot = openspiel.bot(openspiel_policy.UniformRandomPolicy(state.get_game()), player, seed=seed)
    return np.array([bot.step(state) for _ in range(count)])


@functools.lru_cache(maxsize=1)
def draws_at_the_table():
    """Everybody who can draw with one and the same seed."""
    seats = [agent(0), agent(1)]
    acting = played(seats)
    evaluating = played(seats, is_evaluation=True)
    return {
        "agent 0": acting[0],
        "agent 1": acting[1],
        "agent 0 in evaluation": evaluating[0],
        "agent 1 in evaluation": evaluating[1],
        "an agent for all seats": played(agent(None).seats(2)[:1])[0],
        "bot 0": bot_actions(0),
        "bot 1": bot_actions(1),
        "agent 0 of another seed": played([agent(0, seed=1)])[0],
        "bot 0 of another seed": bot_actions(0, seed=1),
    }


def test_agents_and_bots_of_one_seed_at_all_seats_and_in_all_roles():
    independence.check_all(draws_at_the_table())


def test_no_stream_of_an_agent_or_a_bot_comes_again():
    for name, draws in draws_at_the_table().items():
        independence.check_stream(draws, name)


def test_two_default_agents_meet_in_all_nine_ways():
    """What the equal streams of two seats came to: 2,048 games, of which each pair of actions is a ninth."""
    first, second = played([agent(0), agent(1)])
    counts = np.zeros((3, 3))
    np.add.at(counts, (first, second), 1)
    spread = np.sqrt(GAMES * (1 / 9) * (8 / 9))
    assert np.all(np.abs(counts - GAMES / 9) < 5 * spread)


def test_copies_draw_and_stray_on_their_own():
    """Copies for PSRO, of two seats' agents of one seed: 1,024 actions, and noise on some 400 weights."""
    small = {"network": "mlp", "hidden_layers_sizes": [64]}
    one, other = agent(0, **small), agent(1, **small)
    copies = {
        "copy": one.copy_with_noise(0.1),
        "second copy": one.copy_with_noise(0.1),
        "copy of the other seat": other.copy_with_noise(0.1),
    }
    copies["copy of a copy"] = copies["copy"].copy_with_noise(0.1)
    actions = played([one, other, *copies.values()], count=GAMES // 2)
    independence.check_all(dict(zip(["agent", "other seat", *copies], actions, strict=True)))

    def weights(of):
        return np.concatenate([leaf.ravel() for leaf in of.get_weights()]).astype(np.float64)

    strayed = {
        name: weights(copy) - weights(copies["copy"] if name == "copy of a copy" else one)
        for name, copy in copies.items()
    }
    # Biases begin at 0 and would make ties: the noise has none.
    independence.check_all(strayed)


def test_a_restored_agent_goes_on_and_does_not_begin_again(tmp_path):
    before = agent(0)
    first = played([before], count=512)[0]
    before.save(tmp_path)
    after = agent(0)
    after.restore(tmp_path)
    independence.check(first, played([after], count=512)[0], "before and after a checkpoint")
