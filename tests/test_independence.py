"""Every two random sources draw independently: seats, roles, steps, updates, episodes, runs and seeds.

Draws are read off real runs through public functions, under policies that stay what they are, so that equal
or correlated draws can only come from equal or correlated randomness. Sample sizes stand beside each test;
bounds are 5 standard deviations (`independence.SIGMAS`).
"""

import functools

import independence
import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python import rl_environment
from pohp_neurd.games import catch, matrix_game

from pohp_neurd import bandit as bandits
from pohp_neurd import learners, openspiel, policy, process, self_play, tally_learners
from pohp_neurd.bandit import problems, simulation
from pohp_neurd.finite import rollout
from pohp_neurd.online import agent as online
from pohp_neurd.online import host, lifetimes
from pohp_neurd.openspiel import terminal
from pohp_neurd.openspiel.live import game as games
from pohp_neurd.openspiel.live import match, train
from pohp_neurd.openspiel.live import play as live_play

# The checks themselves.


def uniform_draws(seed, count=2_000):
    return np.random.default_rng(seed).random(count)


def test_independent_draws_pass():
    """60 pairs of sources; a bound of 5 sigma in some 400 statistics fails once in 4,000 such tests."""
    for seed in range(30):
        independence.check(uniform_draws(2 * seed), uniform_draws(2 * seed + 1), "reals")
        rng = np.random.default_rng(seed)
        independence.check(rng.integers(3, size=1_000), rng.integers(5, size=1_000), "whole numbers")


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        (lambda u: u, "the same"),
        (
            lambda u: np.concatenate([uniform_draws(9, 1_500), u[:500]]),
            "the same 3 draws begin at 0 and at 1500",
        ),
        (lambda u: np.roll(u, 700), "the same"),
        (lambda u: 1 - u, "correlation -1.000 at lag 0"),
        (lambda u: np.roll(1 - u, 1), "correlation -1.000 at lag 1"),
        (lambda u: np.abs(u - 0.5), "the joint table"),
        (lambda u: (3 * u).astype(int), "correlation"),
        (lambda u: np.where(u < 0.3, u, uniform_draws(9)) + 1e-9, "correlation"),
    ],
)
def test_dependent_draws_do_not(made, complaint):
    draws = uniform_draws(0)
    with pytest.raises(AssertionError, match=complaint):
        independence.check(draws, made(draws), "these")


def test_a_stream_that_comes_again_does_not_pass():
    draws = uniform_draws(0, 1_024)
    independence.check_stream(draws, "once")
    for again in (np.tile(draws, 2), np.repeat(draws, 2)):
        with pytest.raises(AssertionError):
            independence.check_stream(again, "twice")


def test_too_few_draws_are_no_check():
    with pytest.raises(AssertionError, match="too few"):
        independence.check(np.arange(20) % 2, np.arange(20) % 3, "these")
    with pytest.raises(AssertionError, match="always draws the same"):
        independence.check(np.zeros(99), np.zeros(99), "these")


def test_equal_keys_are_found():
    keys = jax.random.split(jax.random.key(0), 3)
    independence.check_keys({"some": keys, "another": jax.random.key(1)})
    with pytest.raises(AssertionError, match=r"some\[1\] and again\[0\] are one key"):
        independence.check_keys({"some": keys, "again": keys[1]})


# Agents and bots: 2,048 games of rock-paper-scissors, two blocks of an agent's numbers.

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


# Lives: keys of everything that is drawn, told by a world and an agent that write down what they are given.


class KeyWorld:
    """A world whose history is the key that it was drawn from; its lives end at once, or never."""

    def __init__(self, ends):
        self._going = 0.0 if ends else 1.0
        self.spec = process.Spec(1, 2, 2, reward_bound=1.0, horizon=1, return_bound=1.0)

    def initial(self, *, key):
        return jax.random.key_data(key)

    def apply(self, history, action, *, key):
        return jax.random.key_data(key)

    def active_agent(self, history):
        return jnp.zeros((), jnp.int32)

    def observation(self, history):
        return jnp.zeros(2)

    def legal_actions(self, history):
        return jnp.ones(2, bool)

    def reward(self, history):
        return jnp.zeros(1)

    def continuation(self, history):
        return jnp.asarray(self._going)


def key_agent(num_steps):
    """An agent that remembers the key of its network, and at every step its own key and the world's."""

    def init(moment, *, key):
        body = {"network": jax.random.key_data(key), "log": jnp.zeros((num_steps, 2, 2), jnp.uint32)}
        return online.State(body, None, jnp.zeros((), jnp.int32))

    def act(state, moment, *, key):
        row = jnp.stack([jax.random.key_data(key), moment.agent_state])
        body = {**state.body, "log": state.body["log"].at[state.time].set(row)}
        return online.State(body, None, state.time + 1), jnp.zeros((), jnp.int32)

    def learn(state):
        return state, online.Info(jnp.zeros(()), jnp.zeros(()))

    return online.Agent(init, act, learn, lambda state: state.body)


def keys_of_a_life(seed, *, ends, steps=24):
    world, alive = KeyWorld(ends), key_agent(steps)
    key = jax.random.key(seed)
    life = lifetimes.begin(world, alive, lambda history: history, key=key)
    # In two calls: the second must not begin with the keys of the first.
    for count in (steps // 2, steps - steps // 2):
        life, _ = lifetimes.live(world, alive, lambda history: history, life, count, key=key)
    log = np.asarray(life.agent.body["log"])
    name = "new beginnings" if ends else "replies"
    return {
        "network": life.agent.body["network"],
        "first history": log[0, 1],
        "actions": log[:, 0],
        name: log[1:, 1],
    }


def test_a_life_draws_everything_from_a_key_of_its_own():
    """Network, first history, and 24 steps' actions, replies and new beginnings; of two seeds in a row."""
    found = {}
    for seed in (0, 1):
        for ends in (False, True):
            found |= {
                f"{name} of seed {seed}": keys for name, keys in keys_of_a_life(seed, ends=ends).items()
            }
    independence.check_keys(found)


STEPS = 1_025


@functools.lru_cache(maxsize=1)
def lives_in_catch():
    """Columns and actions [2, 1025] of two seeds' steps, as the paper's agent keeps them in its window."""
    world = catch.Catch(rows=2, columns=3)  # every step a ball lands and another is dropped
    options = online.Options(window=STEPS - 1)
    runs = lifetimes.Runs(np.arange(2), np.zeros(2, np.float32), np.ones(2, np.float32))
    lives = lifetimes.begin_all(world, options, runs, torso=(4, 4))
    lives, _ = lifetimes.live_all(world, options, runs, lives, STEPS, torso=(4, 4))
    window = lives.agent.window
    return np.asarray(window.agent_state)[:, :, 0], np.asarray(window.action)


def test_a_life_in_catch():
    columns, actions = lives_in_catch()
    independence.check_all({"columns of seed 0": columns[0], "columns of seed 1": columns[1]})
    independence.check_all({"actions of seed 0": actions[0], "actions of seed 1": actions[1]})
    for seed in range(2):
        independence.check_stream(columns[seed], f"columns of seed {seed}")
        # The reply to an action is the column after it.
        independence.check(actions[seed][:-1], columns[seed][1:], f"actions and replies of seed {seed}")


class Idle:
    """A host's environment with nothing to see and nothing to win."""

    num_actions, observation_size = 4, 1

    def reset(self):
        return host.Arrival(np.ones(1, np.float32), 0.0, 1.0)

    def step(self, action):
        return host.Arrival(np.ones(1, np.float32), 0.0, 1.0)


def test_training_on_the_host():
    """1,024 actions of two seeds, under a policy that a learning rate of 0 leaves alone."""
    actions = {}
    for seed in (0, 1):
        made = host.train(Idle(), online.Options(window=2), 1_024, learning_rate=0.0, seed=seed, torso=(4, 4))
        actions[f"seed {seed}"] = made.actions
        independence.check_stream(made.actions, f"actions of seed {seed}")
    independence.check_all(actions)


# Compiled play: episodes in lock step, and the loop around them.


def places(tree, rows):
    """What was chosen on the way to `rows`, as places among the possible: [depth, episodes]."""
    found = []
    while np.any(tree.parent[rows] >= 0):
        parent = tree.parent[rows]
        assert np.all(parent >= 0), "these episodes are of different lengths"
        found.append(rows - tree.first_child[parent])
        rows = parent
    return np.array(found[::-1])


@functools.lru_cache(maxsize=1)
def goofspiel():
    tree = openspiel.compile_game("goofspiel(num_cards=3,points_order=random,returns_type=win_loss)")
    board = rollout.board(tree)
    uniform = jnp.asarray(tree.legal / tree.legal.sum(axis=1, keepdims=True), jnp.float32)

    def play(number):
        key = jax.random.fold_in(jax.random.key(0), number)
        return places(tree, np.asarray(rollout.play(board, uniform, 4_096, key=key).end))

    return play


def varying(rows, count=3):
    """The choices that are choices: the first few at which there is more than one possibility."""
    return [row for row in rows if row.min() != row.max()][:count]


def test_chance_and_actions_of_an_episode():
    """4,096 episodes of Goofspiel: the prize, both bids and the next prize are four independent draws."""
    found = varying(goofspiel()(0), 4)
    independence.check_all(
        dict(zip(("first prize", "first bid", "second bid", "next prize"), found, strict=True))
    )


def test_episodes_of_a_batch_and_of_two_batches():
    this, following = goofspiel()(0), goofspiel()(1)
    for name, now, later in zip(
        ("prize", "bid", "other bid"), varying(this), varying(following), strict=True
    ):
        independence.check_stream(now, f"{name} over the episodes of a batch")
        independence.check(now, later, f"{name} in two batches")


def recorded_loop(seed, updates=1_024):
    """What both agents did at every update of a self-play loop of one episode each: [2, updates]."""
    tree = matrix_game.zero_sum(matrix_game.ROCK_PAPER_SCISSORS)

    def init(seats, *, key):
        return jnp.zeros((updates, 2, 3))

    def outputs(seats, log):
        return policy.Output(jnp.zeros((2, 3)), jnp.zeros(2))

    def update(seats, log, tally, number):
        nothing = learners.Info(*(jnp.zeros(()) for _ in learners.Info._fields))
        return log.at[number].set(tally.visits), nothing

    recorder = tally_learners.TallyLearner(init, outputs, update)
    loop, arena = self_play.loop(recorder, num_episodes=1), self_play.arena_of(tree)
    key = jax.random.key(seed)
    state = loop.init(arena, key=key)
    for _ in range(2):
        state = loop.advance(arena, state, np.int32(updates // 2), key)
    return np.argmax(np.asarray(state.learner), axis=-1).T


def test_updates_of_self_play():
    """1,024 updates from one game each, of two seeds."""
    found = {}
    for seed in (0, 1):
        actions = recorded_loop(seed)
        found |= {f"agent {seat} of seed {seed}": actions[seat] for seat in range(2)}
    independence.check_all(found)
    for name, actions in found.items():
        independence.check_stream(actions, f"{name} over updates")


# Live play: the batches that a recording learner is given, and the deals that a recording policy sees.


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
    world = games.live_game(game)
    model, seen = uniform_model(world.num_actions), []

    def update(state, decisions):
        counted = np.asarray(decisions.weight) > 0
        seen.append(jax.tree.map(lambda leaf: np.asarray(leaf)[counted], decisions))
        zero = jnp.zeros(())
        return state._replace(updates=state.updates + 1), learners.Info(*[zero] * len(learners.Info._fields))

    learner = train.default_learner(model)
    keywords = {"batch_episodes": 1_024, "slots": 64, **keywords}
    trainer = train.trainer(world, model, learner, seed=seed, **keywords)
    trainer = trainer._replace(learner=learner._replace(update=update))  # not compiled
    state = train.init(trainer)
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
    world = games.live_game("kuhn_poker")
    trainer, state = train.responder(world, watcher, 0, seed=seed, batch_episodes=count, hidden_layers=(4,))
    train.advance(trainer, state, 1)
    return np.array(watcher.deals[1])


def in_a_match(seed, count):
    watcher = Watcher(pyspiel.load_game("kuhn_poker"))
    match.play("kuhn_poker", [watcher, watcher], count, seed, slots=64)
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
    world = games.live_game(game)
    seating = np.tile(np.arange(3, dtype=np.int32), (512, 1))
    model = uniform_model(world.num_actions)
    network = live_play.Network(model, model.init(key=jax.random.key(0)))
    at_table = [network, None, openspiel_policy.UniformRandomPolicy(world.game)]
    play = live_play.play(world, at_table, 512, slots=128, key=jax.random.key(0), seating=seating)
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
        terminal.play("kuhn_poker", watcher, 0, seed=seed, ask=lambda _: "0", tell=told.append)
        deals.append(watcher.deals[1][0])
        moves.append("Player 1: Pass" in told)
    moves = np.array(moves).astype(int)
    independence.check(np.array(deals), moves, "deals and moves")
    independence.check_stream(np.array(deals), "deals of seeds in a row")
    independence.check_stream(moves, "moves of seeds in a row")


# Bandits: what arms are worth and which is pulled, over rounds and runs.

ROUNDS, RUNS = 64, 64


def bandit_draws(seed):
    """(arm pulled, the problem's uniform number) of 64 rounds and 64 runs, from what was received alone."""

    def utilities(state, policy, uniforms):
        return -(jnp.array([[1.0], [3.0]]) + uniforms) / 4

    problem = problems.Problem("telling", 2, 1.0, 1, lambda *runs: (), utilities, lambda state, policy: state)
    still = bandits.reduction(bandits.learners.hedge(1e-9), "importance")
    totals = simulation.simulate(problem, still, range(1, ROUNDS + 1), RUNS, key=jax.random.key(seed))
    received = -4 * np.diff(np.asarray(totals.received), axis=0, prepend=0)
    arm = (received > 2.5).astype(int)
    # Sums are float32, of up to 64: an error of 1e-5 in the number is far below a bin.
    return arm, (received - 1 - 2 * arm).astype(np.float64)


def test_arms_and_utilities_over_rounds_and_runs():
    """4,096 pulls: the arm and what arms are worth, in rounds and in runs beside each other."""
    found = {}
    for seed in (0, 1):
        arm, worth = bandit_draws(seed)
        found |= {f"arms of seed {seed}": arm, f"worth in seed {seed}": worth}
    independence.check_all(found)
    for name, draws in found.items():
        independence.check_stream(draws.reshape(-1), f"{name}, run after run")
        independence.check_stream(draws.T.reshape(-1), f"{name}, round after round")


def test_noise_of_rounds_runs_and_keys():
    """1,024 numbers each, of two rounds and two keys: both halves of the action's, two for the problem."""
    found = {}
    for seed in (0, 1):
        for round_ in (0, 1):
            numbers = simulation.uniforms(jax.random.key(seed), round_, 2, 1_024)
            rows = [*numbers.action.high, *numbers.action.low, *numbers.problem]
            names = [f"row {row} of round {round_} of key {seed}" for row in range(4)]
            found |= {name: np.asarray(row, float) for name, row in zip(names, rows, strict=True)}
    independence.check_all(found)
    for name, draws in found.items():
        independence.check_stream(draws, name)
