"""What the agent is told and shown: sizes in every form, and what is wrong in one sentence."""

import math

import haiku as hk
import numpy as np
import openspiel_loops as loops
import pytest

from pohp_neurd import neural, openspiel


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
    agent = openspiel.NeuRDCIX(None, **{**loops.SMALL, "seed": 7, **sizes})
    loops.same_bits(loops.snapshot(agent), loops.snapshot(loops.agent_for(loops.environment(), None)))


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
            {"network": neural.network(11, 2, torso=(4,), critic=True), "num_actions": 3},
            ValueError,
            "^the network must give 3 logits for one",
        ),
        (
            {"network": hk.transform(lambda seen: hk.Linear(2)(seen)), "baseline": "value"},
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
    env = loops.environment()
    time_step = env.reset()

    def shown(info_state=None, legal=None):
        observations = dict(time_step.observations)
        if info_state is not None:
            observations["info_state"] = [info_state, info_state]
        if legal is not None:
            observations["legal_actions"] = [legal, legal]
        return time_step._replace(observations=observations)

    agent = loops.agent_for(env)
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
