"""A finite POHP as a bandit: the pure policies of one agent are the arms (Morrill et al. 2022, Section 2.2).

Between a Tree and `problems`: enumerates an agent's pure policies, and sums out exactly what each is worth.
"""

import itertools
import math

import numpy as np
from jaxtyping import Float, Int

from pohp_neurd import agent_state, checks
from pohp_neurd.bandit import learners, problems
from pohp_neurd.finite import tree

UNREACHED = -1
"""In place of an action, at information states that the pure policy's own actions never lead to."""

_MOST = 20_000


def pure_policies(world: tree.Tree, agent: int) -> Int[np.ndarray, "X S"]:
    """All reduced pure policies of `agent`: an action for each of its information states it can come to.

    Columns are the agent's own information states, in the tree's order. Policies that differ only where
    their own actions never lead would be the same arm twice; they are listed once.
    """
    _check_agent(world, agent)
    verdict = agent_state.has_perfect_recall(world, agent_state.information_state(world))
    if not verdict:
        raise ValueError(
            f"pure policies are enumerated for agents with perfect recall, but {verdict.reason}."
        )
    following = _following(world, agent)
    count = _count(world, agent, following, (-1, -1))
    if count > _MOST:
        raise ValueError(
            f"agent {agent} of {world.name} has {count:,} pure policies, more than the {_MOST:,} "
            "that can be arms: choose a smaller game."
        )
    first = world.states_of(agent).start
    width = world.states_of(agent).stop - first
    rows = np.full((count, width), UNREACHED, np.int32)
    for row, choices in enumerate(_enumerated(world, following, (-1, -1))):
        for state, action in choices:
            rows[row, state - first] = action
    return rows


def expected_returns(
    world: tree.Tree, agent: int, policies: Int[np.ndarray, "X S"], others: np.ndarray
) -> Float[np.ndarray, "X"]:
    """What each pure policy of `agent` is worth while the others follow `others`, in [−G, 0].

    `others` is [information states, actions] in the tree's order; the agent's own rows are not read.
    """
    _check_agent(world, agent)
    checks.shape("others", others, (world.num_information_states, world.num_actions))
    foreign = world.state_player != agent
    checks.distribution("others", np.asarray(others)[foreign])
    rivals = _reach_of_others(world, agent, np.asarray(others, np.float64))
    own = _own_reach(world, agent, policies)
    return np.minimum(own @ (rivals * world.shifted_rewards[:, agent]), 0.0)


def payoff_matrix(world: tree.Tree) -> Float[np.ndarray, "X Y"]:
    """Agent 0's expected return, in [−G, 0], for every pure policy of it (rows) and of agent 1 (columns)."""
    if world.num_agents != 2:
        raise ValueError(
            f"a payoff matrix needs a game of 2 agents, but {world.name} has {world.num_agents}."
        )
    reach = [_own_reach(world, agent, pure_policies(world, agent)) for agent in range(2)]
    chance = _chance_reach(world)
    return np.minimum((reach[0] * (chance * world.shifted_rewards[:, 0])) @ reach[1].T, 0.0)


def against_fixed(world: tree.Tree, agent: int, others: np.ndarray) -> problems.Problem:
    """The bandit of `agent`'s pure policies, while the others follow one policy throughout."""
    worth = expected_returns(world, agent, pure_policies(world, agent), others)
    return problems.fixed(worth, _max_return(world, agent), f"{world.name}, fixed daimon")


def against_learner(world: tree.Tree, daimon: learners.Learner) -> problems.Problem:
    """The bandit of agent 0's pure policies in a two-agent game, while agent 1 learns against them."""
    matrix = payoff_matrix(world)
    return problems.learning_daimon(matrix, _max_return(world, 0), daimon, f"{world.name}, learning daimon")


def _max_return(world: tree.Tree, agent: int) -> float:
    """G of one agent: how far its worst trajectory lies below its best."""
    returns = np.zeros(world.num_histories)
    for start, stop in _levels(world):
        returns[start:stop] = returns[world.parent[start:stop]] + world.shifted_rewards[start:stop, agent]
    return float(-returns.min())


def _following(world: tree.Tree, agent: int) -> dict[tuple[int, int], list[int]]:
    """The information states that come next after each (information state, action) of the agent."""
    following: dict[tuple[int, int], list[int]] = {}
    states, rows = np.unique(world.information_state, return_index=True)
    for state, row in zip(states, rows, strict=True):
        if world.player[row] != agent:
            continue
        before = world.previous_decision[row, agent]
        earlier = int(world.information_state[before]) if before >= 0 else -1
        sequence = (earlier, int(world.previous_action[row, agent]))
        following.setdefault(sequence, []).append(int(state))
    return following


def _count(
    world: tree.Tree, agent: int, following: dict[tuple[int, int], list[int]], sequence: tuple[int, int]
) -> int:
    return math.prod(
        sum(
            _count(world, agent, following, (state, int(action)))
            for action in np.flatnonzero(world.legal[state])
        )
        for state in following.get(sequence, ())
    )


def _enumerated(
    world: tree.Tree, following: dict[tuple[int, int], list[int]], sequence: tuple[int, int]
) -> list[tuple[tuple[int, int], ...]]:
    """Every way to choose at the states after `sequence` and all that come later: (state, action) pairs."""
    options = []
    for state in following.get(sequence, ()):
        options.append(
            [
                ((state, int(action)), *rest)
                for action in np.flatnonzero(world.legal[state])
                for rest in _enumerated(world, following, (state, int(action)))
            ]
        )
    return [tuple(itertools.chain.from_iterable(choice)) for choice in itertools.product(*options)]


def _own_reach(world: tree.Tree, agent: int, policies: Int[np.ndarray, "X S"]) -> Float[np.ndarray, "X N"]:
    """1 where the agent's own actions under each pure policy allow a history, 0 elsewhere."""
    reach = np.ones((len(policies), world.num_histories))
    first = world.states_of(agent).start
    for start, stop in _levels(world):
        above = world.parent[start:stop]
        reach[:, start:stop] = reach[:, above]
        rows = np.flatnonzero(world.player[above] == agent)
        chosen = policies[:, world.information_state[above[rows]] - first]
        reach[:, start + rows] *= chosen == world.incoming_action[start + rows]
    return reach


def _reach_of_others(
    world: tree.Tree, agent: int, others: Float[np.ndarray, "S A"]
) -> Float[np.ndarray, "N"]:
    """The probability that chance and the other agents allow each history."""
    reach = world.chance.copy()
    for start, stop in _levels(world):
        above = world.parent[start:stop]
        acting = world.player[above]
        rows = np.flatnonzero((acting >= 0) & (acting != agent))
        states, actions = world.information_state[above[rows]], world.incoming_action[start + rows]
        reach[start + rows] *= others[states, actions]
        reach[start:stop] *= reach[above]
    return reach


def _chance_reach(world: tree.Tree) -> Float[np.ndarray, "N"]:
    reach = world.chance.copy()
    for start, stop in _levels(world):
        reach[start:stop] *= reach[world.parent[start:stop]]
    return reach


def _levels(world: tree.Tree) -> zip:
    """The rows of each depth below the root."""
    return zip(world.levels[1:-1], world.levels[2:], strict=True)


def _check_agent(world: tree.Tree, agent: int) -> None:
    if not 0 <= agent < world.num_agents:
        raise ValueError(f"agent must be one of 0 to {world.num_agents - 1}, but is {agent}.")
