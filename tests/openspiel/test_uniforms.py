"""Streams of random numbers: no two of different seed, role, seat, copy or checkpoint share a draw."""

import itertools

import independence
import numpy as np
import openspiel_loops as loops
import pytest
from open_spiel.python import rl_environment

from pohp_neurd import openspiel
from pohp_neurd.openspiel import uniforms

SEATS = (None, 0, 1)
DRAWS = 4000


def none_alike(streams):
    """Streams as rows: no number stands in two of them, and no two correlate by more than 5 sigma."""
    streams = np.asarray(streams)
    assert np.unique(streams).size == streams.size
    correlations = np.corrcoef(streams)[np.triu_indices(len(streams), 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(streams.shape[1]), correlations


def uniforms_of(random):
    return [random.draw() for _ in range(DRAWS)]


def test_generators_of_any_two_names_are_independent():
    copies = [uniforms.seed_of_copy(0, None, number) for number in (1, 2)]
    paths = [(), (0,), (0, 0), (1,), (0, 1)]
    names = itertools.product((0, 1, *copies), uniforms.Role, SEATS, paths)
    none_alike(
        [uniforms.generator(seed, role, seat, *path).random(DRAWS) for seed, role, seat, path in names]
    )


def test_a_stream_never_repeats_itself():
    """4,000 draws are three whole blocks and a part of the fourth."""
    drawn = np.array(uniforms_of(uniforms.Uniforms(3, uniforms.Role.ACTING, 1)))
    none_alike(drawn[: DRAWS - DRAWS % 1000].reshape(-1, 1000))
    assert np.unique(drawn).size == DRAWS
    # A uniform number has mean 1/2 and variance 1/12.
    assert abs(drawn.mean() - 0.5) < 5 / np.sqrt(12 * DRAWS)


def test_a_stream_goes_on_where_it_was_left():
    whole = uniforms_of(uniforms.Uniforms(3, uniforms.Role.ACTING, 1))
    for count in (1, 1023, 1024, 1025, 2048):
        rest = uniforms.Uniforms(3, uniforms.Role.ACTING, 1, count)
        assert [rest.draw() for _ in range(50)] == whole[count : count + 50]


def test_seeds_of_copies_do_not_meet():
    """Copies of copies, at three seats: none has the seed of another, nor one that a user would give."""
    seeds = []
    for seat, root in itertools.product(SEATS, range(3)):
        family = [root]
        for seed in family[:20]:
            family += [uniforms.seed_of_copy(seed, seat, number) for number in range(1, 5)]
        seeds += family[1:]
    assert len(set(seeds)) == len(seeds)
    assert min(seeds) > 2**64
    assert max(seeds) < uniforms.SEEDS


def agents_for(env, seats=(0, 1), **keywords):
    sizes = env.observation_spec()["info_state"][0], env.action_spec()["num_actions"]
    return [openspiel.NeuRDCIX(seat, *sizes, **keywords) for seat in seats]


def test_a_restored_agent_repeats_no_evaluation(tmp_path):
    """Evaluations before and after, and the acting in between: 1,500 actions of uniform play each."""
    env = rl_environment.Environment("matrix_rps")

    def actions(agent, is_evaluation=True):
        many = [env.reset() for _ in range(1_500)]
        return np.array([output.action for output in agent.step(many, is_evaluation)])

    for seat in (0, 1):
        (agent,) = agents_for(env, [seat])
        before, acted = actions(agent), actions(agent, is_evaluation=False)
        agent.save(tmp_path)
        restored, again = (agents_for(env, [seat], seed=seed)[0] for seed in (99, 0))
        restored.restore(tmp_path)
        again.restore(tmp_path)
        after = actions(restored)
        np.testing.assert_array_equal(actions(again), after)
        independence.check_all({"before": before, "acting": acted, "after": after})


@pytest.mark.parametrize("kind", ["two agents", "seats of one agent"])
@pytest.mark.parametrize("is_evaluation", [False, True])
def test_two_default_agents_choose_independently(kind, is_evaluation):
    """3,000 games of rock-paper-scissors; agents that do not learn in between, so that π is known."""
    env, episodes = rl_environment.Environment("matrix_rps"), 3000
    if kind == "two agents":
        agents = agents_for(env, batch_size=10**6)
    else:
        agents = agents_for(env, [None], batch_size=10**6)[0].seats(2)
    chosen, policies = np.zeros((3, 3)), [None, None]
    for _ in range(episodes):
        time_step = env.reset()
        outputs = [agent.step(time_step, is_evaluation) for agent in agents]
        chosen[outputs[0].action, outputs[1].action] += 1
        policies = [output.probs for output in outputs]
        if not is_evaluation:
            time_step = env.step([output.action for output in outputs])
            for agent in agents:
                agent.step(time_step)
    expected = np.outer(*policies)
    assert np.all(np.abs(chosen / episodes - expected) < 5 * np.sqrt(expected * (1 - expected) / episodes))
    agreement = np.trace(expected)
    spread = np.sqrt(agreement * (1 - agreement) / episodes)
    assert abs(np.trace(chosen) / episodes - agreement) < 5 * spread


@pytest.mark.slow
def test_default_agents_of_one_seed_leave_uniform_play():
    """Biased rock-paper-scissors: NashConv is 16.67 at the uniform policy, where lock step would stay."""
    env = loops.environment("matrix_brps", 0)
    agents = agents_for(env)
    loops.play(env, agents, 8000)
    assert openspiel.nash_conv(env.game, openspiel.JointPolicy(env.game, agents)) < 8
