"""Live episodes: what is recorded is what was played, every episode counts once, and calls are batched."""

import jax
import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score
from pohp_neurd.games import openspiel_games  # noqa: F401 (registers python_pohp_catch)

from pohp_neurd import neural, policy
from pohp_neurd.openspiel import policies
from pohp_neurd.openspiel.live import play

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
    return world, network, play.play(world, [network], 40, slots=16, key=jax.random.key(3))


def test_features_are_the_tensor_and_the_seat(played):
    world = played[0]
    state = world.game.new_initial_state()
    views = play.Views(world, 2)
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
        views.fill([state], [seat])
        np.testing.assert_array_equal(views.features[0], expected)
        np.testing.assert_array_equal(np.flatnonzero(views.legal[0]), state.legal_actions())
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
    found = play.play(world, [None], 50, slots=8, key=jax.random.key(0))
    to_go = np.append(found.return_.reshape(50, 18), np.zeros((50, 1)), axis=1)
    rewards = -np.diff(to_go, axis=1).reshape(50, 6, 3)
    assert np.all(rewards[:, :, :2] == 0)
    assert set(rewards[:, :, 2].ravel()) == {-1.0, 0.0}
    np.testing.assert_array_equal(rewards.sum(axis=(1, 2)), found.returns[:, 0])


def test_mean_return_is_the_policys_value_however_few_slots():
    """20,000 episodes in 16 slots; episodes of Kuhn poker differ in length, and short ones pay less."""
    world = play.live_game("kuhn_poker")
    network = network_for(world, seed=1)
    found = play.play(world, [network], 20_000, slots=16, key=jax.random.key(1), record=False)
    exact = expected_game_score.policy_value(
        world.game.new_initial_state(), [policies.LivePolicy(world, network)] * 2
    )
    error = found.returns.std(axis=0) / np.sqrt(20_000)
    assert np.all(np.abs(found.returns.mean(axis=0) - exact) < 5 * error)
    assert len(found.action) == 0


def test_chance_is_drawn_at_its_odds():
    """12,000 deals of Kuhn poker: each of three cards 4,000 times to the first seat, within 5 sigma."""
    world = play.live_game("kuhn_poker")
    found = play.play(world, [None], 12_000, slots=64, key=jax.random.key(2))
    first = np.flatnonzero((found.seat == 0) & np.append(True, np.diff(found.episode) > 0))
    cards = found.agent_state[first, 2:5].sum(axis=0)
    assert cards.sum() == 12_000
    assert np.all(np.abs(cards - 4_000) < 5 * np.sqrt(12_000 * 2 / 9))


def test_a_function_of_the_key_alone():
    world = play.live_game("liars_dice(numdice=2)")
    network = network_for(world)
    one, same, other = (
        play.play(world, [network], 30, slots=8, key=jax.random.key(seed)) for seed in (5, 5, 6)
    )
    jax.tree.map(np.testing.assert_array_equal, one, same)
    assert not np.array_equal(one.returns, other.returns)


def test_one_call_a_step_and_full_slots(monkeypatch):
    """Tic-tac-toe takes at least 5 and at most 9 moves: 64 episodes in 8 slots cannot need more calls."""
    world = play.live_game("tic_tac_toe")
    sizes = []
    choose = play.choose

    def counted(applies, parameters, features, *rest):
        sizes.append(len(features))
        return choose(applies, parameters, features, *rest)

    monkeypatch.setattr(play, "choose", counted)
    found = play.play(world, [network_for(world)], 64, slots=8, key=jax.random.key(0))
    assert set(sizes) == {8}
    # All but a tail of at most 9 calls run with every slot taken.
    assert len(found.action) >= 8 * (len(sizes) - 9)


def test_second_play_compiles_nothing(count_compilations):
    world = play.live_game("kuhn_poker")
    network = network_for(world)
    play.play(world, [network], 30, slots=8, key=jax.random.key(0))
    with count_compilations() as seen:
        play.play(world, [network], 50, slots=8, key=jax.random.key(1))
    assert seen.count == 0


class First(openspiel_policy.Policy):
    """Always the first legal action."""

    def action_probabilities(self, state, player_id=None):
        return {action: float(i == 0) for i, action in enumerate(state.legal_actions(player_id))}


def test_any_policy_can_sit_anywhere():
    world = play.live_game("leduc_poker")
    seating = np.tile(np.array([0, 1], np.int32), (200, 1))
    sitting = [First(world.game, [0, 1]), pyspiel.UniformRandomPolicy(world.game)]
    found = play.play(world, sitting, 200, slots=16, key=jax.random.key(0), seating=seating)
    first = np.argmax(found.legal, axis=1)
    assert np.all(found.action[found.seat == 0] == first[found.seat == 0])
    assert np.all(found.probability[found.seat == 0] == 1)
    uniform = found.seat == 1
    np.testing.assert_allclose(found.probability[uniform], 1 / found.legal[uniform].sum(axis=1), rtol=1e-6)
    assert np.any(found.action[uniform] != first[uniform])


def test_batches_for_a_learner():
    world = play.live_game("phantom_ttt")
    found = play.play(world, [None], 10, slots=4, key=jax.random.key(0))
    mine = found.seat == 1
    count = int(mine.sum())
    batch = play.decisions(found, world, size=count + 3, weight=0.1, chosen=mine)
    np.testing.assert_array_equal(batch.agent_state[:count], found.agent_state[mine])
    np.testing.assert_array_equal(batch.return_[:count], found.return_[mine].astype(np.float32) - 1)
    np.testing.assert_array_equal(batch.target, batch.return_)
    np.testing.assert_allclose(batch.weight, [0.1] * count + [0.0] * 3, rtol=1e-6)
    assert np.all(batch.return_ <= 0)
    assert not np.any(batch.legal[count:])
    with pytest.raises(ValueError, match=f"{count} decisions do not fit into a batch of 5"):
        play.decisions(found, world, size=5, weight=0.1, chosen=mine)


def test_what_cannot_be_played():
    world = play.live_game("kuhn_poker")
    with pytest.raises(ValueError, match="num_episodes must be at least 1, but is 0"):
        play.play(world, [None], 0, slots=4, key=jax.random.key(0))
    with pytest.raises(ValueError, match="knows no game 'kuhn_pokr'"):
        play.live_game("kuhn_pokr")
    with pytest.raises(
        ValueError, match=r"tarok\(\) gives neither information-state nor observation tensors"
    ):
        play.live_game("tarok")


def test_every_step_of_a_player_draws_anew():
    """2,048 uniform choices among 9 at each of three steps: agreements within 5 sigma of one ninth."""
    count = 2_048
    legal, owner = np.ones((count, 9), bool), np.zeros(count, np.int32)
    actions = [
        np.asarray(play.choose((None,), (None,), None, legal, owner, jax.random.key(0), np.uint32(step))[0])
        for step in range(3)
    ]
    error = np.sqrt(8 / 81 / count)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.mean(actions[one] == actions[other]) - 1 / 9) < 5 * error


def test_play_counts_its_steps(monkeypatch):
    """Each call of the networks has a number of its own, and chance a stream apart from theirs."""
    world, steps, keys = play.live_game("kuhn_poker"), [], []
    choose = play.choose

    def watched(*args):
        steps.append(int(args[-1]))
        keys.append(jax.random.key_data(args[-2]).tolist())
        return choose(*args)

    monkeypatch.setattr(play, "choose", watched)
    play.play(world, [None], 20, slots=4, key=jax.random.key(0))
    assert steps == list(range(len(steps)))
    assert len(steps) >= 10
    assert all(key == keys[0] for key in keys)
