"""OpenSpiel's episode loop, agents for it, and what an agent holds: for the tests of agents."""

import jax
import numpy as np
from open_spiel.python import rl_environment

from pohp_neurd import openspiel

SMALL = {"hidden_layers_sizes": [8], "batch_size": 4}


def environment(game="kuhn_poker", seed=3, **keywords):
    env = rl_environment.Environment(game, **keywords)
    env.seed(seed)
    return env


def agent_for(env, player=0, **keywords):
    """A small agent for one seat of `env`, or for all seats where `player` is None."""
    sizes = env.observation_spec()["info_state"][0], env.action_spec()["num_actions"]
    return openspiel.NeuRDCIX(
        player, *sizes, **{**SMALL, "seed": 7 if player is None else player, **keywords}
    )


def agents_for(env, **keywords):
    return [agent_for(env, player, **keywords) for player in range(env.num_players)]


def episode(env, act, watch=None):
    """One episode: `act(time_step)` says the actions. The last time step and everyone's returns.

    `watch(time_step)` is called before it at every time step but the last.
    """
    time_step, total = env.reset(), np.zeros(env.num_players)
    while not time_step.last():
        if watch is not None:
            watch(time_step)
        time_step = env.step(act(time_step))
        total += time_step.rewards
    return time_step, total


def acting(agents, *, everyone=False, is_evaluation=False):
    """The actions of `agents` at a time step: of whoever is to move, or, stepping all, of `everyone`."""

    def act(time_step):
        current = time_step.observations["current_player"]
        if time_step.is_simultaneous_move():
            return [agent.step(time_step, is_evaluation).action for agent in agents]
        if everyone:
            return [[agent.step(time_step, is_evaluation) for agent in agents][current].action]
        return [agents[current].step(time_step, is_evaluation).action]

    return act


def play(env, agents, episodes=1, *, everyone=False, is_evaluation=False):
    """An ordinary loop, at the end of which everyone is stepped; everyone's returns of every episode."""
    returns = []
    act = acting(agents, everyone=everyone, is_evaluation=is_evaluation)
    for _ in range(episodes):
        time_step, total = episode(env, act)
        for agent in agents:
            agent.step(time_step, is_evaluation)
        returns.append(total)
    return returns


def same_bits(left, right):
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def snapshot(agent):
    """All that an agent holds, as its pickles have it."""
    return agent.__getstate__()["snapshot"]


def updates(agent):
    return int(snapshot(agent)["learner"].updates)


def parameters(agent):
    return snapshot(agent)["learner"].parameters


def batch(agent):
    """Choices that wait for the next update, as arrays."""
    return snapshot(agent)["experience"]["batch"]


def under_way(agent):
    """Choices of episodes that are not over, as arrays."""
    return snapshot(agent)["experience"]["open"]


def input_scale(agent):
    return float(snapshot(agent)["largest"][3])


def with_parameters(agent, change):
    """`agent` with `change(parameters)` in the place of its parameters."""
    state = agent.__getstate__()
    learner = state["snapshot"]["learner"]
    learner = learner._replace(parameters=change(learner.parameters))
    agent.__setstate__({**state, "snapshot": {**state["snapshot"], "learner": learner}})
    return agent
