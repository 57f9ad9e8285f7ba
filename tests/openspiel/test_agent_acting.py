"""How the agent acts: from its model, at its probabilities, with logits and inputs of any size."""

import math

import haiku as hk
import jax.numpy as jnp
import numpy as np
import openspiel_loops as loops
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python import rl_agent_policy

from pohp_neurd import neural, openspiel, tabular
from pohp_neurd import policy as policies
from pohp_neurd.openspiel.agent import acting


def haiku_function(features):
    hidden = jnp.tanh(hk.Linear(6)(features))
    return hk.Linear(2)(hidden), hk.Linear(1)(hidden)


NETWORKS = {
    "haiku": hk.transform(haiku_function),
    "haiku without keys": hk.without_apply_rng(hk.transform(haiku_function)),
    "logits only": hk.transform(lambda features: hk.Linear(2)(features)),
    "model": neural.network(11, 2, torso=(4,), critic=True),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", NETWORKS)
def test_any_network(name):
    env = loops.environment()
    agents = loops.agents_for(env, network=NETWORKS[name])
    loops.play(env, agents, 9)
    assert all(loops.updates(agent) == 2 for agent in agents)


def test_outputs():
    env = loops.environment("leduc_poker")
    first, second = loops.agents_for(env)
    time_step = env.reset()
    output = first.step(time_step)
    assert isinstance(output.action, int)
    assert (output.probs.dtype, output.probs.shape) == (np.float64, (3,))
    legal = time_step.observations["legal_actions"][0]
    assert output.probs.sum() == pytest.approx(1, abs=1e-15)
    assert np.flatnonzero(output.probs).tolist() == legal
    idle = second.step(time_step)
    assert idle.action is None
    assert (idle.probs.dtype, idle.probs.tolist()) == (np.float64, [0.0] * 3)
    assert first.loss is None
    assert (first.player_id, first.step_counter) == (0, 1)


@pytest.mark.parametrize("is_evaluation", [False, True])
def test_actions_have_their_probabilities(is_evaluation):
    env = loops.environment("matrix_brps")
    agent = loops.agent_for(env, 0, batch_size=10**6, seed=5).copy_with_noise(1.0)
    time_step = env.reset()
    expected = agent.step(time_step, is_evaluation=True).probs
    assert expected.max() > expected.min() + 0.05
    draws = 4000
    many = [time_step] * draws
    actions = [output.action for output in agent.step(many, is_evaluation)]
    counts = np.bincount(actions, minlength=3) / draws
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected * (1 - expected) / draws))


@pytest.mark.thorough
@pytest.mark.parametrize("keywords", [{"hidden_layers_sizes": [16, 8]}, {"network": "table"}])
def test_acting_agrees_with_the_learners_model(keywords):
    env = loops.environment("leduc_poker")
    agents = loops.agents_for(env, **keywords)
    loops.play(env, agents, 40)
    tree = openspiel.compile_game("leduc_poker")
    rows = tree.states_of(0)
    features, legal = tree.features[rows], tree.legal[rows]
    acted = agents[0].probabilities(features, legal)
    states, model = features, neural.network(30, 3, torso=(16, 8), critic=True)
    if "network" in keywords:
        met = agents[0].met(features)
        np.testing.assert_array_equal(acted[~met], legal[~met] / legal[~met].sum(axis=1, keepdims=True))
        names = [row.tobytes() for row in loops.snapshot(agents[0])["rows"]]
        states = np.array([names.index(row.tobytes()) for row in features[met]], np.int32)
        legal, acted = legal[met], acted[met]
        model = tabular.table(10_000, 3, critic=True)
    learnt = policies.table(model.apply, loops.parameters(agents[0]), states, legal)
    np.testing.assert_allclose(acted, learnt, atol=3e-7)


def test_the_probability_kept_is_the_one_acted_with():
    env = loops.environment("leduc_poker")
    agent = loops.agent_for(env, None, batch_size=100)
    time_step = env.reset()
    output = agent.step(time_step)
    assert loops.under_way(agent)["probability"].tolist() == [output.probs[output.action]]


@pytest.mark.parametrize("is_evaluation", [False, True])
def test_logits_that_are_not_finite_are_not_played(is_evaluation):
    env = loops.environment()
    agent = loops.with_parameters(
        loops.agent_for(env, None),
        lambda known: {**known, "actor": {**known["actor"], "b": jnp.array([math.nan, 0.0])}},
    )
    with pytest.raises(FloatingPointError, match=r"^the network's logits are not finite"):
        agent.step(env.reset(), is_evaluation)
    with pytest.raises(FloatingPointError, match=r"^the network's logits are not finite"):
        agent.probabilities(np.zeros((1, 11)), [[True, True]])


def test_inputs_are_shortened_and_what_is_short_is_left():
    env = loops.environment("universal_poker")
    agents = loops.agents_for(env)
    lengths = []

    def look(time_step):
        player = time_step.observations["current_player"]
        lengths.append(np.linalg.norm(time_step.observations["info_state"][player]))
        scale = loops.input_scale(agents[0])
        agents[0].step(time_step._replace(observations=time_step.observations), is_evaluation=True)
        assert loops.input_scale(agents[0]) == scale  # evaluation leaves no trace

    loops.episode(env, loops.acting(agents), look)
    assert max(lengths) > 1000
    assert max(map(loops.input_scale, agents)) == pytest.approx(max(lengths) / 3)
    for keywords, expected in (({}, 1.0), ({"input_scale": 5.0}, 5.0)):
        env = loops.environment()
        agent = loops.agent_for(env, None, **keywords)
        loops.play(env, [agent, agent], 20)
        assert loops.input_scale(agent) == expected


def test_what_a_model_takes():
    network = acting.Inputs(4, None, None)
    long = np.full(4, 30.0, np.float32)
    seen = network.read(long, 0, learns=True)
    np.testing.assert_array_equal(seen, long)
    assert np.linalg.norm(network.scaled(seen)) == pytest.approx(3, rel=1e-6)
    np.testing.assert_array_equal(network.many([long]), [network.scaled(seen)])
    table = acting.Inputs(2, 10, None)
    rows = [int(table.read(state, 0, learns=True)) for state in ([0.0, 1.0], [1.0, 0.0], [-0.0, 1.0])]
    assert rows == [0, 1, 0]
    assert table.many([[1.0, 0.0], [5.0, 5.0]]).tolist() == [1, -1]


def test_first_policies_are_uniform_in_every_game():
    for game in ("leduc_poker", "universal_poker"):
        env = loops.environment(game)
        output = loops.agent_for(env, 0).step(env.reset(), is_evaluation=True)
        legal = output.probs[output.probs > 0]
        np.testing.assert_allclose(legal, 1 / len(legal))


def test_greedy_evaluation_plays_the_most_probable_action():
    env = loops.environment("leduc_poker")
    plain, greedy = (loops.agent_for(env, 0, greedy=greedy).copy_with_noise(1.0) for greedy in (False, True))
    for _ in range(20):
        time_step = env.reset()
        policy = plain.step(time_step, is_evaluation=True).probs
        output = greedy.step(time_step, is_evaluation=True)
        assert output.action == policy.argmax()
        assert output.probs.tolist() == np.eye(3)[output.action].tolist()
    # In training it draws, and what it says of its policy elsewhere is the policy.
    drawn = {output.action for output in greedy.step([time_step] * 200)}
    assert len(drawn) > 1


def test_tables_have_the_stated_room():
    env = loops.environment()
    agent = loops.agent_for(env, None, network="table", max_states=3)
    with pytest.raises(ValueError, match=r"the table is full: there are more than max_states=3 information"):
        loops.play(env, [agent, agent], 50)


LOGITS = st.floats(-(2.0**100), 2.0**100, width=32) | st.floats(-20, 20, width=32)


@given(st.lists(st.tuples(LOGITS, st.booleans()), min_size=1, max_size=6))
def test_the_softmax_on_the_host_is_that_of_the_learner(pairs):
    """To float32's precision, with logits however large, masks of any kind, and one legal action."""
    logits, legal = (np.array(column) for column in zip(*pairs, strict=True))
    logits = logits.astype(np.float32)
    legal[0] |= not legal.any()
    expected = np.asarray(policies.probabilities(logits, legal))
    (row,) = acting.probabilities(logits[None], legal[None])
    np.testing.assert_allclose(row, expected, atol=1e-6)
    assert np.all(row[~legal] == 0)
    assert row.sum() == pytest.approx(1, abs=1e-15)
    action, probability, same = acting.choose(logits, np.flatnonzero(legal).tolist(), 0.7)
    np.testing.assert_array_equal(same, row)
    assert probability == row[action] > 0


def test_openspiels_joint_policy_of_agents():
    game = pyspiel.load_game("leduc_poker")
    env = loops.environment(game)
    agents = loops.agents_for(env)
    loops.play(env, agents, 5)
    stock = rl_agent_policy.JointRLAgentPolicy(game, dict(enumerate(agents)), use_observation=False)
    ours = openspiel.JointPolicy(game, agents)
    random = np.random.default_rng(0)
    for _ in range(50):
        state = game.new_initial_state()
        while not state.is_terminal():
            if not state.is_chance_node():
                stock.sample_action(state)  # raises where probabilities do not sum to 1
                mine, theirs = ours.action_probabilities(state), stock.action_probabilities(state)
                assert mine == pytest.approx(theirs, abs=1e-6)
            state.apply_action(int(random.choice(state.legal_actions())))
