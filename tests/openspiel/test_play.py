"""Live episodes: what is recorded is what was played, every episode counts once, and calls are batched."""

import functools

import jax
import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score
from pohp_neurd.games import openspiel_games  # noqa: F401 (registers python_pohp_catch)

from pohp_neurd import neural, policy
from pohp_neurd.openspiel import policies
from pohp_neurd.openspiel.live import forward, minds, openings, play

REPEATED = "repeated_game(stage_game=matrix_pd(),num_repetitions=3)"
GAMES = (
    "kuhn_poker",  # chance at the root
    "leduc_poker",  # chance on the way
    "liars_dice(numdice=2)",
    "phantom_ttt",  # no chance; a seat may move twice
    "goofspiel(num_cards=4,imp_info=True)",  # simultaneous moves
    "breakthrough(rows=4,columns=4)",  # observation tensors only
    "kuhn_poker(players=3)",
    "python_pohp_catch(horizon=18,rows=4)",  # rewards on the way, in Python
    REPEATED,  # rewards on the way, for two
)

pytestmark = pytest.mark.thorough


def network_for(world, torso=(8,), seed=0):
    model = neural.network(world.num_features, world.num_actions, torso=torso, critic=True)
    return play.Network(model, model.init(key=jax.random.key(seed)))


@pytest.fixture(scope="module", params=GAMES)
def played(request):
    world = play.live_game(request.param)
    network = network_for(world)
    return world, network, play.play(world, [network], 40, block=16, key=jax.random.key(3))


def test_features_are_the_tensor_and_the_seat(played):
    world = played[0]
    state = world.game.new_initial_state()
    mind = minds.Minds(world, [None])
    rng = np.random.default_rng(0)
    while not state.is_terminal():
        if state.is_chance_node():
            state.apply_action(state.chance_outcomes()[-1][0])
            continue
        seat = state.current_player()
        kind = world.game.get_type()
        tensor = (
            state.information_state_tensor(seat)
            if kind.provides_information_state_tensor
            else state.observation_tensor(seat)
        )
        expected = np.array([*tensor, *np.eye(world.num_seats)[seat]], np.float32)
        np.testing.assert_array_equal(world.features(state, seat), expected)
        (row,) = mind.look([None], [state], [seat])
        features, legal = mind.seen()
        np.testing.assert_array_equal(features[row], expected)
        np.testing.assert_array_equal(np.flatnonzero(legal[row]), state.legal_actions())
        state.apply_action(rng.choice(state.legal_actions()))


def test_every_episode_once(played):
    world, _, found = played
    assert set(found.episode) == set(range(40))
    assert found.returns.shape == (40, world.num_seats)
    assert np.all(np.diff(found.episode * world.num_seats + found.seat) >= 0)


def test_recorded_probabilities_are_the_networks(played):
    _, network, found = played
    table = policy.table(network.model.apply, network.parameters, found.agent_state, found.legal)
    rows = np.arange(len(found.action))
    np.testing.assert_allclose(found.probability, np.asarray(table)[rows, found.action], rtol=1e-5)
    assert np.all(found.legal[rows, found.action])
    values = jax.vmap(network.model.apply, in_axes=(None, 0))(network.parameters, found.agent_state).value
    np.testing.assert_allclose(found.value, values, atol=1e-5)


def test_returns_to_go_begin_with_all_that_the_seat_gets(played):
    world, _, found = played
    trajectory = found.episode * world.num_seats + found.seat
    starts = np.flatnonzero(np.append(True, np.diff(trajectory) > 0))
    assert len(starts) == 40 * world.num_seats
    # None of these games pays a seat before its first decision.
    expected = found.returns[found.episode[starts], found.seat[starts]]
    np.testing.assert_allclose(found.return_[starts], expected, atol=1e-9)


def test_rewards_on_the_way_stand_where_they_were_earned():
    """The ball of 4 rows lands with every third decision: only there can a reward be."""
    world = play.live_game("python_pohp_catch(horizon=18,rows=4)")
    found = play.play(world, [None], 50, block=8, key=jax.random.key(0))
    to_go = np.append(found.return_.reshape(50, 18), np.zeros((50, 1)), axis=1)
    rewards = -np.diff(to_go, axis=1).reshape(50, 6, 3)
    assert np.all(rewards[:, :, :2] == 0)
    assert set(rewards[:, :, 2].ravel()) == {-1.0, 0.0}
    np.testing.assert_array_equal(rewards.sum(axis=(1, 2)), found.returns[:, 0])


def test_mean_return_is_the_policys_value_however_few_slots():
    """20,000 episodes in 16 slots; episodes of Kuhn poker differ in length, and short ones pay less."""
    world = play.live_game("kuhn_poker")
    network = network_for(world, seed=1)
    found = play.play(world, [network], 20_000, block=16, key=jax.random.key(1), record=False)
    exact = expected_game_score.policy_value(
        world.game.new_initial_state(), [policies.LivePolicy(world, network)] * 2
    )
    error = found.returns.std(axis=0) / np.sqrt(20_000)
    assert np.all(np.abs(found.returns.mean(axis=0) - exact) < 5 * error)
    assert len(found.action) == 0


def test_chance_is_drawn_at_its_odds():
    """12,000 deals of Kuhn poker: each of three cards 4,000 times to the first seat, within 5 sigma."""
    world = play.live_game("kuhn_poker")
    found = play.play(world, [None], 12_000, block=64, key=jax.random.key(2))
    first = np.flatnonzero((found.seat == 0) & np.append(True, np.diff(found.episode) > 0))
    cards = found.agent_state[first, 2:5].sum(axis=0)
    assert cards.sum() == 12_000
    assert np.all(np.abs(cards - 4_000) < 5 * np.sqrt(12_000 * 2 / 9))


def test_a_function_of_the_key_alone():
    world = play.live_game("liars_dice(numdice=2)")
    network = network_for(world)
    one, same, other = (
        play.play(world, [network], 30, block=8, key=jax.random.key(seed)) for seed in (5, 5, 6)
    )
    jax.tree.map(np.testing.assert_array_equal, one, same)
    assert not np.array_equal(one.returns, other.returns)


def test_each_agent_state_is_thought_about_once(monkeypatch):
    """Tic-tac-toe: all that a network is asked for is new to its block, and nothing is left out."""
    world, asked = play.live_game("tic_tac_toe"), []
    think = forward.Network.__call__

    def watched(network, seen):
        asked.append(seen)
        return think(network, seen)

    monkeypatch.setattr(forward.Network, "__call__", watched)
    model = play.network(world, (8,))
    player = play.Network(model, model.init(key=jax.random.key(0)))
    found = play.play(world, [player], 64, block=64, key=jax.random.key(0))
    seen = np.concatenate(asked)
    assert len(np.unique(seen, axis=0)) == len(seen) == len(found.seen) < len(found.row)
    np.testing.assert_array_equal(seen, found.seen)
    assert set(found.row) == set(range(len(found.seen)))
    assert len(asked) <= 9  # one call a move


@pytest.mark.parametrize("kind", ["shared", "separate", "by JAX"])
@pytest.mark.parametrize(("torso", "critic"), [((16, 8, 4), True), ((8, 8), False), ((), True)])
def test_pulled_back_on_the_host_is_the_gradient(kind, torso, critic):
    """Of a weighted sum of all outputs, as JAX differentiates it; states come a few at a time, some twice."""
    world, rng = play.live_game("kuhn_poker"), np.random.default_rng(0)
    model = play.network(world, torso, critic=critic, separate=kind == "separate")
    model = model._replace(host=None) if kind == "by JAX" else model
    parameters = model.init(key=jax.random.key(1))
    parameters = jax.tree.map(lambda leaf: leaf + 0.1, parameters)  # no bias is 0
    seen = play.play(world, [None], 60, key=jax.random.key(0)).agent_state
    network = minds.hosted(play.Network(model, parameters))
    for part in np.split(seen, [3, 70]):
        network(part)
    logits = rng.normal(size=(len(seen), world.num_actions)).astype(np.float32)
    values = rng.normal(size=len(seen)).astype(np.float32) if critic else None

    def weighted(parameters):
        outputs = jax.vmap(model.apply, in_axes=(None, 0))(parameters, seen)
        return (outputs.logits * logits).sum() + (0 if values is None else (outputs.value * values).sum())

    slopes = logits if values is None else np.column_stack([logits, values])
    found, expected = network.pullback(slopes), jax.grad(weighted)(parameters)
    found = found if model.host is None else model.host.unpack(found)
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4), found, expected
    )


@pytest.mark.parametrize("game", ["liars_dice(numdice=2)", "phantom_ttt"])
@pytest.mark.parametrize("separate", [False, True])
def test_the_network_on_the_host_is_the_network(game, separate):
    """And a row is the same to the bit whatever stands beside it."""
    world = play.live_game(game)
    model = play.network(world, (32, 16), separate=separate)
    parameters = model.init(key=jax.random.key(0))
    seen = play.play(world, [None], 64, key=jax.random.key(1)).seen
    hosted = functools.partial(minds.hosted, play.Network(model, parameters))
    logits, values = hosted()(seen)
    output = jax.vmap(model.apply, in_axes=(None, 0))(parameters, seen)
    np.testing.assert_allclose(logits, output.logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(values, output.value, rtol=1e-5, atol=1e-6)
    for part in (seen[::-1], seen[5:8], seen[:1]):
        again, valued = hosted()(np.ascontiguousarray(part))
        where = [np.flatnonzero((seen == row).all(axis=1))[0] for row in part]
        np.testing.assert_array_equal(again, logits[where])
        np.testing.assert_array_equal(valued, values[where])


@pytest.mark.parametrize("rare", [1e-6, 1e-9, 1e-14])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_draws_on_the_host_are_as_rare_as_they_should_be(rare, place):
    """The parts of [0, 1) are as long as the probabilities, to 2⁻⁵⁰; 0 where the probability is 0."""
    odds = np.insert(np.array([0.3, 0.0, 0.25, 0.45 - rare]), place, rare)[None]
    with np.errstate(divide="ignore"):
        logits = np.log(odds).astype(np.float32)
    legal = odds > 0
    chosen, ends = np.empty(odds.shape), np.empty(odds.shape)
    forward.policies(np.where(legal, logits, 7.0).astype(np.float32), legal, chosen, ends)
    expected = policy.probabilities(np.where(legal, logits, np.float32(0))[0], legal[0])
    np.testing.assert_allclose(chosen[0], expected, rtol=2e-6)
    assert ends[0, -1] == 1.0
    np.testing.assert_allclose(np.diff(ends[0], prepend=0.0), chosen[0], rtol=0, atol=2.0**-50)
    assert np.all(np.diff(ends[0], prepend=0.0)[~legal[0]] == 0)
    for action in np.flatnonzero(legal[0]):
        start = 0.0 if action == 0 else ends[0, action - 1]
        for uniform in (start, np.nextafter(ends[0, action], 0.0)):
            zero = np.zeros(1, np.int32)
            tables = ends[None], chosen[None], np.full((1, 1), 7.0)
            drawn, likely, valued = forward.draw(*tables, zero, zero, np.array([uniform]))
            assert drawn.tolist() == [action]
            assert valued.tolist() == [7.0]
            np.testing.assert_array_equal(likely, chosen[0, [action]].astype(np.float32))


# One coin, or two: the second is tossed after heads, or after tails.
TOSS = """c "" 2 "second coin" { "heads" 1/3 "tails" 2/3 } 0
p "" 1 1 "" { "on" } 0
t "" 1 "" { 1 -1 }
t "" 2 "" { 2 -2 }
"""
NO_TOSS = """p "" 1 2 "" { "on" } 0
t "" 3 "" { -1 1 }
"""
COINS = """EFG 2 R "coins" { "first" "second" }
c "" 1 "first coin" { "heads" 1/4 "tails" 3/4 } 0
"""


@pytest.mark.parametrize(
    ("game", "looked_up"),
    [
        ("leduc_poker", True),
        ("kuhn_poker(players=3)", True),
        ("phantom_ttt", True),
        (COINS + TOSS + NO_TOSS, False),
        (COINS + NO_TOSS + TOSS, False),
    ],
)
def test_deals_are_those_of_chance_one_by_one(game, looked_up):
    """Where all episodes have the same chance events before the first decision, they are looked up."""
    game = pyspiel.load_efg_game(game) if game.startswith("EFG") else pyspiel.load_game(game)
    known = openings.Openings(game, lambda state, seat: b"", 4)
    assert (known._deals is not None) == looked_up
    *begun, draw = known.begin(300, np.random.default_rng(3))
    one_by_one = openings.one_by_one(np.random.default_rng(3))
    for node, state, seat in zip(*begun, strict=True):
        alone = game.new_initial_state()
        assert seat == openings.settle(alone, one_by_one)
        assert state.history() == alone.history()
        assert node is None or node.seat == seat
    assert draw() == one_by_one()


@pytest.mark.parametrize("looked_up", [True, False])
def test_episodes_that_chance_ends_are_over_when_they_are_dealt(looked_up, monkeypatch):
    monkeypatch.setattr(openings, "_DEALS", 4096 if looked_up else 0)
    over = 't "" 4 "" { -3 3 }\n'
    game = pyspiel.load_efg_game(COINS + NO_TOSS.replace("1 2", "1 1") + over)
    known = openings.Openings(game, lambda state, seat: b"", 4)
    assert (known._deals is not None) == looked_up
    dealt = play.deal(play.live_game("kuhn_poker")._replace(openings=known), 300, np.random.default_rng(3))
    nodes, states, seats, episodes = dealt.running
    assert 30 < len(episodes) < 130, "heads, one of four"
    one_by_one = openings.one_by_one(np.random.default_rng(3))
    for episode in range(300):
        alone = game.new_initial_state()
        seat = openings.settle(alone, one_by_one)
        if seat < 0:
            assert episode not in episodes
            assert dealt.returns[episode] == [-3.0, 3.0]
            continue
        at = episodes.index(episode)
        assert states[at].history() == alone.history()
        assert seats[at] == seat
        assert nodes[at] is None or nodes[at].state is states[at]
    assert dealt.chance() == one_by_one()


def test_what_is_remembered_of_chance_changes_no_draw(monkeypatch):
    """Liar's Dice with all deals known, looked up or walked to, with a few of them, and with none."""
    found = []
    for most, deals in ((4096, 4096), (4096, 0), (7, 4096), (0, 4096)):
        monkeypatch.setattr(openings, "_MOST", most)
        monkeypatch.setattr(openings, "_DEALS", deals)
        world = play.live_game("liars_dice(numdice=2)")
        for _ in range(2):  # the second time what was dealt is known
            found.append(play.play(world, [None], 200, key=jax.random.key(4)))
    for other in found[1:]:
        jax.tree.map(np.testing.assert_array_equal, found[0], other)


def test_second_play_compiles_nothing(count_compilations):
    world = play.live_game("kuhn_poker")
    network = network_for(world)  # one that JAX computes
    play.play(world, [network], 30, block=8, key=jax.random.key(0))
    with count_compilations() as seen:
        play.play(world, [network], 50, block=8, key=jax.random.key(1))
    assert seen.count == 0


class First(openspiel_policy.Policy):
    """Always the first legal action."""

    def action_probabilities(self, state, player_id=None):
        return {action: float(i == 0) for i, action in enumerate(state.legal_actions(player_id))}


def test_any_policy_can_sit_anywhere():
    world = play.live_game("leduc_poker")
    seating = np.tile(np.array([0, 1], np.int32), (200, 1))
    sitting = [First(world.game, [0, 1]), pyspiel.UniformRandomPolicy(world.game)]
    found = play.play(world, sitting, 200, block=16, key=jax.random.key(0), seating=seating)
    first = np.argmax(found.legal, axis=1)
    assert np.all(found.action[found.seat == 0] == first[found.seat == 0])
    assert np.all(found.probability[found.seat == 0] == 1)
    uniform = found.seat == 1
    np.testing.assert_allclose(found.probability[uniform], 1 / found.legal[uniform].sum(axis=1), rtol=1e-6)
    assert np.any(found.action[uniform] != first[uniform])


def test_batches_for_a_learner():
    world = play.live_game("phantom_ttt")
    found = play.play(world, [None], 10, block=4, key=jax.random.key(0))
    mine = found.seat == 1
    count = int(mine.sum())
    rng, num_states = np.random.default_rng(0), len(found.seen)
    logits, reference = rng.normal(size=(2, num_states, world.num_actions)).astype(np.float32)
    values = rng.normal(size=num_states).astype(np.float32)
    for value, magnet in ((values, reference), (None, reference), (values, None), (None, None)):
        batch = play.decisions(found, world, (logits, value), magnet, weight=0.1, chosen=mine)
        thought, pull, decided = play.unpacked(*batch[1:], critic=value is not None)
        here, padding = found.row[mine], len(batch.rows) - count
        np.testing.assert_array_equal(batch.rows[:count], here)
        np.testing.assert_array_equal(decided.legal[:count], found.legal[mine])
        for name in ("action", "probability"):
            np.testing.assert_array_equal(getattr(decided, name)[:count], getattr(found, name)[mine])
        np.testing.assert_array_equal(decided.baseline[:count], found.value[mine])
        np.testing.assert_array_equal(decided.return_[:count], found.return_[mine].astype(np.float32) - 1)
        np.testing.assert_array_equal(decided.target, decided.return_)
        np.testing.assert_allclose(decided.weight, [0.1] * count + [0.0] * padding, rtol=1e-6)
        assert np.all(decided.return_ <= 0)
        assert not np.any(decided.legal[count:])
        np.testing.assert_array_equal(thought.logits[:count], logits[here])
        for one, given in ((thought.value, value), (pull, magnet)):
            assert (one is None) == (given is None)
            if given is not None:
                np.testing.assert_array_equal(one[:count], given[here])
    every = play.decisions(found, world, (logits, None), None, weight=0.1)
    np.testing.assert_array_equal(every.rows[: len(found.row)], found.row)


def test_what_was_dealt_before_is_what_is_played():
    """Chance draws the same whether a block's deal is made ahead or not, and goes on from there."""
    world, words = play.live_game("leduc_poker"), play.words_of(jax.random.key(0))
    played = []
    for ahead in (False, True):
        draws = play.streams(words, 3)
        dealt = play.deal(world, 32, draws[0]) if ahead else None
        played.append(play.play_block(world, [None], 32, draws, dealt=dealt))
    jax.tree.map(np.testing.assert_array_equal, *played)


def test_what_cannot_be_played():
    world = play.live_game("kuhn_poker")
    with pytest.raises(ValueError, match="num_episodes must be at least 1, but is 0"):
        play.play(world, [None], 0, block=4, key=jax.random.key(0))
    with pytest.raises(ValueError, match="knows no game 'kuhn_pokr'"):
        play.live_game("kuhn_pokr")
    with pytest.raises(
        ValueError, match=r"tarok\(\) gives neither information-state nor observation tensors"
    ):
        play.live_game("tarok")


@pytest.mark.parametrize("words", [[1, 2], [0, 0], [2**32 - 1, 0], [1, 2, 3, 4]])
@pytest.mark.parametrize("path", [(0,), (5, 1), (2**32 - 1, 0)])
def test_streams_are_those_of_spawn_keys(words, path):
    """As numpy makes them, whose promise it is that they are independent."""
    for part, stream in enumerate(play.streams(words, *path)):
        theirs = np.random.default_rng(np.random.SeedSequence(words, spawn_key=(*path, part)))
        np.testing.assert_array_equal(stream.random(4), theirs.random(4))


def test_a_block_is_a_function_of_its_number():
    """However many there are and in whatever order they are played; chance and actions draw apart."""
    world = play.live_game("leduc_poker")
    words = play.words_of(jax.random.key(0))
    whole = play.play(world, [None], 24, block=8, key=jax.random.key(0))
    for number in (2, 0, 1):
        part = play.play_block(world, [None], 8, play.streams(words, number))
        mine = whole.episode // 8 == number
        np.testing.assert_array_equal(part.action, whole.action[mine])
        np.testing.assert_array_equal(part.returns, whole.returns[8 * number : 8 * number + 8])
    numbers = [stream.random() for block in range(3) for stream in play.streams(words, block)]
    assert len(set(numbers)) == 6
