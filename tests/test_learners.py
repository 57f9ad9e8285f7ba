"""The learner from decisions, its schedules and its optimizers, over tables and networks."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import oracles
import pytest
from decisions import batch

from pohp_neurd import directions, learners, neural, optimizers, policy, shaping, tabular

EXPLORATIONS = (0.0, 0.05, 0.3, 0.5, 0.9, 1.0)
PI = np.array([0.1, 0.55, 0.35, 0.0])
LEGAL = np.array([True, True, True, False])
RETURNS = np.array([-0.2, -2.5, -1.0, 0.0])


# Tabular NeuRD-CIX is Hedge on CIX estimates.


@pytest.mark.parametrize(
    ("exploration", "common_mode"),
    [
        (0.1, "paper"),
        (1.0, "dropped"),
        *[
            pytest.param(*given, marks=pytest.mark.slow)
            for given in ((0.0, "paper"), (1.0, "paper"), (0.0, "dropped"), (0.1, "dropped"))
        ],
    ],
)
def test_tabular_neurd_cix_is_hedge(exploration, common_mode):
    rng = np.random.default_rng(7)
    num_states, num_actions, step_size = 3, 4, 0.15
    legal = np.array([[True] * 4, [True, False, True, True], [False, True, True, False]])
    with jax.enable_x64(True):
        model = tabular.table(num_states, num_actions)
        learner = learners.learner(
            model.apply, directions.neurd_cix(exploration), optimizers.sgd(step_size), common_mode=common_mode
        )
        update, state = jax.jit(learner.update), learner.init(model.init())
        cumulative = np.zeros((num_states, num_actions))
        for _ in range(60):
            hedge = [oracles.softmax(step_size * cumulative[s], legal[s]) for s in range(num_states)]
            for s in range(num_states):
                mine = policy.probabilities(state.parameters.logits[s], jnp.asarray(legal[s]))
                np.testing.assert_allclose(mine, hedge[s], rtol=1e-10)
            actions = [rng.choice(num_actions, p=pi) for pi in hedge]
            returns = -rng.random(num_states)
            decisions = learners.Decision(
                jnp.arange(num_states),
                jnp.asarray(legal),
                jnp.asarray(actions),
                jnp.asarray([pi[a] for pi, a in zip(hedge, actions, strict=True)]),
                jnp.asarray(returns),
            )
            state, _ = update(state, decisions)
            for s, action in enumerate(actions):
                beta = min(1.0, hedge[s][action] + exploration)
                cumulative[s, action] += returns[s] / beta


# The learner: gradient of the pseudo-loss, masks, critic.


def test_pseudo_loss_gradient_is_the_direction():
    with jax.enable_x64(True):
        logits, direction = jnp.array([0.2, -1.0]), jnp.array([3.0, -4.0])
        np.testing.assert_array_equal(jax.grad(learners.pseudo_loss)(logits, direction), -direction)
        np.testing.assert_array_equal(jax.grad(learners.pseudo_loss, 1)(logits, direction), [0, 0])


def by_hand(model, parameters, decisions, exploration):
    """Σ_i weight_i Σ_a direction_i(a) ∇f(s_i, a), one decision at a time, and the critic's part."""

    def gradient(one):
        pi = policy.probabilities(model.apply(parameters, one.agent_state).logits, one.legal)
        direction = directions.neurd_cix_direction(pi, one, exploration)

        def objective(p):
            output = model.apply(p, one.agent_state)
            critic = 0.0 if output.value is None else -0.5 * (one.target - output.value) ** 2
            return one.weight * (jnp.sum(direction * output.logits) + critic)

        return jax.grad(objective)(parameters)

    return jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), jax.vmap(gradient)(decisions))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["table", "network"])
@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 6])
def test_update_follows_the_direction_and_the_critic(kind, size):
    with jax.enable_x64(True):
        if kind == "table":
            model, features = tabular.table(3, 4, critic=True), None
        else:
            model, features = neural.network(3, 4, torso=(5, 4), critic=True), 3
        decisions = batch(size=size, features=features, dtype=jnp.float64)
        learner = learners.learner(
            model.apply, directions.neurd_cix(0.2), optimizers.sgd(0.5), common_mode="paper"
        )
        parameters = jax.jit(model.init)(key=jax.random.key(1))
        after, _ = jax.jit(learner.update)(learner.init(parameters), decisions)
        expected = jax.jit(lambda p, d: by_hand(model, p, d, 0.2))(parameters, decisions)
        jax.tree.map(
            lambda new, old, step: np.testing.assert_allclose(new, old + 0.5 * step, atol=1e-13),
            after.parameters,
            parameters,
            expected,
        )
        assert int(after.updates) == 1


def test_critic_descends_half_its_squared_error():
    model = tabular.table(2, 2, critic=True)
    learner = learners.learner(model.apply, directions.spg(), optimizers.sgd(0.25), critic_cost=2.0)
    start = model.init()._replace(values=jnp.array([-1.0, 0.0]))
    decision = learners.Decision(
        jnp.array([0]), jnp.ones((1, 2), bool), jnp.array([0]), jnp.array([0.5]), jnp.array([0.0]),
        target=jnp.array([-3.0]),
    )  # fmt: skip
    after, _ = jax.jit(learner.update)(learner.init(start), decision)
    np.testing.assert_array_equal(after.parameters.values, [-1.0 + 0.25 * 2.0 * (-3.0 - -1.0), 0.0])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rule", "size", "common_mode"),
    [
        (directions.spg(), 5, "paper"),
        (directions.neurd_cix(0.1), 5, "dropped"),
        *[
            pytest.param(rule, size, common_mode, marks=pytest.mark.slow)
            for rule in (directions.spg(), directions.neurd(), directions.neurd_cix(0.1))
            for size, common_mode in ((1, "paper"), (5, "dropped"))
            if (rule.exploration(0), size) != (0.1, 5)  # among the quick ones
        ],
    ],
)
def test_illegal_logits_never_move(rule, size, common_mode):
    options = {"common_mode": common_mode, "threshold": 2.0, "magnet": shaping.Magnet(0.3, 0.1)}
    legal = jnp.tile(jnp.array([True, False, True, False]), (size, 1))

    table = tabular.table(3, 4)
    start = table.init()._replace(logits=jax.random.normal(jax.random.key(0), (3, 4)))
    learner = learners.learner(table.apply, rule, optimizers.adam_without_momentum(0.1), **options)
    decisions = batch(size=size)._replace(legal=legal, action=jnp.zeros(size, jnp.int32))
    state = learner.init(start)._replace(magnet=table.init())
    after, _ = jax.jit(learner.update)(state, decisions)
    np.testing.assert_array_equal(after.parameters.logits[:, [1, 3]], start.logits[:, [1, 3]])
    assert np.any(np.asarray(after.parameters.logits != start.logits))

    network = neural.network(3, 4, torso=(4,))
    start = jax.jit(network.init)(key=jax.random.key(0))
    learner = learners.learner(network.apply, rule, optimizers.adam_without_momentum(0.1), **options)
    decisions = decisions._replace(agent_state=jnp.ones((size, 3)))
    after, _ = jax.jit(learner.update)(learner.init(start), decisions)
    for name, axis in (("w", 1), ("b", 0)):
        before, later = (np.take(x["actor"][name], [1, 3], axis) for x in (start, after.parameters))
        np.testing.assert_array_equal(before, later)


@pytest.mark.thorough
def test_padding_changes_nothing_and_stays_finite():
    model = tabular.table(3, 4, critic=True)
    for rule in (directions.spg(), directions.neurd()):  # a probability of 0 weighs most without exploration
        learner = learners.learner(model.apply, rule, optimizers.sgd(0.1), magnet=shaping.Magnet(0.1, 0.1))
        decisions = batch(size=5)
        padding = jax.tree.map(lambda x: jnp.zeros((3, *x.shape[1:]), x.dtype), decisions)
        # A critic says something at padding too.
        padding = padding._replace(baseline=jnp.full(3, -50.0))
        padded = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), decisions, padding)
        one = jax.jit(learner.update)(learner.init(model.init()), decisions)
        other = jax.jit(learner.update)(learner.init(model.init()), padded)
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7), one, other)


# Common mode, threshold, magnet.


@pytest.mark.thorough
def test_dropping_the_common_mode_centres_the_direction_and_keeps_the_policy():
    model, decisions = tabular.table(3, 4), batch()
    tables = {}
    for mode in ("paper", "dropped"):
        learner = learners.learner(
            model.apply, directions.neurd_cix(0.1), optimizers.sgd(0.1), common_mode=mode
        )
        state = learner.init(model.init())
        one = jax.tree.map(lambda x: x[:1], decisions)
        tables[mode] = jax.jit(learner.update)(state, one)[0].parameters.logits[one.agent_state[0]]
    legal = decisions.legal[0]
    np.testing.assert_allclose(tables["dropped"], policy.centred(tables["paper"], legal), atol=1e-7)
    np.testing.assert_allclose(
        policy.probabilities(tables["dropped"], legal),
        policy.probabilities(tables["paper"], legal),
        rtol=1e-6,
    )


def test_state_can_be_donated():
    # Parameters and magnet start out equal, and must not be one buffer.
    model = tabular.table(3, 4)
    learner = learners.learner(
        model.apply, directions.neurd_cix(0.1), optimizers.sgd(0.5), magnet=shaping.Magnet(0.2, speed=0.25)
    )
    state, _ = jax.jit(learner.update, donate_argnums=0)(learner.init(model.init()), batch())
    assert np.all(np.isfinite(state.parameters.logits))


# Schedules and optimizers.


def test_theorem1_schedule():
    schedule = directions.theorem1_exploration(0.7, 5)
    for t in (1, 2, 10, 1000):
        np.testing.assert_allclose(schedule(t - 1), min(1.0, 0.7 / np.sqrt(5 * t)), rtol=1e-6)
        np.testing.assert_allclose(schedule(jnp.asarray(t - 1)), min(1.0, 0.7 / np.sqrt(5 * t)), rtol=1e-6)
    assert float(directions.theorem1_exploration(10.0, 2)(0)) == 1


def test_schedules_are_read_at_the_number_of_updates():
    model, decisions = tabular.table(3, 4), batch()
    schedules = {
        "theorem 1": directions.theorem1_exploration(0.5, 4),
        "optax": optax.linear_schedule(1.0, 0.0, 4),
        "constant": directions.constant(0.25),
    }
    for schedule in schedules.values():
        learner = learners.learner(model.apply, directions.neurd_cix(schedule), optimizers.sgd(0.1))
        state, update = learner.init(model.init()), jax.jit(learner.update)
        for count in range(3):
            state, info = update(state, decisions)
            np.testing.assert_allclose(info.exploration, schedule(count), rtol=1e-6)


def test_adam_without_momentum_is_adam():
    start = {"w": jnp.array([1.0, -2.0, 3.0])}
    one, other = optimizers.adam_without_momentum(0.01), optax.adam(0.01, b1=0.0, b2=0.999, eps=1e-8)
    states, parameters = [one.init(start), other.init(start)], [start, start]
    for step in range(5):
        gradient = {"w": jax.random.normal(jax.random.key(step), (3,)) * jnp.array([1e-6, 1.0, 1e3])}
        for i, optimizer in enumerate((one, other)):
            with jax.numpy_dtype_promotion("standard"):  # optax multiplies counts with reals
                moves, states[i] = jax.jit(optimizer.update)(gradient, states[i], parameters[i])
            parameters[i] = optax.apply_updates(parameters[i], moves)
        np.testing.assert_allclose(parameters[0]["w"], parameters[1]["w"], rtol=1e-6)
    memory = [sum(leaf.size for leaf in jax.tree.leaves(state)) for state in states]
    assert memory[0] < memory[1]


def test_rules_by_name():
    assert learners.rule("spg", 0.3).direction is directions.spg_direction
    assert learners.rule("spg", 0.3).exploration(0) == 1
    assert learners.rule("neurd", 0.3).exploration(0) == 0
    assert learners.rule("neurd_cix", 0.3).exploration(5) == 0.3
    assert learners.rule("neurd_cix", lambda count: 0.5 * count).exploration(1) == 0.5


# Diagnostics.


def test_info_matches_numpy():
    model, decisions = tabular.table(3, 4), batch(size=8)
    start = model.init()._replace(logits=jax.random.normal(jax.random.key(0), (3, 4)))
    exploration = 0.3
    rule = directions.neurd_cix(exploration)
    learner = learners.learner(model.apply, rule, optimizers.sgd(0.1), common_mode="paper")
    _, info = jax.jit(learner.update)(learner.init(start), decisions)
    counted = np.asarray(decisions.weight) > 0
    assert counted.sum() == 7
    p, legal = np.asarray(decisions.probability), np.asarray(decisions.legal)
    entropies, squares, entries = [], 0.0, 0
    for i in np.flatnonzero(counted):
        pi = oracles.softmax(np.asarray(start.logits)[decisions.agent_state[i]], legal[i])
        entropies.append(-sum(x * np.log(x) for x in pi if x > 0))
        scale = float(decisions.return_[i] - decisions.baseline[i]) / min(1, p[i] + exploration)
        row = scale * ((np.arange(4) == int(decisions.action[i])) - p[i])
        squares += np.sum(row[legal[i]] ** 2)
        entries += legal[i].sum()
    weights = 1 / np.minimum(1, p + exploration)[counted]
    np.testing.assert_allclose(info.entropy, np.mean(entropies), rtol=1e-5)
    np.testing.assert_allclose(info.mean_weight, weights.mean(), rtol=1e-5)
    np.testing.assert_allclose(info.max_weight, weights.max(), rtol=1e-5)
    np.testing.assert_allclose(info.capped, np.mean(p[counted] + exploration >= 1), rtol=1e-6)
    np.testing.assert_allclose(info.advantage_scale, np.sqrt(squares / entries), rtol=1e-5)
    np.testing.assert_allclose(info.exploration, exploration, rtol=1e-6)
