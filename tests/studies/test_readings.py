"""Readings of the paper: each does what its words say; the recorded rows and README."""

import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import readings

from pohp_neurd.experiment import configs, grid
from pohp_neurd.online import by_rows, lifetimes
from pohp_neurd.results import table

RECORDED = pathlib.Path(readings.__file__).parent


def lived(reading, steps, rate=0.001):
    agent = reading.agent(jnp.float32(rate))
    key = jax.random.key(0)
    life = lifetimes.begin(reading.world, agent, reading.see, key=key)
    return lifetimes.live(reading.world, agent, reading.see, life, steps, key=key)[0], agent


def count(life):
    """Updates of the optimizer so far."""
    body = life.agent.body
    return int(body.updates)


@pytest.mark.thorough
def test_rollouts_learn_once_in_32_steps():
    life, _ = lived(readings.READINGS["rollouts"], 32 * 3 + 1)
    assert count(life) == 3
    documented, _ = lived(readings.Reading("as documented"), 32 * 3 + 1)
    assert count(documented) == 32 * 2 + 1


@pytest.mark.thorough
def test_an_actor_of_one_step_differs_by_its_return_alone(monkeypatch):
    # At λ = 0 the critic's target is the one-step one, too, and so both are the documented agent.
    monkeypatch.setattr(readings, "SPG", dataclasses.replace(readings.SPG, lambda_=0.0))
    found, one_step = lived(readings.READINGS["one_step_actor"], 80)
    wanted, agent = lived(readings.Reading("at λ = 0", options=readings.SPG), 80)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        one_step.parameters(found.agent),
        agent.parameters(wanted.agent),
    )
    assert count(found) == count(wanted) == 80 - 32


@pytest.mark.thorough
def test_the_actor_does_not_move_the_critics_torso():
    reading = readings.READINGS["critic_torso"]
    life, agent = lived(reading, 1)
    features = reading.see(life.history)
    apply = readings.critic_model(reading.world).apply

    def logits(parameters):
        return jnp.sum(apply(parameters, features).logits[:1])

    gradients = jax.grad(logits)(agent.parameters(life.agent))
    assert set(gradients) == {"torso_0", "torso_1", "actor", "critic"}
    for name, part in gradients.items():
        moved = any(float(jnp.max(jnp.abs(leaf))) > 0 for leaf in jax.tree.leaves(part))
        assert moved == (name == "actor"), name


@pytest.mark.thorough
def test_discounting_all_that_follows():
    """γ = 0.9 at every step: the window has continuations of 0.9, and nothing else differs in it."""
    life, _ = lived(readings.READINGS["discounted"], 5)
    np.testing.assert_allclose(life.agent.window.continuation[-4:], 0.9, rtol=1e-6)
    documented, _ = lived(readings.Reading("as documented"), 5)
    np.testing.assert_array_equal(documented.agent.window.continuation[-4:], 1.0)
    np.testing.assert_array_equal(life.agent.window.action, documented.agent.window.action)


@pytest.mark.thorough
def test_heads_that_begin_at_zero():
    life, agent = lived(readings.READINGS["zero_heads"], 1)
    parameters = agent.parameters(life.agent)
    for name in ("actor", "critic"):
        assert not any(np.any(np.asarray(leaf)) for leaf in jax.tree.leaves(parameters[name]))
    assert np.any(np.asarray(parameters["torso_1"]["w"]))
    np.testing.assert_allclose(life.agent.window.probability[-1], 1 / 3, rtol=1e-6)


@pytest.mark.thorough
def test_recomputed_values_are_those_of_the_network_now():
    """At a learning rate of 0 nothing changes: the agent is the documented one; at 0.01 it is not."""
    for rate, same in ((0.0, True), (0.01, False)):
        found, agent = lived(readings.READINGS["recomputed"], 80, rate)
        wanted, documented = lived(readings.Reading("as documented"), 80, rate)
        assert count(found) == count(wanted) == 80 - 32
        left, right = agent.parameters(found.agent), documented.parameters(wanted.agent)
        close = jax.tree.map(lambda a, b: np.allclose(a, b, rtol=1e-4, atol=1e-5), left, right)
        assert all(jax.tree.leaves(close)) == same
        # Moments at a rate of 0 are of the same gradients, so that the targets were the same.
        if same:
            np.testing.assert_allclose(
                found.agent.body.moments, wanted.agent.body.moments, rtol=1e-3, atol=1e-8
            )


@pytest.mark.thorough
def test_two_networks_share_nothing():
    reading = readings.READINGS["two_networks"]
    life, agent = lived(reading, 40)
    parameters = agent.parameters(life.agent)
    left, right = (jax.tree.leaves(parameters[name]) for name in ("actor", "critic"))
    assert not any(np.array_equal(a, b) for a, b in zip(left, right, strict=True) if np.any(a))
    spec = reading.world.spec
    actor, critic = (
        by_rows.join(body.moments, spec.observation_size, spec.num_actions, 256) for body in life.agent.body
    )
    # The actor's network has no gradient at its value, the critic's none at its logits.
    assert not np.any(np.asarray(actor["critic"]["w"]))
    assert not np.any(np.asarray(critic["actor"]["w"]))
    for moments, head in ((actor, "actor"), (critic, "critic")):
        assert np.any(np.asarray(moments["torso_0"]["w"]))
        assert np.any(np.asarray(moments[head]["w"]))


def test_a_ball_that_lands_ends_the_return():
    world = readings.READINGS["landing_cuts"].world
    history = world.initial(key=jax.random.key(0))
    for step in range(9):
        assert world.continuation(history) == 1, step
        history = world.apply(history, 1, key=jax.random.key(step))
    assert world.continuation(history) == 0


@pytest.mark.thorough
def test_a_study_goes_on_where_it_stopped(tmp_path):
    first = readings.run(tmp_path, ["landing_cuts"], [0.001], [0], steps=200)
    rows = readings.run(tmp_path, ["landing_cuts"], [0.001], [0, 1], steps=200)
    assert len(rows) == 2
    assert rows[0] == first[0]
    assert table.read(tmp_path / "rows.csv") == rows
    assert (tmp_path / "readings.png").stat().st_size > 10_000


def test_the_readme_says_what_the_rows_say():
    rows = table.read(RECORDED / "rows.csv")
    assert {row["reading"] for row in rows} <= set(readings.READINGS)
    assert readings.best_rates(rows) in (RECORDED / "README.md").read_text(encoding="utf-8")


def test_the_grid_of_rollouts_is_of_their_readings_and_of_fresh_seeds():
    settings = grid.settings(grid.read(RECORDED / "rollouts.json"))
    of_readings = {row["seed"] for row in table.read(RECORDED / "rows.csv")}
    names = {"catch": "rollouts_cut", "cart_pole": "rollouts_cart_pole"}
    for setting in settings:
        flags = dict(setting.flags)
        assert flags.pop("seed") not in of_readings
        for swept in ("exploration", "learning_rate"):
            flags.pop(swept, None)
        config = configs.SingleAgent(**flags)
        reading = readings.READINGS[names[config.environment]]
        assert config.world() == reading.world
        as_read = dataclasses.replace(config.options(), learner="spg", common_mode="paper")
        assert as_read == reading.options
    recorded = {row["id"] for row in table.read(RECORDED / "rollouts_results.csv")}
    assert recorded == {setting.id for setting in settings}
