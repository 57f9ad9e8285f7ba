"""The changing game: against a slow loop in numpy, closed forms, and the worlds it says it has."""

import changing_game
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pohp_neurd.games import matrix_game
from scipy import optimize

from pohp_neurd import exact

pytestmark = pytest.mark.thorough

PACE = changing_game.Pace(jump_every=20, batch_size=3, decay_start=10.0, magnet_speed=0.1, baseline_speed=0.2)
SETTINGS = changing_game.Setting(
    exploration=np.array([0.0, 0.1, 0.3, 1.0, 1.0, 0.2], np.float32),
    power=np.array([0.0, 0.0, 0.5, 0.0, 0.5, 0.0], np.float32),
    step_size=np.array([0.2, 0.5, 0.5, 1.0, 0.3, 0.5], np.float32),
    magnet_strength=np.array([0.0, 0.3, 0.0, 0.1, 0.5, 0.2], np.float32),
    baseline=np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0], np.float32),
)
SEEDS = np.array([3, 8])


def _softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def _direction(learner, return_, action, policy, exploration):
    """Equations 3 and 9 of Morrill et al. (2022), one decision."""
    taken = np.eye(3)[action]
    if learner == "spg":
        return return_ * (taken - policy)
    return return_ / min(1.0, policy[action] + exploration) * (taken - policy[action])


def _slow_run(world, setting, seed, learner, reading, pace):
    """NashConv or regret before every update, from loops over agents and games in float64."""
    logits, magnets, means = np.zeros((2, 3)), np.zeros((2, 3)), np.full(2, -0.5)
    gaps = []
    for count in range(len(world.payoffs) * pace.jump_every):
        phase = count // pace.jump_every
        game = np.asarray(world.payoffs[phase], np.float64)
        policies = [_softmax(row) for row in logits]
        if reading == "bandit":
            policies[1] = np.asarray(world.opponent[phase], np.float64)
            values = game @ policies[1]
            gaps.append(values.max() - policies[0] @ values)
        else:
            gaps.append((game @ policies[1]).max() + (-game.T @ policies[0]).max())
        keys = jax.random.split(
            jax.random.fold_in(jax.random.key(seed), jnp.int32(count)), (2, pace.batch_size)
        )
        uniforms = np.asarray(jax.vmap(jax.vmap(jax.random.uniform))(keys), np.float64)
        actions = [
            [int(np.searchsorted(np.cumsum(policies[agent]), u, side="right")) for u in uniforms[agent]]
            for agent in range(2)
        ]
        exploration = setting.exploration * (1 + count / pace.decay_start) ** -setting.power
        bound = np.abs(game).max()
        for agent in range(2):
            own = game if agent == 0 else -game.T
            scaled = (own - bound) / (2 * bound)
            returns = [scaled[a, b] for a, b in zip(actions[agent], actions[1 - agent], strict=True)]
            value = policies[agent] @ scaled @ policies[1 - agent]
            baseline = [0.0, means[agent], value][int(setting.baseline)]
            total = np.zeros(3)
            for action, return_ in zip(actions[agent], returns, strict=True):
                total += _direction(learner, return_ - baseline, action, policies[agent], exploration)
            pull = setting.step_size * setting.magnet_strength
            moved = logits[agent] + setting.step_size * total / pace.batch_size + pull * magnets[agent]
            logits[agent] = moved / (1 + pull)
            magnets[agent] += pace.magnet_speed * (logits[agent] - magnets[agent])
            means[agent] += pace.baseline_speed * (np.mean(returns) - means[agent])
    return np.array(gaps)


@pytest.mark.thorough
@pytest.mark.parametrize("reading", changing_game.READINGS)
@pytest.mark.parametrize("learner", changing_game.LEARNERS)
def test_runs_are_those_of_a_slow_loop(learner, reading):
    """Three phases of 20 updates, all settings and seeds, a point for every update."""
    world = changing_game.world("jumping", bias=4.0, cycles=1)
    gaps, _ = changing_game.play(world, SETTINGS, SEEDS, learner=learner, reading=reading, pace=PACE)
    assert gaps.shape == (len(SEEDS), 6, 60)
    for i, seed in enumerate(SEEDS):
        for j in range(6):
            one = changing_game.Setting(*[float(column[j]) for column in SETTINGS])
            expected = _slow_run(world, one, seed, learner, reading, PACE)
            np.testing.assert_allclose(gaps[i, j], expected, rtol=1e-3, atol=1e-3, err_msg=f"{seed} {one}")


@pytest.mark.parametrize("bias", [0.5, 2.0, 5.0])
def test_every_phase_has_the_equilibrium_of_a_linear_program(bias):
    world = changing_game.world("jumping", bias=bias, cycles=1)
    for phase, payoffs in enumerate(world.payoffs.astype(np.float64)):
        # max v subject to x^T M >= v, x a distribution.
        found = optimize.linprog(
            [0, 0, 0, -1],
            A_ub=np.c_[-payoffs.T, np.ones(3)],
            b_ub=np.zeros(3),
            A_eq=[[1, 1, 1, 0]],
            b_eq=[1],
            bounds=[(0, 1)] * 3 + [(None, None)],
        )
        equilibrium = matrix_game.rock_paper_scissors_equilibrium(payoffs)
        np.testing.assert_allclose(found.x[:3], equilibrium, atol=1e-9)
        np.testing.assert_allclose(found.x[3], 0.0, atol=1e-9)
        np.testing.assert_allclose(world.opponent[(phase + 1) % 3], equilibrium, rtol=1e-6)


def test_the_order_makes_the_old_equilibrium_as_bad_as_can_be():
    """With bias 5 the action that is played 5/7 of the time is the one that now loses 5."""
    world = changing_game.world("jumping", bias=5.0, cycles=2)
    assert world.payoffs.shape == (6, 3, 3)
    np.testing.assert_array_equal(world.payoffs[:3], world.payoffs[3:])
    for payoffs, opponent in zip(world.payoffs, world.opponent, strict=True):
        np.testing.assert_allclose(np.sort(payoffs @ opponent), [-4 / 7, -4 / 7, 24 / 7], rtol=1e-6)


def test_the_world_that_stands_still_stays_in_its_first_phase():
    jumping = changing_game.world("jumping", bias=5.0, cycles=2)
    still = changing_game.world("still", bias=5.0, cycles=2)
    for name in ("payoffs", "opponent"):
        first = getattr(jumping, name)[:1]
        np.testing.assert_array_equal(getattr(still, name), np.repeat(first, 6, axis=0))


@pytest.mark.parametrize("reading", changing_game.READINGS)
def test_the_jump_is_at_the_stated_update(reading):
    """Up to it the runs in both worlds are the same to the bit; at it all of them differ."""
    jumping, still = (
        changing_game.play(
            changing_game.world(kind, bias=4.0, cycles=1),
            SETTINGS,
            SEEDS,
            learner="neurd_cix",
            reading=reading,
            pace=PACE,
        )[0]
        for kind in changing_game.WORLDS
    )
    np.testing.assert_array_equal(jumping[:, :, :20], still[:, :, :20])
    assert np.all(np.abs(jumping[:, :, 20] - still[:, :, 20]) > 1e-3)


def _after_an_expected_update(policies, game, setting, learner):
    """Both agents' logits, centred; updates are linear in frequencies, so these give the expectation."""
    table = changing_game.table_learner(setting, learner, PACE)
    state = table.init(changing_game.SEATS)
    state = state._replace(table=state.table._replace(logits=jnp.log(policies)))
    agents = changing_game.Agents(state, jnp.zeros(2))
    frequencies = policies[0][:, None] * policies[1][None, :]
    tally, _ = changing_game.evidence(agents, policies, frequencies, jnp.asarray(game), setting.baseline)
    state, _ = table.update(changing_game.SEATS, state, tally, jnp.int32(0))
    logits = np.asarray(table.outputs(changing_game.SEATS, state).logits)
    return logits - logits.mean(axis=1, keepdims=True)


POLICIES = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]], np.float32)


def test_full_exploration_without_a_baseline_moves_logits_by_probability_times_value():
    """α π(a) q(a) in expectation, up to what is common to all actions."""
    game = changing_game.world("jumping", bias=5.0, cycles=1).payoffs[1]
    setting = changing_game.Setting(1.0, 0.0, 0.5, 0.0, 0)
    after = _after_an_expected_update(jnp.asarray(POLICIES), game, setting, "neurd_cix")
    for agent, own in enumerate((game, -game.T)):
        worth = (own - 5.0) / 10.0 @ POLICIES[1 - agent]
        expected = np.log(POLICIES[agent]) + 0.5 * POLICIES[agent] * worth
        np.testing.assert_allclose(after[agent], expected - expected.mean(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("learner", "exploration"), [("neurd_cix", 0.0), ("neurd_cix", 1.0), ("spg", 1.0)])
def test_with_the_exact_value_as_baseline_expected_updates_are_replicator_and_policy_gradient(
    learner, exploration
):
    """Exploration 0: α (q(a) − v). Exploration 1: α π(a) (q(a) − v), which is SPG's."""
    game = changing_game.world("jumping", bias=5.0, cycles=1).payoffs[0]
    setting = changing_game.Setting(exploration, 0.0, 0.5, 0.0, 2)
    worth = (game - 5.0) / 10.0 @ POLICIES[1]
    factor = POLICIES[0] if exploration else np.ones(3)
    expected = np.log(POLICIES[0]) + 0.5 * factor * (worth - POLICIES[0] @ worth)
    after = _after_an_expected_update(jnp.asarray(POLICIES), game, setting, learner)
    np.testing.assert_allclose(after[0], expected - expected.mean(), rtol=1e-5, atol=1e-6)


def test_judges_are_exact():
    rng = np.random.default_rng(0)
    for payoffs in changing_game.world("jumping", bias=3.0, cycles=1).payoffs:
        policies = rng.dirichlet(np.ones(3), size=2)
        tree = matrix_game.zero_sum(payoffs)
        arrays = jnp.asarray(policies, jnp.float32), jnp.asarray(payoffs)
        gap, _ = changing_game.judge(*arrays, "self_play")
        np.testing.assert_allclose(gap, exact.nash_conv(tree, policies), rtol=1e-5)
        values = payoffs @ policies[1]
        regret, _ = changing_game.judge(*arrays, "bandit")
        np.testing.assert_allclose(regret, values.max() - policies[0] @ values, rtol=1e-5)


@pytest.mark.parametrize(
    ("entry", "collapsed"), [((0, 2), (1, 1)), ((1, 0), (1, 0)), (None, (0, 0))], ids=["own", "other", "none"]
)
def test_collapse_is_an_entry_below_the_bound(entry, collapsed):
    """In the bandit only the learner's own policy counts."""
    policies = np.full((2, 3), 1 / 3)
    if entry is not None:
        policies[entry] = 0.0009
    game = jnp.asarray(matrix_game.ROCK_PAPER_SCISSORS, jnp.float32)
    found = [
        float(changing_game.judge(jnp.asarray(policies, jnp.float32), game, reading)[1])
        for reading in ("self_play", "bandit")
    ]
    assert found == list(collapsed)


def test_a_second_call_does_not_recompile(count_compilations):
    def call(kind, exploration, seeds):
        world = changing_game.world(kind, bias=4.0, cycles=1)
        settings = SETTINGS._replace(exploration=np.full(6, exploration, np.float32))
        return changing_game.play(world, settings, seeds, learner="neurd_cix", reading="self_play", pace=PACE)

    jax.block_until_ready(call("jumping", 0.5, SEEDS))
    with count_compilations() as seen:
        jax.block_until_ready(call("still", 0.1, SEEDS + 1))
    assert seen.count == 0


def test_an_unknown_world_is_refused():
    with pytest.raises(ValueError, match="world must be one of jumping, still, but is 'calm'"):
        changing_game.world("calm", bias=2.0, cycles=1)


@pytest.mark.parametrize(
    ("bias", "winner", "sentence"),
    [(-1.0, 0, "bias must be a finite number above 0, but is -1"), (2.0, 3, "winner must be one of 0 to 2")],
)
def test_a_bias_that_makes_no_game_is_refused(bias, winner, sentence):
    with pytest.raises(ValueError, match=sentence):
        matrix_game.biased_rock_paper_scissors(bias, winner)


def test_a_game_with_another_equilibrium_is_refused():
    for payoffs in (np.eye(3), -matrix_game.ROCK_PAPER_SCISSORS):
        with pytest.raises(ValueError, match="payoffs must be antisymmetric"):
            matrix_game.rock_paper_scissors_equilibrium(payoffs)
