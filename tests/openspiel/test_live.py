"""Learning from live play: it resumes to the bit, moves only what it should, and comes near equilibrium."""

import dataclasses
import itertools

import jax
import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from pohp_neurd import checkpoint, checks, openspiel
from pohp_neurd.openspiel.live import play as states
from pohp_neurd.openspiel.live import train as live

pytestmark = pytest.mark.thorough

SMALL = live.Config(batch_episodes=16, slots=8, torso=(8,))


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
    trainer = live.trainer(game, SMALL)
    whole, _ = live.advance(trainer, live.init(trainer), 4)
    half, _ = live.advance(trainer, live.init(trainer), 2)
    checkpoint.save(tmp_path, 2, half)
    # A new process: everything is made again, and the state read back.
    again = live.trainer(game, SMALL)
    restored = checkpoint.restore(tmp_path, live.init(again))
    resumed, _ = live.advance(again, restored.tree, 2)
    assert_same(whole, resumed)
    assert int(resumed.episodes) == 64
    assert int(resumed.learner.updates) == 4


def test_an_update_is_the_learners_on_fresh_episodes():
    """The parts put together by hand: play under the folded key, one batch, one update."""
    trainer = live.trainer("kuhn_poker", SMALL)
    state = live.init(trainer)
    key = jax.random.fold_in(state.key, 0)
    play = states.play(trainer.world, [live.network(trainer, state)], 16, slots=8, key=key)
    size = states.padded_size(len(play.action))
    batch = states.decisions(play, trainer.world, size=size, weight=1 / 16)
    expected, info = trainer.learner.update(state.learner, batch)
    after, report = live.advance(trainer, state, 1)
    assert_same(after.learner, expected)
    assert int(after.decisions) == len(play.action)
    np.testing.assert_array_equal(report.returns, play.returns.mean(axis=0))
    assert report.entropy == pytest.approx(float(info.entropy))


def test_another_seed_is_another_run():
    one, other = (live.trainer("kuhn_poker", dataclasses.replace(SMALL, seed=seed)) for seed in (0, 1))
    first = live.advance(one, live.init(one), 1)[0].learner.parameters
    second = live.advance(other, live.init(other), 1)[0].learner.parameters
    assert not np.array_equal(first["actor"]["w"], second["actor"]["w"])


@pytest.mark.slow
def test_separate_parameters_of_a_seat_that_does_not_learn_stay():
    config = dataclasses.replace(SMALL, separate=True)
    trainer = live.trainer("liars_dice(numdice=2)", config, seat=0, opponent=None)
    before = live.init(trainer)
    after, _ = live.advance(trainer, before, 2)

    def moved(seat):
        pairs = zip(
            jax.tree.leaves(before.learner.parameters),
            jax.tree.leaves(after.learner.parameters),
            strict=True,
        )
        return [not np.array_equal(old[seat], new[seat]) for old, new in pairs]

    assert all(moved(0))
    assert not any(moved(1))


def test_only_the_learning_seat_is_learnt_from():
    trainer = live.trainer("kuhn_poker", SMALL, seat=1, opponent=None)
    state = live.init(trainer)
    after, _ = live.advance(trainer, state, 1)
    # Kuhn poker's second player decides exactly once in every episode.
    assert int(after.decisions) == 16


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("learner", "baseline"), [("spg", "critic"), pytest.param("neurd", "none", marks=pytest.mark.slow)]
)
def test_every_learner_stays_finite(learner, baseline):
    config = dataclasses.replace(SMALL, learner=learner, baseline=baseline, threshold=2.0)
    trainer = live.trainer("leduc_poker", config)
    state, report = live.advance(trainer, live.init(trainer), 2)
    assert ("critic" in state.learner.parameters) == (baseline == "critic")
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(state.learner))
    assert 0 < report.entropy <= np.log(3)


def test_policy_for_openspiel():
    trainer = live.trainer("leduc_poker", SMALL)
    policy = live.policy_of(trainer, live.init(trainer))
    state = trainer.world.game.new_initial_state().child(0).child(3)
    for player in (None, 0):
        probabilities = policy.action_probabilities(state, player)
        assert list(probabilities) == state.legal_actions()
        assert sum(probabilities.values()) == pytest.approx(1.0, abs=1e-12)
    tabular = openspiel_policy.tabular_policy_from_callable(trainer.world.game, policy)
    assert tabular.action_probabilities(state) == pytest.approx(probabilities)


def test_simultaneous_moves_are_asked_in_turns():
    trainer = live.trainer("goofspiel(num_cards=3,imp_info=True)", SMALL)
    state, _ = live.advance(trainer, live.init(trainer), 1)
    policy = live.policy_of(trainer, state)
    joint = pyspiel.load_game("goofspiel(num_cards=3,imp_info=True)").new_initial_state()
    while joint.is_chance_node():
        joint.apply_action(0)
    with pytest.raises(ValueError, match="in turns"):
        policy.action_probabilities(joint, 0)


@pytest.mark.slow
def test_kuhn_poker_comes_near_equilibrium():
    """300 updates of 256 episodes; exact NashConv. Uniform has 0.917, and no pure pair below 1 / 3."""
    config = live.Config(torso=(32,), magnet_strength=0.2)
    trainer = live.trainer("kuhn_poker", config)
    tree = openspiel.compile_game("kuhn_poker")
    state, _ = live.advance(trainer, live.init(trainer), 300)
    assert openspiel.nash_conv(tree, live.policy_of(trainer, state)) < 0.3


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"learner": "ppo"}, "learner must be one of"),
        ({"exploration": 2.0}, r"exploration must lie in \[0, 1\]"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number above 0"),
        ({"optimizer": "lbfgs"}, "optimizer must be one of"),
        ({"batch_episodes": 0}, "batch_episodes must be at least 1"),
        ({"slots": 0}, "slots must be at least 1"),
        ({"baseline": "mean"}, "baseline must be one of"),
        ({"critic_cost": -1.0}, "critic_cost must be a finite number of at least 0"),
        ({"common_mode": "kept"}, "common_mode must be one of"),
        ({"threshold": 0.0}, "threshold must be a finite number above 0"),
        ({"magnet_strength": -1.0}, "magnet strength must be"),
        ({"magnet_speed": 2.0}, "magnet speed must lie"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_wrong_settings(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        live.Config(**wrong)


def test_wrong_calls():
    with pytest.raises(ValueError, match="seat must be one of 0 to 1"):
        live.trainer("kuhn_poker", SMALL, seat=2)
    trainer = live.trainer("kuhn_poker", SMALL)
    with pytest.raises(ValueError, match="num_updates must be at least 1"):
        live.advance(trainer, live.init(trainer), 0)


def test_every_update_plays_episodes_of_its_own(monkeypatch):
    """Uniform play in tic-tac-toe: what two updates played has nothing in common but the game."""
    config = dataclasses.replace(SMALL, batch_episodes=64, slots=64, learning_rate=1e-30)
    seen = []
    play = states.play

    def watched(*args, **kwargs):
        seen.append(play(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr(states, "play", watched)
    trainer = live.trainer("tic_tac_toe", config)
    live.advance(trainer, live.init(trainer), 3)
    opening = [one.action[np.append(True, np.diff(one.episode) > 0)] for one in seen]
    assert {len(moves) for moves in opening} == {64}
    for one, other in itertools.combinations(opening, 2):
        # 64 pairs of independent moves among 9: 7.1 agree on average, and 5 sigma are 12.6 more.
        assert np.sum(one == other) < 20


@pytest.mark.parametrize("separate", [False, True])
def test_seats_learn_in_turn(separate):
    config = dataclasses.replace(SMALL, separate=separate, alternating=True)
    trainer = live.trainer("kuhn_poker", config)
    before = live.init(trainer)
    for turn in (0, 1, 0):
        after, _ = live.advance(trainer, before, 1)
        assert int(after.learner.updates) == int(before.learner.updates) + 1
        if turn == 1:
            # Kuhn poker's second player decides exactly once in every episode.
            assert int(after.decisions - before.decisions) == 16
        if separate:
            # All of a seat: Adam's momentum and the magnet would move it without a gradient too.
            for old, new in zip(jax.tree.leaves(before.learner), jax.tree.leaves(after.learner), strict=True):
                if old.ndim:
                    np.testing.assert_array_equal(old[1 - turn], new[1 - turn])
            old, new = (state.learner.parameters["actor"]["w"][turn] for state in (before, after))
            assert not np.array_equal(old, new)
        before = after


def test_one_seat_alone_has_no_turns():
    config = dataclasses.replace(SMALL, alternating=True)
    with pytest.raises(ValueError, match="in turn, but only seat 0 learns"):
        live.trainer("kuhn_poker", config, seat=0)


def test_an_optimizer_that_has_left_the_finite_numbers_is_told_of():
    config = dataclasses.replace(SMALL, optimizer="adam_without_momentum", critic_cost=1e30)
    trainer = live.trainer("kuhn_poker", config)
    state = live.init(trainer)
    with pytest.raises(checks.Diverged, match="the optimizer's state was not finite after update 1"):
        live.advance(trainer, state, 3)
    after, _ = live.update(trainer, state)
    assert checks.all_finite(after.learner.parameters)
