"""Updates from sums against the same updates decision by decision, through `learners.learner`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from pohp_neurd import (
    checks,
    directions,
    learners,
    neural,
    openspiel,
    optimizers,
    policy,
    self_play,
    shaping,
    tabular,
    tally_learners,
)
from pohp_neurd.finite import rollout

RULES = {
    "spg": directions.spg(),
    "neurd": directions.neurd(),
    "neurd_cix": directions.neurd_cix(0.3),
    "without a closed form": learners.Rule(directions.neurd_cix_direction, directions.constant(0.3)),
}


@pytest.mark.parametrize("name", RULES)
def test_a_summed_direction_is_the_sum_of_directions(name):
    rule = RULES[name]
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        legal = jnp.array([True, False, True, True])
        probabilities = policy.probabilities(jnp.asarray(rng.normal(size=4)), legal)
        actions = rng.choice([0, 2, 3], 50)
        gains = rng.normal(size=50)
        total = sum(
            rule.direction(
                probabilities,
                learners.Decision(None, legal, int(a), probabilities[a], float(g)),
                rule.exploration(0),
            )
            for a, g in zip(actions, gains, strict=True)
        )
        sums = jnp.asarray(np.bincount(actions, gains, minlength=4))
        summed = directions.summed_direction(rule, probabilities, sums, legal, rule.exploration(0))
        np.testing.assert_allclose(summed, total, atol=1e-12)


@functools.cache
def batch():
    """Kuhn poker, its seats, and 200 episodes under a random policy in float64: tally and decisions."""
    tree = openspiel.compile_game("kuhn_poker")
    seats = self_play.seats_of(tree, tree.features)
    logits = np.random.default_rng(1).normal(size=tree.legal.shape)
    board = rollout.board(tree)
    table = jax.vmap(policy.probabilities)(jnp.asarray(logits, jnp.float32), tree.legal)
    episodes = rollout.play(board, table, 200, key=jax.random.key(0))
    visits = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1), rollout.visits(board, episodes))
    kept = visits.valid
    return tree, seats, logits, [field[kept] for field in visits]


def tally_of(visits, shape):
    state, _, action, return_, _ = visits
    returns, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(returns, (state, action), return_.astype(np.float64))
    np.add.at(counts, (state, action), 1.0)
    return directions.Tally(jnp.asarray(returns), jnp.asarray(counts), jnp.asarray(200.0))


def decisions_of(tree, visits, table, values, agent_states):
    state, _, action, return_, _ = visits
    return learners.Decision(
        agent_state=agent_states[state],
        legal=jnp.asarray(tree.legal[state]),
        action=jnp.asarray(action),
        probability=jnp.asarray(table[state, action]),
        return_=jnp.asarray(return_, jnp.float64),
        baseline=jnp.asarray(values[state]),
        weight=1.0 / 200,
        target=jnp.asarray(return_, jnp.float64),
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("spg", {"common_mode": "paper"}),
        ("neurd_cix", {"common_mode": "dropped", "entropy_cost": 0.3}),
    ],
)
def test_a_network_learns_from_a_tally_as_from_its_decisions(rule, options):
    tree, seats, _, visits = batch()
    with jax.enable_x64(True):
        model = neural.network(tree.features.shape[1], tree.num_actions, torso=(8, 8), critic=True)
        optimizer = optax.adam(0.01)
        magnet = shaping.Magnet(0.2, 0.5)
        learner = tally_learners.network(
            model,
            RULES[rule],
            [optimizer],
            magnet=magnet,
            **options,
            dtype=jnp.float64,
        )
        features = jnp.asarray(tree.features, jnp.float64)
        one_by_one = learners.learner(model.apply, RULES[rule], optimizer, magnet=magnet, **options)
        state = learner.init(seats, key=jax.random.key(5))
        (parameters,) = state.parameters
        slow = one_by_one.init(parameters)
        learn, learn_slowly = jax.jit(learner.update), jax.jit(one_by_one.update)
        for update in range(2):
            out = learner.outputs(seats, state)
            table = np.asarray(jax.vmap(policy.probabilities)(out.logits, tree.legal))
            state, info = learn(seats, state, tally_of(visits, table.shape), jnp.asarray(update))
            decided = decisions_of(tree, visits, table, np.asarray(out.value), features)
            slow, slow_info = learn_slowly(slow, decided)
            for name in ("entropy", "mean_weight", "max_weight", "capped", "exploration"):
                np.testing.assert_allclose(getattr(info, name), getattr(slow_info, name), atol=1e-9)
            # The root mean square of mean directions is never above that of the directions.
            assert 0 < info.advantage_scale <= slow_info.advantage_scale
            for mine, theirs in zip(
                jax.tree.leaves((state.parameters[0], state.magnets[0])),
                jax.tree.leaves((slow.parameters, slow.magnet)),
                strict=True,
            ):
                np.testing.assert_allclose(mine, theirs, atol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["spg", "neurd", "neurd_cix"])
def test_a_table_learns_from_a_tally_as_from_its_decisions(rule):
    tree, seats, logits, visits = batch()
    with jax.enable_x64(True):
        learner = tally_learners.table(RULES[rule], step_size=0.7, baseline_rate=None, dtype=jnp.float64)
        state = learner.init(seats, key=jax.random.key(0))
        first = jnp.asarray(logits)
        state = state._replace(table=state.table._replace(logits=first))
        table = np.asarray(jax.vmap(policy.probabilities)(first, tree.legal))
        state, _ = learner.update(seats, state, tally_of(visits, table.shape), jnp.asarray(0))
        model = tabular.table(*table.shape, dtype=jnp.float64)
        one_by_one = learners.learner(model.apply, RULES[rule], optimizers.sgd(0.7))
        slow = one_by_one.init(tabular.Table(first, None))
        decided = decisions_of(tree, visits, table, np.zeros(len(table)), jnp.arange(len(table)))
        slow, _ = one_by_one.update(slow, decided)
        softmax = jax.vmap(policy.probabilities)
        np.testing.assert_allclose(
            softmax(state.table.logits, tree.legal), softmax(slow.parameters.logits, tree.legal), atol=1e-12
        )
        means = np.where(tree.legal, state.table.logits, 0.0).sum(axis=1)
        np.testing.assert_allclose(means, 0.0, atol=1e-12)  # centred


def test_the_tables_baseline_is_a_running_mean_of_returns():
    tree, seats, _, visits = batch()
    with jax.enable_x64(True):
        learner = tally_learners.table(RULES["spg"], step_size=0.0, baseline_rate=0.1, dtype=float)
        state = learner.init(seats, key=jax.random.key(0))
        values = np.zeros(len(tree.legal))
        for update in range(2):
            tally = tally_of(visits, tree.legal.shape)
            state, _ = learner.update(seats, state, tally, jnp.asarray(update))
            for row in range(len(values)):
                mine = visits[3][visits[0] == row].astype(np.float64)
                for _ in mine:  # each visit moves it by the rate, to the mean of this batch
                    values[row] += 0.1 * (mine.mean() - values[row])
            np.testing.assert_allclose(state.table.values, values, atol=1e-9)


def test_the_magnet_of_a_table_is_the_proximal_step_at_every_state():
    tree, seats, logits, visits = batch()
    with jax.enable_x64(True):
        magnet = shaping.Magnet(0.4, 0.25)
        learner = tally_learners.table(
            RULES["neurd"], step_size=3.0, magnet=magnet, baseline_rate=None, dtype=jnp.float64
        )
        reference = jax.vmap(policy.centred)(jnp.asarray(np.flip(logits)), jnp.asarray(tree.legal))
        state = learner.init(seats, key=jax.random.key(0))
        state = tally_learners.TableState(state.table._replace(logits=jnp.asarray(logits)), reference)
        tally = tally_of(visits, tree.legal.shape)
        plain = tally_learners.table(RULES["neurd"], step_size=1.0, baseline_rate=None, dtype=jnp.float64)
        moved = plain.update(seats, state, tally, jnp.asarray(0))[0].table.logits
        centre = jax.vmap(policy.centred)(jnp.asarray(logits), jnp.asarray(tree.legal))
        new, _ = learner.update(seats, state, tally, jnp.asarray(0))
        for row, share in enumerate(np.asarray(tally.visits).sum(axis=1) / 200):
            direction = moved[row] - centre[row]
            expected = shaping.pulled(centre[row] + 3.0 * direction, reference[row], 3.0 * 0.4 * share)
            np.testing.assert_allclose(new.table.logits[row], expected, atol=1e-12)
        np.testing.assert_allclose(new.magnet, 0.75 * reference + 0.25 * new.table.logits, atol=1e-12)


@pytest.mark.thorough
def test_networks_of_separate_seats_learn_from_their_own_decisions():
    tree, seats, _, visits = batch()
    with jax.enable_x64(True):
        model = neural.network(tree.features.shape[1], tree.num_actions, torso=(4,))
        learner = tally_learners.network(
            model,
            RULES["neurd"],
            [optax.sgd(0.1)] * 2,
            alternating=True,
        )
        state = learner.init(seats, key=jax.random.key(0))
        tally = tally_of(visits, tree.legal.shape)
        tally = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tally)
        learn = jax.jit(learner.update)
        for update in range(2):
            new, _ = learn(seats, state, tally, jnp.asarray(update))
            for seat in range(2):
                pairs = zip(
                    jax.tree.leaves(state.parameters[seat]),
                    jax.tree.leaves(new.parameters[seat]),
                    strict=True,
                )
                same = all(np.array_equal(a, b) for a, b in pairs)
                assert same == (seat != update)
            state = new


def test_a_threshold_holds_logits_in_a_table():
    """All that would push a centred logit further out is left out, whatever the returns say."""
    tree, seats, logits, visits = batch()
    with jax.enable_x64(True):
        learner = tally_learners.table(
            RULES["neurd"], step_size=5.0, threshold=0.1, baseline_rate=None, dtype=jnp.float64
        )
        state = learner.init(seats)
        legal = jnp.asarray(tree.legal)
        first = jax.vmap(policy.centred)(jnp.asarray(logits), legal)
        state = state._replace(table=state.table._replace(logits=first))
        after, _ = learner.update(seats, state, tally_of(visits, tree.legal.shape), jnp.asarray(0))
        moved = np.asarray(after.table.logits - first)
        outside = np.abs(first) >= 0.1
        assert outside.sum() > 10
        # With two actions, a push outwards of one is one of the other too: the row stays where it is.
        assert np.all(moved[outside] * np.sign(first)[outside] < 1e-12)
        assert np.any(np.abs(moved[outside]) > 0.1)


def test_an_entropy_cost_pulls_a_table_to_the_uniform_policy():
    tree, seats, logits, visits = batch()
    with jax.enable_x64(True):
        found = []
        for cost in (0.0, 0.5):
            learner = tally_learners.table(
                RULES["neurd"], step_size=1.0, entropy_cost=cost, baseline_rate=None, dtype=jnp.float64
            )
            state = learner.init(seats)
            first = jax.vmap(policy.centred)(jnp.asarray(logits), jnp.asarray(tree.legal))
            state = state._replace(table=state.table._replace(logits=first))
            tally = tally_of(visits, tree.legal.shape)
            found.append(learner.update(seats, state, tally, jnp.asarray(0))[0].table.logits)
        # The entropy's pull is that of a magnet at the uniform policy: minus the centred logits.
        share = np.asarray(tally.visits).sum(axis=1, keepdims=True) / 200
        np.testing.assert_allclose(found[1], found[0] - 0.5 * share * first, atol=1e-12)


def test_bad_input():
    _, seats, _, _ = batch()
    model = neural.network(3, 2, torso=(4,))
    with pytest.raises(ValueError, match="one optimizer, or one for each of 2 seats, but are 3"):
        tally_learners.network(model, RULES["spg"], [optax.sgd(0.1)] * 3).init(seats, key=jax.random.key(0))
    with pytest.raises(ValueError, match="average_over must be one of"):
        tally_learners.table(RULES["spg"], step_size=1.0, average_over="time")
    with pytest.raises(ValueError, match="step_size"):
        tally_learners.table(RULES["spg"], step_size=-1.0)


@pytest.mark.thorough
def test_an_infinite_second_moment_is_a_divergence():
    """A gradient of 1e30 leaves the parameters finite and Adam's second moment not."""
    tree, seats, _, visits = batch()
    model = neural.network(tree.features.shape[1], tree.num_actions, torso=(4,), critic=True)
    tally = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tally_of(visits, tree.legal.shape))
    for cost, fine in ((1.0, True), (1e30, False)):
        learner = tally_learners.network(
            model,
            RULES["neurd"],
            [optimizers.adam_without_momentum(0.01)],
            critic_cost=cost,
        )
        fresh = learner.init(seats, key=jax.random.key(0))
        state, _ = jax.jit(learner.update)(seats, fresh, tally, jnp.asarray(0))
        assert checks.all_finite(state.parameters)
        assert bool(checks.all_finite(state)) == fine
