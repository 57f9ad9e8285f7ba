"""Saving, restoring and going on is never having stopped; damage is told and changes nothing."""

import copy
import pickle

import openspiel_loops as loops
import pytest
from open_spiel.python import vector_env

from pohp_neurd import openspiel

pytestmark = pytest.mark.thorough


def environment(seed=3):
    return loops.environment("leduc_poker", seed)


def new_agent(player=0, seed=5, **keywords):
    settings = {"hidden_layers_sizes": [8], "batch_size": 3, **keywords}
    return openspiel.NeuRDCIX(player, 30, 3, seed=seed, **settings)


def train(env, agents, steps, time_step=None, interrupt=None):
    """So many time steps of a loop, and then the outputs; `interrupt(step, agents)` may swap the agents."""
    outputs = []
    time_step = time_step or env.reset()
    for step in range(steps):
        if interrupt is not None:
            agents = interrupt(step, agents)
        told = [agent.step(time_step) for agent in agents]
        outputs += told
        if time_step.last():
            time_step = env.reset()
            continue
        if interrupt is not None:  # between the choice and what follows it
            agents = interrupt(step + 0.5, agents)
        time_step = env.step([told[time_step.observations["current_player"]].action])
    return agents, outputs


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"network": "table", "max_states": 1000},
        {"baseline": "none", "optimizer": "sgd", "magnet_strength": 0.0},
        {"learner": "spg", "max_global_gradient_norm": 1.0},
    ],
)
def test_going_on_after_a_restore_is_never_having_stopped(tmp_path, keywords):
    def interrupted(step, agents):
        if step % 3.5:
            return agents
        fresh = []
        for player, agent in enumerate(agents):
            agent.save(tmp_path)
            # Another seed: all that is random must come from the checkpoint.
            twin = new_agent(player, seed=100 + player, **keywords)
            twin.restore(tmp_path)
            loops.same_bits(loops.snapshot(twin), loops.snapshot(agent))
            fresh.append(twin)
        return fresh

    def agents():
        return [new_agent(player, player, **keywords) for player in range(2)]

    whole, told = train(environment(), agents(), 120)
    resumed, told_again = train(environment(), agents(), 120, interrupt=interrupted)
    for one, other in zip(whole, resumed, strict=True):
        loops.same_bits(loops.snapshot(one), loops.snapshot(other))
        assert loops.updates(one) >= 5
        assert (one.loss, one.step_counter) == (other.loss, other.step_counter)
    assert [output.action for output in told] == [output.action for output in told_again]
    loops.same_bits([output.probs for output in told], [output.probs for output in told_again])


def test_vector_environments_go_on_too(tmp_path):
    results = []
    for interrupted in (False, True):
        vector = vector_env.SyncVectorEnv([environment(seed) for seed in range(3)])
        agent, time_steps = new_agent(None), vector.reset()
        for step in range(40):
            outputs = agent.step(time_steps)
            time_steps, reward, done, _ = vector.step(outputs, reset_if_done=True)
            agent.post_step(reward, done)
            if interrupted and step % 7 == 3:
                agent.save(tmp_path)
                agent = new_agent(None, seed=9)
                agent.restore(tmp_path)
        results.append(loops.snapshot(agent))
    loops.same_bits(*results)


def test_copies_are_counted(tmp_path):
    agent = new_agent()
    agent.copy_with_noise(0.1)
    agent.save(tmp_path)
    twin = new_agent()
    twin.restore(tmp_path)
    loops.same_bits(agent.copy_with_noise(0.1).get_weights(), twin.copy_with_noise(0.1).get_weights())


def test_has_checkpoint(tmp_path):
    first, second = new_agent(0), new_agent(1)
    assert not first.has_checkpoint(tmp_path)
    with pytest.raises(ValueError, match=r"^there is no checkpoint in .*neurd_cix_player_0.$"):
        first.restore(tmp_path)
    first.save(tmp_path)
    assert first.has_checkpoint(tmp_path)
    assert not second.has_checkpoint(tmp_path)  # agents can share a folder
    first.save(str(tmp_path))
    assert len(list((tmp_path / "neurd_cix_player_0").iterdir())) == 2


@pytest.mark.parametrize(
    "damage", ["arrays cut", "arrays gone", "arrays changed", "manifest cut", "manifest empty"]
)
def test_a_damaged_checkpoint_is_told_and_changes_nothing(tmp_path, damage):
    trained, _ = train(environment(), [new_agent(0), new_agent(1)], 50)
    trained[0].save(tmp_path)
    arrays, manifest = (next(tmp_path.rglob(name)) for name in ("*.npz", "*.json"))
    content = arrays.read_bytes()
    if damage == "arrays cut":
        arrays.write_bytes(content[: len(content) // 2])
    elif damage == "arrays gone":
        arrays.unlink()
    elif damage == "arrays changed":
        middle = len(content) // 2
        arrays.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif damage == "manifest cut":
        manifest.write_text(manifest.read_text("utf-8")[:100], "utf-8")
    else:
        manifest.write_text("{}", "utf-8")
    agent = new_agent(0, seed=8)
    before = loops.snapshot(agent)
    with pytest.raises(ValueError, match=r"(cannot be read|does not match its checksum|is missing)\.$"):
        agent.restore(tmp_path)
    loops.same_bits(loops.snapshot(agent), before)


def test_a_checkpoint_of_other_sizes_is_told_and_changes_nothing(tmp_path):
    new_agent(0).save(tmp_path)
    other = new_agent(0, hidden_layers_sizes=[9])
    before = loops.snapshot(other)
    with pytest.raises(ValueError, match=r"holds .*float32\[.*\] where .*float32\[.*\] was expected"):
        other.restore(tmp_path)
    loops.same_bits(loops.snapshot(other), before)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
@pytest.mark.parametrize("network", ["mlp", "table"])
def test_pickles_and_deep_copies_go_on_as_the_agent_does(way, network):
    env = loops.environment("leduc_poker")
    agent = loops.agent_for(env, None, network=network)
    loops.play(env, [agent, agent], 9)
    twin = way(agent)
    loops.same_bits(loops.snapshot(twin), loops.snapshot(agent))
    ends = []
    for one in (agent, twin):
        env.seed(8)
        loops.play(env, [one, one], 9)
        ends.append(loops.snapshot(one))
    loops.same_bits(*ends)
    seat = way(agent.seats(2)[1])
    assert (seat.player_id, seat.step_counter) == (1, agent.step_counter)
