"""Learning from live play: it resumes to the bit, moves only what it should, and comes near equilibrium."""

import functools
import itertools

import jax
import numpy as np
import optax
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from pohp_neurd import checkpoint, checks, directions, learners, openspiel, optimizers, shaping
from pohp_neurd.openspiel.live import play, train

pytestmark = pytest.mark.thorough

MAGNET = shaping.Magnet(0.1, 0.01)


def small(game, *, learner=None, hidden_layers=(8,), critic=True, **keywords):
    """A small trainer; `learner` is a function of the model."""
    world = play.live_game(game)
    separate = keywords.get("separate", False)
    model = play.network(world, hidden_layers, critic=critic, separate=separate)
    learner = (learner or slow)(model)
    return train.Trainer(world, model, learner, **{"batch_episodes": 16, "block": 8, **keywords})


def actor(trainer, state, **which):
    """The weights of the actor's head."""
    return np.asarray(train.network(trainer, state, **which).parameters["actor"]["w"])


def slow(model, learning_rate=0.01, magnet=MAGNET):
    return train.default_learner(model, learning_rate=learning_rate, magnet=magnet)


def assert_same(one, other):
    data = [
        jax.tree.map(lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, tree)
        for tree in (one, other)
    ]
    jax.tree.map(np.testing.assert_array_equal, *data)


def _is_key(leaf):
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


@pytest.mark.slow
@pytest.mark.parametrize(
    "game", ["liars_dice(numdice=2)", pytest.param("phantom_ttt", marks=pytest.mark.slow)]
)
def test_resumes_to_the_bit(tmp_path, game):
    trainer = small(game)
    whole, _ = train.advance(trainer, train.init(trainer), 4)
    half, _ = train.advance(trainer, train.init(trainer), 2)
    checkpoint.save(tmp_path, 2, half)
    # A new process: everything is made again, and the state read back.
    again = small(game)
    restored = checkpoint.restore(tmp_path, train.init(again))
    resumed, _ = train.advance(again, restored.tree, 2)
    assert_same(whole, resumed)
    assert int(resumed.episodes) == 64
    assert int(resumed.learner.updates) == 4


def test_an_update_is_the_learners_on_fresh_episodes():
    """The parts put together by hand: two blocks, one batch of all their decisions, one update by JAX."""
    trainer = small("kuhn_poker", batch_episodes=13)
    state = train.init(trainer)
    words = play.words_of(state.key)
    mine = [train.network(trainer, state)]
    sizes = (8, 5)
    blocks = [play.play_block(trainer.world, mine, n, play.streams(words, 0, b)) for b, n in enumerate(sizes)]

    def both(name):
        return np.concatenate([getattr(block, name) for block in blocks])

    returns = both("return_").astype(np.float32) - trainer.world.max_utility
    batch = learners.Decision(
        *(both("agent_state"), both("legal"), both("action"), both("probability")),
        *(returns, both("value"), np.full(len(returns), 1 / 13, np.float32), returns),
    )
    expected, info = slow(trainer.packed).update(state.learner, batch)
    after, found = train.advance(trainer, state, 1)
    close = functools.partial(np.testing.assert_allclose, rtol=2e-5, atol=2e-6)
    jax.tree.map(close, after.learner, expected)
    jax.tree.map(close, found, info)
    assert int(after.decisions) == len(returns)


def test_figures_are_of_the_last_update_and_change_nothing():
    """Parameters are the same to the bit whether figures were asked for on the way or not."""
    trainer = small("kuhn_poker")
    one_by_one = train.init(trainer)
    for _ in range(3):
        one_by_one, last = train.advance(trainer, one_by_one, 1)
    at_once, info = train.advance(trainer, train.init(trainer), 3)
    assert_same(at_once, one_by_one)
    assert info == last
    assert np.all(np.isfinite(info))
    state = train.init(trainer)
    (untold, _) = train.here(trainer, train.shown(state.learner), play.words_of(state.key), 0, told=False)
    assert np.all(np.isnan(untold.info))


def test_the_average_is_of_all_parameters_so_far():
    """A plain mean until 1 / rate updates, then an exponential one: by hand from all parameters."""
    trainer = small("kuhn_poker", average_rate=0.4)
    state, mean = train.init(trainer), None
    for number in range(1, 5):
        state, _ = train.update(trainer, state)
        now = actor(trainer, state).astype(np.float64)
        mean = now if mean is None else mean + max(0.4, 1 / number) * (now - mean)
    np.testing.assert_allclose(actor(trainer, state, average=True), mean, rtol=1e-5, atol=1e-7)
    with pytest.raises(ValueError, match="keeps no average"):
        train.network(trainer, state._replace(average=None), average=True)


def test_staleness_plays_with_the_parameters_of_the_update_before():
    """The first update has none before it. And it resumes from its state."""
    trainer, shown = small("kuhn_poker", staleness=1), []

    def watched(trainer, known, words, update, told, following):
        shown.append((known.parameters, following.parameters))
        return train.here(trainer, known, words, update, told, following)

    state, begun = train.init(trainer), []
    for _ in range(4):
        begun.append(np.asarray(state.learner.parameters))
        state, _ = train.update(trainer, state, watched)
    for number, (known, following) in enumerate(shown):
        np.testing.assert_array_equal(known, begun[max(number - 1, 0)])
        np.testing.assert_array_equal(following, begun[number])
    half, _ = train.advance(trainer, train.init(trainer), 2)
    assert_same(train.advance(small("kuhn_poker", staleness=1), half, 2)[0], state)


def test_another_seed_is_another_run():
    one, other = (small("kuhn_poker", seed=seed) for seed in (0, 1))
    first, second = (actor(each, train.advance(each, train.init(each), 1)[0]) for each in (one, other))
    assert not np.array_equal(first, second)


@pytest.mark.slow
def test_separate_parameters_of_a_seat_that_does_not_learn_stay():
    trainer = small("liars_dice(numdice=2)", separate=True, seat=0)
    before = train.init(trainer)
    after, _ = train.advance(trainer, before, 2)

    def moved(seat):
        leaves = (jax.tree.leaves(train.network(trainer, one).parameters) for one in (before, after))
        pairs = zip(*leaves, strict=True)
        return [not np.array_equal(old[seat], new[seat]) for old, new in pairs]

    assert all(moved(0))
    assert not any(moved(1))


def test_only_the_learning_seat_is_learnt_from():
    trainer = small("kuhn_poker", seat=1)
    state = train.init(trainer)
    after, _ = train.advance(trainer, state, 1)
    # Kuhn poker's second player decides exactly once in every episode.
    assert int(after.decisions) == 16


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("learner", "baseline"), [("spg", "critic"), pytest.param("neurd", "none", marks=pytest.mark.slow)]
)
def test_every_learner_stays_finite(learner, baseline):
    def thresholded(model):
        optimizer = optax.adam(0.01)
        return learners.learner(model.apply, learners.rule(learner, 0.1), optimizer, threshold=2.0)

    trainer = small("leduc_poker", learner=thresholded, critic=baseline == "critic")
    state, info = train.advance(trainer, train.init(trainer), 2)
    assert ("critic" in train.network(trainer, state).parameters) == (baseline == "critic")
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(state.learner))
    assert 0 < info.entropy <= np.log(3)


def policy_of(trainer, state):
    return openspiel.LivePolicy(trainer.world, train.network(trainer, state))


def test_policy_for_openspiel():
    trainer = small("leduc_poker")
    policy = policy_of(trainer, train.init(trainer))
    state = trainer.world.game.new_initial_state().child(0).child(3)
    for player in (None, 0):
        probabilities = policy.action_probabilities(state, player)
        assert list(probabilities) == state.legal_actions()
        assert sum(probabilities.values()) == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(ValueError, match="does not know the state"):
        policy.action_probabilities(pyspiel.load_game("kuhn_poker").new_initial_state().child(0).child(1))
    tabular = openspiel_policy.tabular_policy_from_callable(trainer.world.game, policy)
    assert tabular.action_probabilities(state) == pytest.approx(probabilities)


def test_simultaneous_moves_are_answered_as_in_turns():
    trainer = small("goofspiel(num_cards=3,imp_info=True)")
    policy = policy_of(trainer, train.init(trainer))
    joint = pyspiel.load_game("goofspiel(num_cards=3,imp_info=True)").new_initial_state()
    in_turns = trainer.world.game.new_initial_state()
    for state in (joint, in_turns):
        while state.is_chance_node():
            state.apply_action(0)
    with pytest.raises(ValueError, match="say for which of them"):
        policy.action_probabilities(joint)
    assert policy.action_probabilities(joint, 0) == policy.action_probabilities(in_turns)


@pytest.mark.slow
def test_kuhn_poker_comes_near_equilibrium():
    """300 updates of 256 episodes; exact NashConv. Uniform has 0.917, and no pure pair below 1 / 3."""

    def pulled(model):
        return slow(model, magnet=shaping.Magnet(0.2, 0.01))

    trainer = small("kuhn_poker", learner=pulled, hidden_layers=(32,), batch_episodes=256, block=256)
    tree = openspiel.compile_game("kuhn_poker")
    state, _ = train.advance(trainer, train.init(trainer), 300)
    assert openspiel.nash_conv(tree, policy_of(trainer, state)) < 0.3


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"batch_episodes": 0}, "batch_episodes must be at least 1"),
        ({"block": 0}, "block must be at least 1"),
        ({"seed": -1}, "seed must be"),
        ({"seat": 2}, "seat must be one of 0 to 1"),
        ({"seat": 0, "alternating": True}, "in turn, but only seat 0 learns"),
    ],
)
def test_wrong_settings(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        small("kuhn_poker", **wrong)


def test_wrong_calls():
    trainer = small("kuhn_poker")
    with pytest.raises(ValueError, match="num_updates must be at least 1"):
        train.advance(trainer, train.init(trainer), 0)


def test_every_update_plays_episodes_of_its_own(monkeypatch):
    """Uniform play in tic-tac-toe: what two updates played has nothing in common but the game."""
    seen = []
    original = play.play_block

    def watched(*args, **kwargs):
        seen.append(original(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr(play, "play_block", watched)
    trainer = small("tic_tac_toe", learner=lambda model: slow(model, 1e-30), batch_episodes=64, block=64)
    train.advance(trainer, train.init(trainer), 3)
    opening = [one.action[np.append(True, np.diff(one.episode) > 0)] for one in seen]
    assert {len(moves) for moves in opening} == {64}
    for one, other in itertools.combinations(opening, 2):
        # 64 pairs of independent moves among 9: 7.1 agree on average, and 5 sigma are 12.6 more.
        assert np.sum(one == other) < 20


@pytest.mark.parametrize("separate", [False, True])
def test_seats_learn_in_turn(separate):
    trainer = small("kuhn_poker", separate=separate, alternating=True)
    before = train.init(trainer)
    for turn in (0, 1, 0):
        after, _ = train.advance(trainer, before, 1)
        assert int(after.learner.updates) == int(before.learner.updates) + 1
        if turn == 1:
            # Kuhn poker's second player decides exactly once in every episode.
            assert int(after.decisions - before.decisions) == 16
        if separate:
            # All of a seat: Adam's momentum and the magnet would move it without a gradient too.
            for old, new in zip(jax.tree.leaves(before.learner), jax.tree.leaves(after.learner), strict=True):
                if old.ndim:
                    np.testing.assert_array_equal(old[1 - turn], new[1 - turn])
            old, new = (actor(trainer, state)[turn] for state in (before, after))
            assert not np.array_equal(old, new)
        before = after


def test_an_optimizer_that_has_left_the_finite_numbers_is_told_of():
    def steep(model):
        optimizer = optimizers.adam_without_momentum(0.01)
        return learners.learner(model.apply, directions.neurd_cix(0.1), optimizer, critic_cost=1e30)

    trainer = small("kuhn_poker", learner=steep)
    state = train.init(trainer)
    with pytest.raises(checks.Diverged, match="the optimizer's state was not finite after update 1"):
        train.advance(trainer, state, 3)
    after, _ = train.update(trainer, state)
    assert checks.all_finite(after.learner.parameters)
