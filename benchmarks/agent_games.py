"""The agent's defaults in every OpenSpiel game that has tensors: do they stay finite, and do they learn?

One agent for each player, trained against each other; then each of them in turn against uniform play at the
other seats, beside uniform play at all. "gain" is the mean difference of the two over seats, "errors" that in
standard errors. Mean field games are left out, as their environment wants a distribution. Takes half an hour:

    python benchmarks/agent_games.py                         all of them
    python benchmarks/agent_games.py connect_four goofspiel  some
"""

import sys
import time
from typing import NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import games, rl_environment  # noqa: F401  registers the games in Python

from pohp_neurd import openspiel

EPISODES, DECISIONS, LEAST = 500, 20_000, 96
"""Training has 500 episodes; fewer where they are long, but at least three updates."""
JUDGED = 5_000
"""Decisions of each of the two matches of a player, at most; 1,000 episodes, at most; 20, at least."""
SLOW = ("bridge", "bridge_uncontested_bidding")
"""Their environments solve a deal for every episode, half a second each: the least of everything."""


WRONG = ("chat_game",)
"""It has legal actions beyond the number of actions that it states; the agent says so and stops."""


class Row(NamedTuple):
    """What came of the defaults in one game."""

    game: str
    episodes: int
    decisions: int
    updates: int
    loss: float
    """The largest of any update, in units of the largest return squared."""
    weights: float
    """The largest magnitude of any weight in the end."""
    gain: float
    """Return of a trained agent less that of a uniform player, against uniform players, mean over seats."""
    error: float
    """Its standard error."""
    seconds: float


def environment(name: str) -> rl_environment.Environment | None:
    """The game as an environment, or None where there is no such thing or no tensor."""
    if name in WRONG:
        return None
    try:
        game = pyspiel.load_game(name)
    except (pyspiel.SpielError, IndexError):  # a game that needs parameters
        return None
    kind = game.get_type()
    if kind.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
        return None
    try:
        if kind.provides_information_state_tensor and game.information_state_tensor_size():
            return rl_environment.Environment(game)
        if kind.provides_observation_tensor and game.observation_tensor_size():
            return rl_environment.Environment(
                game, observation_type=rl_environment.ObservationType.OBSERVATION
            )
    except pyspiel.SpielError:  # it says that there is one, but there is none
        return None
    return None


def playable() -> list[str]:
    """The names of all registered games that load as they are and have tensors."""
    return [name for name in sorted(pyspiel.registered_names()) if environment(name) is not None]


def agents_for(env: rl_environment.Environment, **keywords) -> list[openspiel.NeuRDCIX]:
    sizes = env.observation_spec()["info_state"], env.action_spec()["num_actions"]
    return [openspiel.NeuRDCIX(player, *sizes, **keywords) for player in range(env.num_players)]


def episode(
    env: rl_environment.Environment, agents: list, random, is_evaluation: bool
) -> tuple[np.ndarray, int]:
    """Returns and number of decisions; None in `agents` plays uniformly."""
    time_step, total, decisions = env.reset(), np.zeros(env.num_players), 0
    while not time_step.last():
        simultaneous = time_step.is_simultaneous_move()
        current = time_step.observations["current_player"]
        actions = []
        for player, agent in enumerate(agents):
            turn = simultaneous or player == current
            if agent is not None and (turn or not is_evaluation):
                action = agent.step(time_step, is_evaluation).action
            elif turn:
                legal = time_step.observations["legal_actions"][player]
                action = legal[int(random.random() * len(legal))] if legal else pyspiel.INVALID_ACTION
            if turn:
                actions.append(action)
        decisions += len(actions)
        time_step = env.step(actions)
        total += time_step.rewards
    if not is_evaluation:
        for agent in agents:
            agent.step(time_step)
    return total, decisions


def matches(env: rl_environment.Environment, agents: list, player: int, random, most: int) -> np.ndarray:
    """The player's returns in some episodes."""
    returns, decisions = [], 0
    while len(returns) < 20 or (decisions < JUDGED and len(returns) < most):
        total, made = episode(env, agents, random, True)
        returns.append(total[player])
        decisions += made
    return np.array(returns)


def measure(name: str, **keywords) -> Row:
    """The row of one game; raises where the agent diverges."""
    env, start, random = environment(name), time.perf_counter(), np.random.default_rng(0)
    env.seed(0)
    agents = agents_for(env, **keywords)
    train, most = (LEAST, 20) if name in SLOW else (EPISODES, 1000)
    episodes = decisions = 0
    loss = 0.0
    while episodes < train and (decisions < DECISIONS or episodes < LEAST):
        decisions += episode(env, agents, random, False)[1]
        episodes += 1
        learnt = [agent for agent in agents if agent.loss is not None]
        loss = max([loss, *(agent.loss / agent._learning.returns.scale**2 for agent in learnt)])
    gains, variance = [], 0.0
    for player, agent in enumerate(agents):
        lone = [agent if seat == player else None for seat in range(len(agents))]
        trained = matches(env, lone, player, random, most)
        uniform = matches(env, [None] * len(agents), player, random, most)
        gains.append(trained.mean() - uniform.mean())
        variance += trained.var() / len(trained) + uniform.var() / len(uniform)
    return Row(
        name,
        episodes,
        decisions,
        int(agents[0]._learning.state.updates),
        loss,
        max(float(np.abs(weight).max()) for agent in agents for weight in agent.get_weights()),
        float(np.mean(gains)),
        float(np.sqrt(variance)) / len(agents),
        time.perf_counter() - start,
    )


def main() -> None:
    names = sys.argv[1:] or playable()
    print(f"{'game':32} episodes decisions updates     loss  weights       gain   errors  seconds")
    for name in names:
        row = measure(name)
        errors = row.gain / row.error if row.error else 0.0
        print(
            f"{name:32} {row.episodes:8} {row.decisions:9,} {row.updates:7} {row.loss:8.3f} "
            f"{row.weights:8.2f} {row.gain:+10.4f} {errors:+8.1f} {row.seconds:8.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
