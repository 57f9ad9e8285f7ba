"""Live play draws independently: network, deals and actions; seats, turns, games, updates and seeds.

A recording learner keeps the batches that it is given, a recording policy the deals that it sees.
"""

import functools
from unittest import mock

import independence
import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from pohp_neurd import learners, policy
from pohp_neurd.openspiel import players
from pohp_neurd.openspiel.live import match, train
from pohp_neurd.openspiel.live import play as live_play


def uniform_model(num_actions):
    """Uniform play, whatever is learnt; its parameters are the key that they come from, byte by byte."""

    def init(*, key):
        data = jax.random.key_data(key)
        shifts = jnp.arange(0, 32, 8, dtype=jnp.uint32)
        return ((data[:, None] >> shifts[None]) & jnp.uint32(255)).astype(jnp.float32)

    def apply(parameters, agent_state):
        return policy.Output(jnp.zeros(num_actions), jnp.zeros(()))

    return policy.Model(init, apply)


def live_batches(game, *, seed=0, updates=2, **keywords):
    """The decisions of every update of `train.advance`, whose learner writes them down and learns nothing."""
    world = live_play.live_game(game)
    model, seen = uniform_model(world.num_actions), []

    def learnt(trainer, known, mind, played, chosen, *, told):
        assert chosen is None
        batch = learners.Decision(played.agent_state, played.legal, played.action, played.probability, None)
        seen.append(batch)
        info = learners.Info(*[0.0] * len(learners.Info._fields))
        return train.Evidence(known.parameters, info, len(played.row), 1)

    def step(state, gradient):
        return state._replace(updates=state.updates + 1)

    learner = train.default_learner(model)
    keywords = {"batch_episodes": 1_024, "block": 1_024, **keywords}
    trainer = train.Trainer(world, model, learner, seed=seed, **keywords)
    object.__setattr__(trainer, "learner", learner._replace(step=step))  # not compiled
    state = train.init(trainer)
    with mock.patch.object(train, "learnt", learnt):
        train.advance(trainer, state, updates)
    return seen, state


def test_live_play_of_two_updates_and_two_seeds():
    """1,024 games of rock-paper-scissors an update: a decision of each seat, in the order of games."""
    found = {}
    for seed in (0, 1):
        for number, batch in enumerate(live_batches("matrix_rps", seed=seed)[0]):
            for seat in range(2):
                found[f"seat {seat} in update {number} of seed {seed}"] = batch.action[seat::2]
    independence.check_all(found)
    for name, actions in found.items():
        independence.check_stream(actions, f"{name} over games")


@pytest.mark.thorough
def test_live_chance_and_actions():
    """1,024 deals of Kuhn poker: the first player's card, and what it does with it first."""
    seen, state = live_batches("kuhn_poker")
    cards, actions = [], []
    for batch in seen:
        # The tensor: seat (2), own card (3), then bets; none yet at a first decision of the first seat.
        first = (batch.agent_state[:, 0] == 1) & (batch.agent_state[:, 5:-2].sum(axis=1) == 0)
        cards.append(np.argmax(batch.agent_state[first][:, 2:5], axis=1))
        actions.append(batch.action[first])
    independence.check_all({"deals of update 0": cards[0], "deals of update 1": cards[1]})
    independence.check_all({"actions of update 0": actions[0], "actions of update 1": actions[1]})
    independence.check(cards[0], actions[0], "deals and actions")
    network = np.asarray(state.learner.parameters).astype(np.uint32)
    shifts = np.arange(0, 32, 8, dtype=np.uint32)
    of_network = np.sum(network << shifts, axis=1, dtype=np.uint32)
    of_updates = jax.vmap(lambda number: jax.random.fold_in(state.key, number))(jnp.arange(64))
    independence.check_keys({"network": of_network, "play": state.key, "updates": of_updates})


class Watcher(openspiel_policy.UniformRandomPolicy):
    """Uniform play that writes down the deal of every game, as it is first seen from each seat."""

    def __init__(self, game):
        openspiel_policy.UniformRandomPolicy.__init__(self, game)
        self.deals = ([], [])

    def action_probabilities(self, state, player_id=None):
        history, player = state.history(), state.current_player()
        if len(history) == 2 + player:
            self.deals[player].append(3 * history[0] + history[1])
        return openspiel_policy.UniformRandomPolicy.action_probabilities(self, state, player_id)


def in_live_training(seed, count):
    watcher = Watcher(pyspiel.load_game("kuhn_poker"))
    world = live_play.live_game("kuhn_poker")
    trainer, state = train.responder(world, watcher, 0, seed=seed, batch_episodes=count, hidden_layers=(4,))
    train.advance(trainer, state, 1)
    return np.array(watcher.deals[1])


def in_a_match(seed, count):
    watcher = Watcher(pyspiel.load_game("kuhn_poker"))
    match.play("kuhn_poker", [watcher, watcher], count, seed, block=64)
    return np.array(watcher.deals[1])


@pytest.mark.thorough
def test_training_evaluation_and_responders_are_dealt_other_cards():
    """512 deals each: of training, of a match, and of all that a bound on NashConv is made of."""
    count = 512
    found = {}
    for seed in (0, 1):
        found |= {
            f"training, seed {seed}": in_live_training(seed, count),
            f"match, seed {seed}": in_a_match(seed, count),
        }
    independence.check_all(found)
    watcher = Watcher(pyspiel.load_game("kuhn_poker"))
    responder = functools.partial(train.responder, batch_episodes=count, hidden_layers=(4,))
    match.best_response_bound("kuhn_poker", watcher, num_updates=2, num_episodes=count, responder=responder)
    judged = {}
    for seat, deals in enumerate(watcher.deals):
        # The frozen policy sits alone at both seats first, then opposite the responder of the other seat.
        parts = dict(
            zip(
                ("alone", "first update", "second update", "judged"),
                np.split(np.array(deals), 4),
                strict=True,
            )
        )
        independence.check_all(parts)
        judged[f"responder of seat {1 - seat}"] = parts["judged"]
    independence.check_all(judged)


@pytest.mark.thorough
def test_steps_and_slots_of_a_player():
    """Many decisions of a game, of networks, uniform movers and OpenSpiel's policies: 512 games, 3 seats."""
    game = pyspiel.load_game("goofspiel(num_cards=4,players=3,points_order=descending,returns_type=win_loss)")
    world = live_play.live_game(game)
    seating = np.tile(np.arange(3, dtype=np.int32), (512, 1))
    model = uniform_model(world.num_actions)
    network = live_play.Network(model, model.init(key=jax.random.key(0)))
    at_table = [network, None, openspiel_policy.UniformRandomPolicy(world.game)]
    play = live_play.play(world, at_table, 512, block=128, key=jax.random.key(0), seating=seating)
    found = {}
    for seat in range(3):
        mine = play.action[play.seat == seat].reshape(512, -1)
        legal = play.legal[play.seat == seat].reshape(512, mine.shape[1], -1)
        for turn in range(2):
            # Places among the cards in hand: uniform, whatever was played before.
            before = np.cumsum(legal[:, turn], axis=1) - 1
            found[f"seat {seat} at turn {turn}"] = before[np.arange(512), mine[:, turn]]
    independence.check_all(found)


def test_games_in_the_terminal():
    """800 games of Kuhn poker with seeds 0 to 799: the deal, and the policy's own move after a pass."""
    deals, moves = [], []
    game = pyspiel.load_game("kuhn_poker")
    for seed in range(800):
        watcher, told = Watcher(game), []
        players.play_in_terminal("kuhn_poker", watcher, 0, seed=seed, ask=lambda _: "0", tell=told.append)
        deals.append(watcher.deals[1][0])
        moves.append("Player 1: Pass" in told)
    moves = np.array(moves).astype(int)
    independence.check(np.array(deals), moves, "deals and moves")
    independence.check_stream(np.array(deals), "deals of seeds in a row")
    independence.check_stream(moves, "moves of seeds in a row")
