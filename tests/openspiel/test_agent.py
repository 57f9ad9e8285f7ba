"""The agent in every way that an environment can step it: same experience, same parameters."""

import copy
import math
import pickle

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest
from open_spiel.python import rl_agent_policy, rl_environment, vector_env

from pohp_neurd import neural, openspiel
from pohp_neurd import policy as policies

SMALL = {"hidden_layers_sizes": [8], "batch_size": 4}
LEARNERS = ("neurd_cix", "neurd", "spg")
NO_TURN = """
  EFG 2 R "The second player may have no turn" { "One" "Two" } ""
  p "ROOT" 1 1 "ROOT" { "L" "R" } 0
    t "L" 1 "Outcome L" { 1.0 -1.0 }
    p "SECOND" 2 1 "SECOND" { "l" "r" } 0
      t "RL" 2 "Outcome RL" { -1.0 1.0 }
      t "RR" 3 "Outcome RR" { 2.0 -2.0 }
"""


def environment(game="kuhn_poker", seed=3, **keywords):
    env = rl_environment.Environment(game, **keywords)
    env.seed(seed)
    return env


def agent_for(env, player=0, **keywords):
    sizes = env.observation_spec()["info_state"][0], env.action_spec()["num_actions"]
    return openspiel.NeuRDCIX(
        player, *sizes, **{**SMALL, "seed": 7 if player is None else player, **keywords}
    )


def agents_for(env, **keywords):
    return [agent_for(env, player, **keywords) for player in range(env.num_players)]


def play(env, agents, episodes=1, *, everyone=False):
    """An ordinary loop; returns the environment's returns of every episode."""
    returns = []
    for _ in range(episodes):
        time_step = env.reset()
        total = np.zeros(env.num_players)
        while not time_step.last():
            current = time_step.observations["current_player"]
            if time_step.is_simultaneous_move():
                actions = [agent.step(time_step).action for agent in agents]
            elif everyone:
                actions = [[agent.step(time_step) for agent in agents][current].action]
            else:
                actions = [agents[current].step(time_step).action]
            time_step = env.step(actions)
            total += time_step.rewards
        for agent in agents:
            agent.step(time_step)
        returns.append(total)
    return returns


def same_bits(left, right):
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def snapshot(agent):
    return agent._snapshot()


def without_steps(agent):
    """What must not depend on how often the agent was shown time steps at which it had nothing to do."""
    taken = snapshot(agent)
    taken["experience"]["counters"] = taken["experience"]["counters"][1:]
    return taken


@pytest.mark.thorough
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
def test_openspiels_own_test_of_policy_gradient_agents(learner, game):
    env = environment(game, 24984617)
    agents = agents_for(
        env,
        learner=learner,
        hidden_layers_sizes=[32, 32],
        entropy_cost=0.001,
        critic_learning_rate=0.01,
        pi_learning_rate=0.01,
        batch_size=1,
        seed=24984617,
    )
    play(env, agents, 2)
    play(env, agents, 2, everyone=True)
    assert [agent.episode_counter for agent in agents] == [4, 4]
    assert all(np.isfinite(agent.loss) for agent in agents)


@pytest.mark.thorough
def test_openspiels_own_test_on_hanabi():
    settings = {
        "players": 3,
        "max_life_tokens": 1,
        "colors": 2,
        "ranks": 3,
        "hand_size": 2,
        "max_information_tokens": 3,
        "discount": 0.99,
    }
    env = environment("hanabi", 24984617, **settings)
    agents = agents_for(env, hidden_layers_sizes=[8, 8], batch_size=1, seed=24984617)
    play(env, agents, 2, everyone=True)
    assert all(agent.loss is not None for agent in agents)


@pytest.mark.thorough
@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "tiny_hanabi"])
@pytest.mark.parametrize("network", ["mlp", "table"])
def test_only_the_actor_or_everyone_makes_no_difference(game, network):
    results = []
    for everyone in (False, True):
        env = environment(game)
        agents = agents_for(env, network=network)
        play(env, agents, 10, everyone=everyone)
        results.append([without_steps(agent) for agent in agents])
    same_bits(*results)
    assert int(results[0][0]["learner"].updates) == 2


@pytest.mark.thorough
def test_a_player_without_a_turn_learns_nothing_from_that_episode():
    env = environment(pyspiel.load_efg_game(NO_TURN))
    for everyone in (False, True):
        first, second = agents_for(env, batch_size=1000)
        play(env, [first, second], 40, everyone=everyone)
        assert first.episode_counter == second.episode_counter == 40
        assert len(first._experience.batch) == 40
        turns = sum(choice.action == 1 for choice in first._experience.batch)
        assert 0 < len(second._experience.batch) == turns < 40
        assert {choice.return_ for choice in second._experience.batch} <= {1.0, -2.0}
    second = agents_for(env, batch_size=1)[1]
    before = snapshot(second)["learner"]
    left = env.reset()
    assert second.step(left).action is None
    second.step(env.step([0]))  # the game is over before the second player's turn
    same_bits(snapshot(second)["learner"], before)


def test_simultaneous_moves():
    env = environment("goofspiel", players=2, num_cards=4, points_order="descending", imp_info=True)
    agents = agents_for(env)
    returns = play(env, agents, 6)
    for player, agent in enumerate(agents):
        assert (agent.episode_counter, int(snapshot(agent)["learner"].updates)) == (6, 1)
        # The last card is forced, and OpenSpiel plays it without asking.
        batch = agent._experience.batch
        assert [choice.return_ for choice in batch] == [g[player] for g in returns[4:] for _ in range(3)]


def repeated_game():
    """Biased rock-paper-scissors three times over: rewards on the way, players in turn."""
    repeated = "repeated_game(stage_game=matrix_brps(),num_repetitions=3)"
    return pyspiel.load_game(f"turn_based_simultaneous_game(game={repeated})")


def returns_to_go(env, agents, **style):
    """First returns that the agents work with, beside the environment's."""
    truth = play(env, agents, 5, **style)
    for player, agent in enumerate(agents):
        batch = agent._experience.batch
        assert len(batch) == 15
        for episode, total in enumerate(truth):
            assert batch[3 * episode].return_ == pytest.approx(total[player])


@pytest.mark.thorough
def test_intermediate_rewards_when_everyone_is_stepped():
    env = environment(repeated_game())
    assert sum(abs(total).sum() for total in play(env, agents_for(env), 5, everyone=True)) > 0
    returns_to_go(env, agents_for(env, batch_size=100), everyone=True)


def test_intermediate_rewards_with_the_full_state():
    env = environment(repeated_game(), include_full_state=True)
    returns_to_go(env, agents_for(env, batch_size=100), everyone=False)
    returns_to_go(env, agents_for(env, batch_size=100), everyone=True)


def test_intermediate_rewards_with_one_agent_for_all_seats():
    env = environment(repeated_game())
    shared = agent_for(env, None, batch_size=100)
    truth = play(env, [shared, shared], 5)
    firsts = [shared._experience.batch[index].return_ for index in range(0, 30, 3)]
    np.testing.assert_allclose(firsts, np.ravel(truth), atol=1e-6)


def test_rewards_that_cannot_be_seen_are_said_to_be_lost():
    env = environment(repeated_game())
    with pytest.warns(UserWarning, match="step every agent at every time step, or build the environment"):
        play(env, agents_for(env, batch_size=100), 5)


def test_an_episode_whose_end_was_not_shown_is_forgotten():
    env = environment()
    agent = agent_for(env)
    agent.step(env.reset())
    with pytest.warns(UserWarning, match="step the agent with the last time step of every episode"):
        agent.step(env.reset())
    assert sum(len(choices) for choices in agent._experience._open[0].values()) == 1


def test_discounts_count_for_what_comes_after():
    env = environment(pyspiel.load_game("catch(rows=4,columns=3)"), discount=0.5)
    agent = agent_for(env, batch_size=100)
    (total,) = play(env, [agent])
    returns = [choice.return_ for choice in agent._experience.batch]
    np.testing.assert_allclose(returns, total[0] * 0.5 ** np.arange(len(returns))[::-1])


def test_evaluation_leaves_no_trace():
    env = environment("leduc_poker")
    agents = agents_for(env, network="table")
    play(env, agents, 5)
    time_step = env.reset()
    while not time_step.last():
        for agent in agents:
            before = snapshot(agent)
            for _ in range(3):
                agent.step(time_step, is_evaluation=True)
                agent.step([time_step, time_step], is_evaluation=True)
            same_bits(snapshot(agent), before)
        time_step = env.step([agents[time_step.observations["current_player"]].step(time_step).action])
    before = snapshot(agents[0])
    assert agents[0].step(time_step, is_evaluation=True).action is None
    same_bits(snapshot(agents[0]), before)
    # And the next training step is the same with and without evaluations in between.
    twins = []
    for evaluations in (0, 5):
        env = environment()
        agent = agent_for(env, None)
        for _ in range(9):
            time_step = env.reset()
            while not time_step.last():
                for _ in range(evaluations):
                    agent.step(time_step, is_evaluation=True)
                time_step = env.step([agent.step(time_step).action])
            agent.step(time_step)
        twins.append(snapshot(agent))
    same_bits(*twins)


@pytest.mark.thorough
def test_observations_instead_of_information_states():
    env = environment(observation_type=rl_environment.ObservationType.OBSERVATION)
    agents = agents_for(env)
    play(env, agents, 9)
    joint = openspiel.JointPolicy(env.game, agents, use_observation=True)
    state = env.game.new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    seen = agents[0].probabilities([state.observation_tensor(0)], [[1, 1]])[0]
    assert joint.action_probabilities(state) == dict(enumerate(seen.tolist()))


def test_a_vector_of_one_environment_is_that_environment():
    plain, vector = environment(), vector_env.SyncVectorEnv([environment()])
    one, other = agent_for(plain, None), agent_for(plain, None)
    play(plain, [one, one], 9)
    time_steps = vector.reset()
    while other.episode_counter < 9:
        # An environment that is over ignores the action and starts again.
        time_steps = vector.step(other.step(time_steps))[0]
    same_bits(snapshot(one), snapshot(other))


def test_vectors_of_environments_that_restart_by_themselves():
    vector = vector_env.SyncVectorEnv([environment(seed=seed) for seed in range(5)])
    agent = agent_for(vector.envs[0], None, batch_size=1000)
    time_steps, truth = vector.reset(), []
    for _ in range(40):
        outputs = agent.step(time_steps)
        assert len(outputs) == 5
        time_steps, reward, done, _ = vector.step(outputs, reset_if_done=True)
        truth += [abs(rewards[0]) for rewards, over in zip(reward, done, strict=True) if over]
        agent.post_step(reward, done)
    assert agent.episode_counter == len(truth)
    assert sorted({abs(choice.return_) for choice in agent._experience.batch}) == [1.0, 2.0]
    # Every player has a turn in Kuhn poker.
    assert len(agent._experience.batch) >= 2 * len(truth)
    time_steps = vector.reset()
    with pytest.warns(UserWarning, match="last time step of every episode"):
        agent.step(time_steps)  # some were in the middle of a game


def test_two_agents_in_a_vector_of_environments():
    vector = vector_env.SyncVectorEnv([environment(seed=seed) for seed in range(3)])
    agents = agents_for(vector.envs[0])
    time_steps = vector.reset()
    for _ in range(60):
        outputs = [agent.step(time_steps) for agent in agents]
        turns = [max(0, time_step.observations["current_player"]) for time_step in time_steps]
        time_steps = vector.step([outputs[turn][index] for index, turn in enumerate(turns)])[0]
    assert all(agent.loss is not None for agent in agents)


def test_one_object_for_all_seats_and_its_seats_agree():
    results = []
    for style in ("object", "object, everyone", "seats", "seats, everyone"):
        env = environment()
        shared = agent_for(env, None)
        agents = [shared, shared] if style.startswith("object") else shared.seats(2)
        play(env, agents, 9, everyone=style.endswith("everyone"))
        assert shared.episode_counter == 9
        results.append(snapshot(shared))
    for other in results[1:]:
        same_bits(results[0], other)


def test_seats_of_one_agent_in_simultaneous_moves():
    env = environment("matrix_brps")
    shared = agent_for(env, None, batch_size=100)
    truth = play(env, shared.seats(2), 5)
    assert [choice.return_ for choice in shared._experience.batch] == np.ravel(truth).tolist()
    with pytest.raises(ValueError, match=r"step what `agent.seats\(num_players\)` gives"):
        shared.step(env.reset())


def test_outputs():
    env = environment("leduc_poker")
    first, second = agents_for(env)
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
    env = environment("matrix_brps")
    agent = agent_for(env, 0, batch_size=10**6, seed=5).copy_with_noise(1.0)
    time_step = env.reset()
    expected = agent.step(time_step, is_evaluation=True).probs
    assert expected.max() > expected.min() + 0.05
    draws = 4000
    many = [time_step] * draws
    actions = [output.action for output in agent.step(many, is_evaluation)]
    counts = np.bincount(actions, minlength=3) / draws
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected * (1 - expected) / draws))


def test_a_step_of_a_table_by_hand():
    env = environment("matrix_brps")
    agents = agents_for(
        env,
        network="table",
        batch_size=1,
        pi_learning_rate=0.5,
        critic_learning_rate=0.25,
        exploration=0.1,
        magnet_strength=0.0,
        common_mode="paper",
        return_centre=0.0,
        return_scale=1.0,
    )
    (total,) = play(env, agents)
    # π = 1/3 everywhere and V = 0, so that the direction is G / (1/3 + 0.1) (1{a = A} − 1/3).
    for agent, reward in zip(agents, total, strict=True):
        table = snapshot(agent)["learner"].parameters
        scale = 0.5 * reward / (1 / 3 + 0.1)
        moved = np.sort(table.logits[0])
        expected = np.sort(scale * np.array([2 / 3, -1 / 3, -1 / 3]))
        np.testing.assert_allclose(moved, expected, atol=1e-6)
        assert float(table.values[0]) == pytest.approx(0.25 * reward)


def test_returns_are_scaled_by_the_largest_magnitude_seen():
    env = environment()
    agent = agent_for(env, None, batch_size=100, return_centre=0.0)
    play(env, [agent, agent], 60)
    batch = agent._experience.batch
    decisions = agent._decisions(batch)[0]
    shown = decisions.target[: len(batch)]
    np.testing.assert_allclose(shown, [choice.return_ / 2 for choice in batch], atol=1e-6)
    # The critic speaks in scaled returns; what is kept of it is in the game's own.
    play(env, [agent, agent], 40)
    time_step = env.reset()
    agent.step(time_step)
    seat = time_step.observations["current_player"]
    (choice,) = agent._experience._open[0][seat]
    features = np.asarray(time_step.observations["info_state"][seat], np.float32)
    said = agent._program.host.model.apply(agent._state.parameters, features).value
    assert choice.value == pytest.approx(2 * float(said), abs=1e-6)


@pytest.mark.parametrize("given", [None, 2.0])
def test_without_a_baseline_no_return_is_positive(given):
    env = environment()
    agent = agent_for(env, None, baseline="none", max_return=given, batch_size=100)
    play(env, [agent, agent], 60)
    batch = agent._experience.batch
    decisions = agent._decisions(batch)[0]
    assert decisions.return_.max() == 0.0
    assert np.all(decisions.baseline == 0)
    np.testing.assert_allclose(
        decisions.return_[: len(batch)], [choice.return_ / 2 - 1 for choice in batch], atol=1e-6
    )
    play(env, [agent, agent], 40)
    assert int(snapshot(agent)["learner"].updates) == 1


def test_a_return_above_the_stated_maximum():
    env = environment()
    agent = agent_for(env, None, max_return=0.5, batch_size=1)
    with pytest.raises(ValueError, match=r"^max_return is 0.5, but there was a return of"):
        play(env, [agent, agent], 5)


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
    env = environment()
    agents = agents_for(env, network=NETWORKS[name])
    play(env, agents, 9)
    assert all(int(snapshot(agent)["learner"].updates) == 2 for agent in agents)


@pytest.mark.thorough
@pytest.mark.parametrize("keywords", [{"hidden_layers_sizes": [16, 8]}, {"network": "table"}])
def test_acting_agrees_with_the_learners_model(keywords):
    env = environment("leduc_poker")
    agents = agents_for(env, **keywords)
    play(env, agents, 40)
    tree = openspiel.compile_game("leduc_poker")
    rows = tree.states_of(0)
    features, legal = tree.features[rows], tree.legal[rows]
    acted = agents[0].probabilities(features, legal)
    states = features
    if "network" in keywords:
        met = [agents[0]._rows.get(row.tobytes()) for row in features]
        known = [index for index, row in enumerate(met) if row is not None]
        states, legal = np.array([met[index] for index in known], np.int32), legal[known]
        np.testing.assert_allclose(acted[[row is None for row in met]].max(axis=1) <= 0.5, True)
        acted = acted[known]
    learnt = policies.table(agents[0]._program.host.model.apply, agents[0]._state.parameters, states, legal)
    np.testing.assert_allclose(acted, learnt, atol=3e-7)


def test_the_probability_kept_is_the_one_acted_with():
    env = environment("leduc_poker")
    agent = agent_for(env, None, batch_size=100)
    time_step = env.reset()
    output = agent.step(time_step)
    (choice,) = agent._experience._open[0][time_step.observations["current_player"]]
    assert choice.probability == pytest.approx(output.probs[output.action], abs=1e-15)


@pytest.mark.thorough
def test_nothing_is_compiled_again(count_compilations):
    env = environment("leduc_poker")
    agents = agents_for(env, hidden_layers_sizes=[9])
    play(env, agents, 9)
    with count_compilations() as seen:
        play(env, agents, 40)  # episodes of 1 to 4 choices
        play(env, agents_for(env, hidden_layers_sizes=[9]), 9)  # other agents of the same settings
    assert seen.count == 0
    assert int(snapshot(agents[0])["learner"].updates) == 12


def test_batches_grow_with_long_episodes():
    env = environment("catch(rows=10,columns=5)")
    agent = agent_for(env, 0, batch_size=1)
    assert agent._capacity == 4
    play(env, [agent], 3)
    assert agent._capacity == 16
    assert np.isfinite(agent.loss)


def test_tables_have_the_stated_room():
    env = environment()
    agent = agent_for(env, None, network="table", max_states=3)
    with pytest.raises(ValueError, match=r"the table is full: there are more than max_states=3 information"):
        play(env, [agent, agent], 50)
    met = agent_for(env, None, network="table")
    time_step = env.reset()
    met.step(time_step)
    negative = np.array(time_step.observations["info_state"][0]) * -1.0 * -1.0
    negative[negative == 0] = -0.0
    assert int(met._agent_state(negative.astype(np.float32), False)) == 0


def test_openspiels_joint_policy_of_agents():
    game = pyspiel.load_game("leduc_poker")
    env = environment(game)
    agents = agents_for(env)
    play(env, agents, 5)
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


@pytest.mark.parametrize(
    ("keywords", "error", "sentence"),
    [
        ({"batchsize": 3}, TypeError, r"^NeuRDCIX has no keyword 'batchsize': did you mean batch_size\?$"),
        ({"zzz": 3}, TypeError, "^NeuRDCIX has no keyword 'zzz': it has player_id, info_state_size"),
        (
            {"state_representation_size": 11},
            TypeError,
            r"^NeuRDCIX has no keyword 'state_representation_size': did you mean info_state_size\?$",
        ),
        ({"name": "me"}, TypeError, "^NeuRDCIX has no keyword 'name': agents are told apart by player_id.$"),
        ({"info_state_size": None}, TypeError, "^NeuRDCIX needs info_state_size: NeuRDCIX"),
        (
            {"info_state_size": [11, 0]},
            ValueError,
            "^info_state_size must be a whole number of at least 1, but",
        ),
        (
            {"hidden_layers_sizes": ["x"]},
            ValueError,
            "^every one of hidden_layers_sizes must be a whole number",
        ),
        ({"batch_size": True}, ValueError, "^batch_size must be a whole number of at least 1, but is True.$"),
        ({"seed": -1}, ValueError, "^seed must be a whole number of at least 0, but is -1.$"),
        ({"seed": 2**128}, ValueError, r"^seed must be below 2\*\*128, but is 3402"),
        ({"input_scale": 0.0}, ValueError, "^input_scale must be a finite number above 0, but is 0.$"),
        ({"learner": "ppo"}, ValueError, "^learner must be one of spg, neurd, neurd_cix, but is 'ppo'.$"),
        ({"exploration": 1.5}, ValueError, r"^exploration must lie in \[0, 1\], but is 1.5.$"),
        ({"batch_size": 0}, ValueError, "^batch_size must be a whole number of at least 1, but is 0.$"),
        (
            {"pi_learning_rate": -1.0},
            ValueError,
            "^pi_learning_rate must be a finite number above 0, but is -1.$",
        ),
        ({"optimizer": "lion"}, ValueError, "^optimizer must be one of sgd, adam, but is 'lion'.$"),
        ({"baseline": "q"}, ValueError, "^baseline must be one of value, none, but is 'q'.$"),
        ({"magnet_speed": 2.0}, ValueError, r"^magnet speed must lie in \[0, 1\], but is 2.$"),
        ({"max_return": math.inf}, ValueError, "^max_return must be a finite number, but is inf.$"),
        ({"network": "cnn"}, ValueError, "^network must be 'mlp', 'table', a policy.Model or a transformed"),
        (
            {"network": NETWORKS["model"], "num_actions": 3},
            ValueError,
            "^the network must give 3 logits for one",
        ),
        (
            {"network": NETWORKS["logits only"], "baseline": "value"},
            ValueError,
            "^baseline 'value' needs a network",
        ),
        ({"player_id": -1}, ValueError, "^player_id must be at least 0, or None for all seats, but is -1.$"),
        (
            {"info_state_size": 0},
            ValueError,
            "^info_state_size must be a whole number of at least 1, but is 0",
        ),
    ],
)
def test_bad_settings(keywords, error, sentence):
    with pytest.raises(error, match=sentence):
        openspiel.NeuRDCIX(**{"player_id": 0, "info_state_size": 11, "num_actions": 2, **keywords})


def test_bad_observations():
    env = environment()
    time_step = env.reset()

    def shown(info_state=None, legal=None):
        observations = dict(time_step.observations)
        if info_state is not None:
            observations["info_state"] = [info_state, info_state]
        if legal is not None:
            observations["legal_actions"] = [legal, legal]
        return time_step._replace(observations=observations)

    agent = agent_for(env)
    for is_evaluation in (False, True):
        with pytest.raises(
            ValueError, match=r"^the information state has 5 numbers, but info_state_size is 11.$"
        ):
            agent.step(shown(info_state=[0.0] * 5), is_evaluation)
        with pytest.raises(
            ValueError, match=r"^the information state of player 0 holds a NaN or an infinity.$"
        ):
            agent.step(shown(info_state=[math.nan] * 11), is_evaluation)
        with pytest.raises(ValueError, match=r"^it is the turn of player 0, but there is no legal action.$"):
            agent.step(shown(legal=[]), is_evaluation)
        with pytest.raises(ValueError, match=r"^action 2 is legal, but num_actions is 2.$"):
            agent.step(shown(legal=[0, 2]), is_evaluation)
    assert agent.step(time_step).action in (0, 1)


def only_its_turns(env, agent, player, episodes):
    """Steps `agent` at its turns only, and never at the end; all others play their first legal action."""
    for _ in range(episodes):
        time_step = env.reset()
        while not time_step.last():
            current = time_step.observations["current_player"]
            action = time_step.observations["legal_actions"][current][0]
            time_step = env.step([agent.step(time_step).action if current == player else action])


def test_a_second_mover_who_is_never_shown_an_end_is_told():
    env = environment()
    agent = agent_for(env, 1)
    only_its_turns(env, agent, 1, 127)
    sentence = r"has made 128 choices, at 3 information .* last time step of every episode\.$"
    with pytest.warns(UserWarning, match=sentence):
        only_its_turns(env, agent, 1, 1)
    only_its_turns(env, agent, 1, 200)  # said once
    assert agent.episode_counter == 0


def test_long_episodes_are_no_reason_to_worry():
    """A second mover in a game of more than 128 own turns, and a first mover whose observations repeat."""
    env = environment("go")
    agent = agent_for(env, 1, batch_size=1000)
    time_step, random = env.reset(), np.random.default_rng(0)
    while agent.step_counter < 260:
        current = time_step.observations["current_player"]
        if current == 1:
            agent.step(time_step)
        time_step = env.step([int(random.choice(time_step.observations["legal_actions"][current]))])
    env = environment("pathfinding", horizon=2000)
    (alone,) = agents_for(env, batch_size=1000)
    time_step = env.reset()
    while not time_step.last() and alone.step_counter < 600:
        alone.step(time_step)
        time_step = env.step([4])  # stays where it is


def test_divergence_is_told_and_the_agent_stays_as_it_was(tmp_path):
    env = environment()
    agent = agent_for(env, None, optimizer="sgd", pi_learning_rate=1e38, batch_size=2)
    sentence = (
        r"^learning diverged: .* after update \d+, which is not made; try a smaller pi_learning_rate \(it is "
        r"1e\+38\), a smaller critic_learning_rate \(it is 0\.03\) or a max_global_gradient_norm\.$"
    )
    with pytest.raises(FloatingPointError, match=sentence):
        play(env, [agent, agent], 20)
    assert all(np.isfinite(weights).all() for weights in agent.get_weights())
    assert np.isfinite(agent.loss)
    agent.save(tmp_path)
    twin = agent_for(env, None, optimizer="sgd", pi_learning_rate=1e38, batch_size=2, seed=1)
    twin.restore(tmp_path)
    same_bits(snapshot(twin), snapshot(agent))


def test_adams_sums_are_watched_too():
    """A gradient of 1e20 is finite, and so is Adam's step, but its square is not: the weight would freeze."""
    env = environment()
    agent = agent_for(env, None, batch_size=1, return_scale=1e-25)
    with pytest.raises(FloatingPointError, match="optimizer's sums are not finite after update 1"):
        play(env, [agent, agent])


@pytest.mark.parametrize("is_evaluation", [False, True])
def test_logits_that_are_not_finite_are_not_played(is_evaluation):
    env = environment()
    agent = agent_for(env, None)
    state = agent._state
    biases = {**state.parameters["actor"], "b": jnp.array([math.nan, 0.0])}
    agent._adopt(state._replace(parameters={**state.parameters, "actor": biases}))
    with pytest.raises(FloatingPointError, match=r"^the network's logits are not finite"):
        agent.step(env.reset(), is_evaluation)
    with pytest.raises(FloatingPointError, match=r"^the network's logits are not finite"):
        agent.probabilities(np.zeros((1, 11)), [[True, True]])


def test_rewards_that_are_not_finite_are_told():
    env = environment()
    agent = agent_for(env, None, batch_size=1)
    time_step = env.reset()
    while not time_step.last():
        time_step = env.step([agent.step(time_step).action])
    with pytest.raises(ValueError, match=r"^a return is not a finite number"):
        agent.step(time_step._replace(rewards=[math.nan, 0.0]))


def test_the_step_does_not_grow_with_the_length_of_episodes():
    """A batch and the same batch with every choice ten times over make the same update."""
    env, moved = environment(), []
    for times in (1, 10):
        agent = agent_for(env, None, batch_size=10**6, optimizer="sgd")
        play(env, [agent, agent], 6)
        batch = agent._experience.batch
        agent._experience.batch = batch * times
        before = agent.get_weights()
        agent.learn()
        moved.append([now - was for now, was in zip(agent.get_weights(), before, strict=True)])
        env = environment()
    for one, other in zip(*moved, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert max(np.abs(leaf).max() for leaf in moved[0]) > 1e-3
    decisions, _ = agent._decisions(batch)
    np.testing.assert_allclose(decisions.weight[: len(batch)], 1 / len(batch), rtol=1e-6)


def test_entropy_pulls_to_the_uniform_policy():
    """By hand, in a table: cost · (−ln π, centred), times the step size; here alone, as returns are 0."""
    env = environment("matrix_rps")
    time_step = env.reset()
    start = np.array([1.0, 0.0, -2.0], np.float32)
    for cost in (0.0, 0.1):
        agent = agent_for(env, network="table", batch_size=1, entropy_cost=cost, magnet_strength=0.0)
        agent.step(time_step, is_evaluation=False)
        state = agent._state
        logits = state.parameters.logits.at[0].set(start)
        agent._adopt(state._replace(parameters=state.parameters._replace(logits=logits)))
        agent.step(env.step([0, 0])._replace(rewards=[0.0, 0.0]))
        env.reset()
        policy = np.exp(start) / np.exp(start).sum()
        pull = -np.log(policy)
        expected = start + cost * (pull - pull.mean())
        np.testing.assert_allclose(agent._state.parameters.logits[0], expected, atol=1e-6)


@pytest.mark.parametrize(("policy_rate", "critic_rate"), [(0.5, 0.25), (0.1, 0.25), (0.5, 0.05)])
def test_the_critics_step_size_is_its_own(policy_rate, critic_rate):
    """Under SGD, V moves by critic_learning_rate · (G − V) whatever the policy's step size is."""
    env = environment("matrix_rps")
    time_step = env.reset()
    rates = {"pi_learning_rate": policy_rate, "critic_learning_rate": critic_rate}
    agent = agent_for(env, network="table", batch_size=1, return_centre=0.0, return_scale=1.0, **rates)
    agent.step(time_step)
    agent.step(env.step([0, 0])._replace(rewards=[0.8, -0.8]))
    assert float(agent._state.parameters.values[0]) == pytest.approx(critic_rate * 0.8)


def test_inputs_are_shortened_and_what_is_short_is_left():
    env = environment("universal_poker")
    agents = agents_for(env)
    time_step = env.reset()
    longest = 0.0
    while not time_step.last():
        player = time_step.observations["current_player"]
        longest = max(longest, np.linalg.norm(time_step.observations["info_state"][player]))
        scale = agents[0]._input_scale
        agents[0].step(time_step._replace(observations=time_step.observations), is_evaluation=True)
        assert agents[0]._input_scale == scale  # evaluation leaves no trace
        time_step = env.step([agents[player].step(time_step).action])
    assert longest > 1000
    assert max(agent._input_scale for agent in agents) == pytest.approx(longest / 3)
    states = np.full((1, 83), longest / np.sqrt(83), np.float32)
    scaled = max(agents, key=lambda agent: agent._input_scale)._inputs(states)
    assert np.linalg.norm(scaled) == pytest.approx(3, rel=1e-5)
    for keywords, expected in (({}, 1.0), ({"input_scale": 5.0}, 5.0)):
        env = environment()
        agent = agent_for(env, None, **keywords)
        play(env, [agent, agent], 20)
        assert agent._input_scale == expected


def test_first_policies_are_uniform_in_every_game():
    for game in ("leduc_poker", "universal_poker"):
        env = environment(game)
        output = agent_for(env, 0).step(env.reset(), is_evaluation=True)
        legal = output.probs[output.probs > 0]
        np.testing.assert_allclose(legal, 1 / len(legal))


def test_a_magnet_is_for_several_players():
    """By default there is none for one player; the reference stays, so that checkpoints have one form."""
    alone, kuhn = environment("catch"), environment()
    for env, strength in ((alone, 0.0), (kuhn, 0.2)):
        pulled = []
        for keywords in ({}, {"magnet_strength": strength}):
            agent = agent_for(env, None, optimizer="sgd", **keywords)
            env.seed(3)
            play(env, [agent] * env.num_players, 12)
            assert int(agent._state.updates) == 3
            pulled.append(agent.get_weights())
        same_bits(*pulled)


def test_greedy_evaluation_plays_the_most_probable_action():
    env = environment("leduc_poker")
    plain, greedy = (agent_for(env, 0, greedy=greedy).copy_with_noise(1.0) for greedy in (False, True))
    for _ in range(20):
        time_step = env.reset()
        policy = plain.step(time_step, is_evaluation=True).probs
        output = greedy.step(time_step, is_evaluation=True)
        assert output.action == policy.argmax()
        assert output.probs.tolist() == np.eye(3)[output.action].tolist()
    # In training it draws, and what it says of its policy elsewhere is the policy.
    drawn = {output.action for output in greedy.step([time_step] * 200)}
    assert len(drawn) > 1


@pytest.mark.parametrize(
    "sizes",
    [
        {"info_state_size": np.int64(11), "num_actions": np.int32(2), "batch_size": np.int64(4)},
        {"info_state_size": [11], "num_actions": 2},
        {"info_state_size": (11,), "num_actions": 2, "hidden_layers_sizes": ["8"]},
        {"info_state_size": np.array([11, 1]), "num_actions": 2, "hidden_layers_sizes": np.array([8])},
        {"info_state_size": (1, 11), "num_actions": 2, "hidden_layers_sizes": 8, "seed": np.int64(7)},
    ],
)
def test_sizes_as_numpy_shapes_and_flags_give_them(sizes):
    agent = openspiel.NeuRDCIX(None, **{**SMALL, "seed": 7, **sizes})
    same_bits(snapshot(agent), snapshot(agent_for(environment(), None)))


@pytest.mark.parametrize("way", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
@pytest.mark.parametrize("network", ["mlp", "table"])
def test_pickles_and_deep_copies_go_on_as_the_agent_does(way, network):
    env = environment("leduc_poker")
    agent = agent_for(env, None, network=network)
    play(env, [agent, agent], 9)
    twin = way(agent)
    same_bits(snapshot(twin), snapshot(agent))
    ends = []
    for one in (agent, twin):
        env.seed(8)
        play(env, [one, one], 9)
        ends.append(snapshot(one))
    same_bits(*ends)
    seat = way(agent.seats(2)[1])
    assert (seat.player_id, seat.step_counter) == (1, agent.step_counter)


def test_learning_when_asked_and_shorter_steps():
    """PPO's hooks: `learn` does not wait for the batch, `anneal_learning_rate` scales every later step."""
    moved = []
    for annealed in (False, True):
        env = environment()
        agent = agent_for(env, None, batch_size=1000)
        agent.learn()  # nothing to learn from yet
        assert int(agent._state.updates) == 0
        play(env, [agent, agent], 5)
        if annealed:
            agent.anneal_learning_rate(3, 4)
        before = agent.get_weights()
        agent.learn(env.reset())
        assert (int(agent._state.updates), agent._experience.batch) == (1, [])
        moved.append(
            np.concatenate([(a - b).ravel() for a, b in zip(agent.get_weights(), before, strict=True)])
        )
    assert np.abs(moved[0]).max() > 1e-3
    np.testing.assert_allclose(moved[1], moved[0] / 4, atol=1e-7)
    with pytest.raises(ValueError, match=r"^update must lie between 0 and num_total_updates, but is 5\.$"):
        agent.anneal_learning_rate(5, 4)


def test_the_critic_begins_at_the_mean_of_the_first_batch():
    """Returns that are all alike say nothing of any action; a second batch, of another return, does."""
    env = environment("matrix_rps")
    agent = agent_for(env, network="table", batch_size=1, return_scale=1.0, critic_learning_rate=0.25)

    def lived(reward):
        agent.step(env.reset())
        agent.step(env.step([0, 0])._replace(rewards=[reward, -reward]))
        return agent._state.parameters

    first = lived(200.0)
    assert float(first.values[0]) == 0.0
    np.testing.assert_array_equal(first.logits, 0.0)
    second = lived(200.8)
    assert float(second.values[0]) == pytest.approx(0.25 * 0.8, rel=1e-4)
    assert np.abs(second.logits).max() > 0
