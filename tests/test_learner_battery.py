"""One battery over all learners: from decisions and tallies, tables and networks, sampled and expected."""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import optax
import pytest
from decisions import batch

from pohp_neurd import (
    directions,
    estimators,
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


@pytest.fixture
def unchecked():
    """Without the shape checks of the tests, as users run the package."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


SCHEDULE = optax.exponential_decay(0.1, 10, 0.5)
BATTERY = {
    "spg": (directions.spg(), "sgd", 0.1, {}),
    "neurd": (directions.neurd(), "sgd", 0.1, {}),
    "neurd_cix": (directions.neurd_cix(0.1), "sgd", 0.1, {}),
    "theorem 1": (
        directions.neurd_cix(directions.theorem1_exploration(0.5, 4)),
        "adam_without_momentum",
        1e-3,
        {},
    ),
    "optax schedule": (directions.neurd_cix(optax.linear_schedule(1.0, 0.0, 9)), "sgd", SCHEDULE, {}),
    "threshold": (directions.neurd(), "sgd", 0.1, {"threshold": 2.0}),
    "entropy": (directions.neurd_cix(0.1), "adam", 1e-3, {"entropy_cost": 0.1}),
    "magnet": (directions.neurd_cix(0.1), "sgd", 0.1, {"magnet": shaping.Magnet(0.3)}),
    "all": (
        directions.neurd_cix(0.1),
        "adam_without_momentum",
        1e-3,
        {
            "magnet": shaping.Magnet(optax.constant_schedule(0.3), speed=0.01),
            "threshold": 3.0,
            "entropy_cost": 0.1,
        },
    ),
}


def steps(name, kind, dtype):
    """A learner of the battery: its first state, its update, and the arguments of update `number`."""
    rule, optimizer, step_size, options = BATTERY[name]
    transformation = optimizers.optimizer(optimizer, step_size)
    if kind.startswith("decisions"):
        network = kind.endswith("network")
        model = neural.network(3, 4, torso=(5, 4), critic=True) if network else tabular.table(3, 4)
        learner = learners.learner(model.apply, rule, transformation, common_mode="paper", **options)
        features = 3 if network else None
        first = learner.init(jax.jit(model.init)(key=jax.random.key(0)))
        evidence = functools.partial(batch, features=features, dtype=dtype)
        return first, learner.update, lambda state, number: (state, evidence(number))
    tree = openspiel.compile_game("kuhn_poker")
    arena = self_play.arena_of(tree, dtype, features=tree.features)
    if kind.startswith("tally network"):
        model = neural.network(tree.features.shape[1], 2, torso=(5, 4), critic=True)
        learner = tally_learners.network(model, rule, [transformation], dtype=dtype, **options)
    else:
        learner = tally_learners.table(rule, step_size=step_size, dtype=dtype, **options)
    expected = kind.endswith("expected")
    loop = self_play.loop(
        learner,
        num_episodes=8,
        update="expected" if expected else "sampled",
        average=self_play.Weights(1.0),
    )

    def update(arena, state, key):
        after = loop.advance(arena, state, np.int32(1), key)
        return after, after.info

    first = loop.init(arena, key=jax.random.key(0))
    return first, update, lambda state, number: (arena, state, jax.random.key(number))


def battery():
    """Every option from decisions and from tallies; in networks and in double precision two of them."""
    for name in BATTERY:
        for kind in ("decisions table", "tally table", "decisions network", "tally network"):
            for x64 in (False, True):
                few = name in ("spg", "all")
                quick = (kind.endswith("table") and not x64) or (kind.endswith("network") and few and not x64)
                marks = () if quick else pytest.mark.slow
                yield pytest.param(name, kind, x64, id=f"{kind}{64 if x64 else 32}-{name}", marks=marks)
    for name in ("neurd_cix", "all"):
        for kind in ("tally table, expected", "tally network, expected"):
            yield pytest.param(name, kind, False, id=f"{kind}-{name}")


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "kind", "x64"), list(battery()))
def test_battery(name, kind, x64):
    """Every learner: runs in both precisions, keeps dtypes, never recompiles, stays finite, has figures."""
    with jax.enable_x64(x64):
        dtype = jnp.float64 if x64 else jnp.float32
        state, update, arguments_of = steps(name, kind, dtype)
        traces = 0

        @jax.jit
        def compiled(*arguments):
            nonlocal traces
            traces += 1
            return update(*arguments)

        for number in range(3):
            arguments = arguments_of(state, number)
            before = jax.tree.map(lambda x: (x.shape, x.dtype), state)
            state, info = compiled(*arguments)
            assert before == jax.tree.map(lambda x: (x.shape, x.dtype), state)
            assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(info))
            for leaf in jax.tree.leaves((state, info)):
                assert np.all(np.isfinite(leaf))
            assert 0 < float(info.entropy) < 1.4
            assert 1 <= float(info.mean_weight) <= float(info.max_weight) * (1 + 1e-6)
            assert 0 <= float(info.capped) <= 1 + 1e-6
            assert float(info.advantage_scale) > 0
        assert traces == 1
        assert int(state.updates) == 3


def test_no_other_public_piece_recompiles():
    traces = []

    def counted(name, function):
        def inner(*arguments):
            traces.append(name)
            return function(*arguments)

        return jax.jit(inner)

    legal = jnp.ones(3, bool)
    scalar = functools.partial(jnp.asarray, dtype=jnp.float32)
    pieces = {
        "probabilities": (policy.probabilities, (jnp.zeros(3), legal)),
        "entropy": (policy.entropy, (jnp.zeros(3), legal)),
        "sample": (lambda p, key: policy.sample(p, key=key), (jnp.ones(3) / 3, jax.random.key(0))),
        "action_values": (
            estimators.action_values,
            (scalar(-1), jnp.asarray(0), jnp.ones(3) / 3, scalar(0.1)),
        ),
        "advantages": (estimators.advantages, (scalar(-1), jnp.asarray(0), jnp.ones(3) / 3, scalar(0.1))),
        "threshold": (shaping.thresholded, (jnp.ones(3), jnp.zeros(3), legal, scalar(2))),
        "magnet_pull": (shaping.magnet_pull, (jnp.ones(3), jnp.zeros(3), legal)),
    }
    for name, (function, arguments) in pieces.items():
        piece = counted(name, function)
        for factor in (1, 2):  # other values of the same shapes
            changed = [x * factor if x.dtype == jnp.float32 else x for x in arguments]
            piece(*changed)
    assert traces == list(pieces)


extreme = st.one_of(st.floats(-1e4, 1e4, width=32), st.sampled_from([-1e4, 0.0, 1e4]))


@pytest.mark.thorough
@pytest.mark.parametrize("x64", [False, True], ids=["float32", "float64"])
@hypothesis.settings(max_examples=40)
@hypothesis.given(
    logits=st.lists(extreme, min_size=12, max_size=12),
    legal=st.lists(st.booleans(), min_size=12, max_size=12),
    probability=st.sampled_from([1e-12, 1e-3, 0.5, 1 - 2**-24, 1.0]),
    exploration=st.sampled_from([0.0, 1e-6, 0.3, 1.0]),
    return_=st.floats(-100, 0, width=32),
    baseline=st.floats(-100, 0, width=32),
)
def test_extremes_stay_finite(x64, logits, legal, probability, exploration, return_, baseline):
    with jax.enable_x64(x64):
        legal = np.reshape(legal, (3, 4))
        legal[:, 1], legal[2] = True, [False, True, False, False]  # the last with one legal action
        dtype = jnp.float64 if x64 else jnp.float32
        table = tabular.Table(jnp.asarray(np.reshape(logits, (3, 4)), dtype), None)
        decisions = learners.Decision(
            jnp.arange(3),
            jnp.asarray(legal),
            jnp.ones(3, jnp.int32),
            jnp.full(3, probability, dtype),
            jnp.full(3, return_, dtype),
            jnp.full(3, baseline, dtype),
        )
        for update, init in _extreme_updates(x64):
            state, info = update(init(table), decisions, jnp.asarray(exploration, dtype))
            moves = np.asarray(state.parameters.logits - table.logits)
            assert np.all(np.isfinite(moves))
            np.testing.assert_array_equal(moves[~legal], 0.0)
            assert np.all(np.isfinite(jax.tree.leaves(info)))


@functools.cache
def _extreme_updates(x64):
    model = tabular.table(3, 4)

    def build(direction):
        def update(state, decisions, exploration):
            rule = learners.Rule(direction, lambda count: exploration)
            options = {"threshold": 2.0, "magnet": shaping.Magnet(0.1, 0.1), "common_mode": "dropped"}
            return learners.learner(model.apply, rule, optimizers.sgd(1.0), **options).update(
                state, decisions
            )

        rule = learners.Rule(direction, directions.constant(0.0))
        options = {"magnet": shaping.Magnet(0.1, 0.1)}
        return jax.jit(update), learners.learner(model.apply, rule, optimizers.sgd(1.0), **options).init

    return [build(d) for d in (directions.spg_direction, directions.neurd_cix_direction)]


# Bad input.

MODEL = tabular.table(3, 4)


def make(**options):
    return learners.learner(MODEL.apply, directions.neurd(), optimizers.sgd(0.1), **options)


def updated(**changes):
    learner = make()
    return learner.update(learner.init(MODEL.init()), batch()._replace(**changes))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: directions.neurd_cix(1.1), "exploration must lie in [0, 1], but is 1.1."),
        (lambda: directions.constant(-0.1), "exploration must lie in [0, 1], but is -0.1."),
        (lambda: learners.rule("neurd_cix", 2.0), "exploration must lie in [0, 1], but is 2."),
        (
            lambda: learners.rule("reinforce", 0.1),
            "learner must be one of spg, neurd, neurd_cix, but is 'reinforce'.",
        ),
        (lambda: directions.theorem1_exploration(0.0, 3), "xi must be a finite number above 0, but is 0."),
        (lambda: directions.theorem1_exploration(1.0, 0), "num_actions must be at least 1, but is 0."),
        (lambda: optimizers.sgd(-0.1), "step_size must be a finite number of at least 0, but is -0.1."),
        (
            lambda: optimizers.adam_without_momentum(-1.0),
            "learning_rate must be a finite number of at least 0, but is -1.",
        ),
        (
            lambda: shaping.Magnet(-1.0),
            "magnet strength must be a finite number of at least 0, but is -1.",
        ),
        (lambda: shaping.Magnet(1.0, speed=2.0), "magnet speed must lie in [0, 1], but is 2."),
        (
            lambda: tally_learners.table(directions.neurd(), step_size=-1.0),
            "step_size must be a finite number of at least 0, but is -1.",
        ),
        (lambda: make(common_mode="no"), "common_mode must be one of paper, dropped, but is 'no'."),
        (lambda: make(threshold=0.0), "threshold must be a finite number above 0, but is 0."),
        (lambda: make(critic_cost=-1.0), "critic_cost must be a finite number of at least 0, but is -1."),
        (lambda: updated(action=jnp.zeros(2, jnp.int32)), "action must have the shape (6), but has (2,)."),
        (lambda: updated(legal=jnp.ones(4, bool)), "legal must have the shape (any, any), but has (4,)."),
        (lambda: updated(return_=jnp.zeros(())), "return_ must have the shape (6), but has ()."),
        (lambda: updated(baseline=jnp.zeros(7)), "baseline must have the shape (6), but has (7,)."),
        (lambda: updated(weight=jnp.zeros((6, 1))), "weight must have the shape (6), but has (6, 1)."),
        (
            lambda: updated(legal=jnp.ones((6, 5), bool)),
            "legal must have the shape (4), but has (5,).",
        ),
    ],
)
def test_bad_input_gets_one_sentence(unchecked, call, sentence):
    with pytest.raises(ValueError, match=r".*") as error:
        call()
    assert str(error.value) == sentence
