"""Bandit problems: what every arm is worth in every round, in [−G, 0], as one run lives it.

A problem may look at the policy before it sets the utilities of a round, but not at the arm that is then
drawn: that is the adversary of Theorem 1. Its noise comes as uniform numbers, one draw for all runs.

A finite POHP is a bandit whose arms are the pure policies of one agent (Morrill et al. 2022, Section 2.2):
they are enumerated here, and what each is worth is summed out exactly.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import agent_state, checks
from pohp_neurd.bandit import learners
from pohp_neurd.finite import tree


class Problem(NamedTuple):
    """A bandit problem as pure functions."""

    name: str
    num_arms: int
    max_return: float
    """G: utilities lie in [−G, 0]."""
    num_uniforms: int
    """How many uniform numbers a round takes."""
    init: Callable[..., Any]
    """The daimon's state before the first round, for many runs: `init()`, or `init(2000)`."""
    utilities: Callable[[Any, learners.Arms, Float[Array, "U *B"]], learners.Arms]
    """(state, the learner's policy, uniform numbers) -> u_t, every arm's utility this round."""
    update: Callable[[Any, learners.Arms], Any]
    """(state, the learner's policy) -> the daimon's state after the round."""


def bernoulli(loss_probabilities: Sequence[float] | np.ndarray) -> Problem:
    """Arms that cost 1 with a probability of their own, independently."""
    chances = np.asarray(loss_probabilities, np.float64)
    checks.in_unit_interval("loss_probabilities", chances)
    checks.shape("loss_probabilities", chances, (None,))
    checks.at_least("num_arms", len(chances), 2)

    def utilities(rounds: Any, policy: learners.Arms, uniforms: Float[Array, "U *B"]) -> learners.Arms:
        return -(uniforms < _column(chances, uniforms)).astype(uniforms.dtype)

    return Problem("bernoulli", len(chances), 1.0, len(chances), _no_state, utilities, _stay)


def switching(num_arms: int, period: int, *, good: float = 0.25, bad: float = 0.5) -> Problem:
    """Bernoulli arms of which one is good, another one after every `period` rounds, in turn."""
    checks.at_least("num_arms", num_arms, 2)
    checks.at_least("period", period)
    checks.in_unit_interval("good", good)
    checks.in_unit_interval("bad", bad)

    def utilities(
        rounds: Int[Array, ""], policy: learners.Arms, uniforms: Float[Array, "U *B"]
    ) -> learners.Arms:
        best = learners.pulled((rounds // period) % num_arms, uniforms.shape)
        chances = jnp.where(best, good, bad).astype(uniforms.dtype)
        return -(uniforms < chances).astype(uniforms.dtype)

    return Problem("switching", num_arms, 1.0, num_arms, _count, utilities, _next)


def adaptive(num_arms: int) -> Problem:
    """An adversary that looks at the policy and makes its likeliest arm cost 1; all others are free."""
    checks.at_least("num_arms", num_arms, 2)

    def utilities(state: Any, policy: learners.Arms, uniforms: Float[Array, "U *B"]) -> learners.Arms:
        likeliest = jnp.argmax(policy, axis=0, keepdims=True).astype(jnp.int32)
        return -learners.pulled(likeliest, policy.shape).astype(policy.dtype)

    return Problem("adaptive", num_arms, 1.0, 0, _no_state, utilities, _stay)


ROCK_PAPER_SCISSORS = ((0.0, -1.0, 2.0), (1.0, 0.0, -1.0), (-2.0, 1.0, 0.0))
"""Biased rock-paper-scissors: rock beats scissors for 2. The same as in `games.matrix_game`."""


def rock_paper_scissors(
    opponent: Sequence[float] | np.ndarray = (0.5, 0.25, 0.25),
    *,
    period: int | None = None,
    payoffs: Sequence[Sequence[float]] | np.ndarray = ROCK_PAPER_SCISSORS,
) -> Problem:
    """A matrix game against an opponent who draws from one mixture.

    With a `period` the opponent does not stand still: its mixture moves on by one action after every
    `period` rounds. Payoffs are shifted so that the largest is 0.
    """
    matrix = np.asarray(payoffs, np.float64)
    mixture = np.asarray(opponent, np.float64)
    checks.distribution("opponent", mixture)
    checks.shape("opponent", mixture, (matrix.shape[1],))
    if period is not None:
        checks.at_least("period", period)
    shifted = matrix - matrix.max()
    phases = range(1 if period is None else len(mixture))
    cumulative = np.cumsum([np.roll(mixture, phase) for phase in phases], axis=1)
    cumulative[:, -1] = 1.0  # rounding

    def utilities(
        rounds: Int[Array, ""], policy: learners.Arms, uniforms: Float[Array, "U *B"]
    ) -> learners.Arms:
        phase = 0 if period is None else (rounds // period) % len(phases)
        edges = _column(cumulative, uniforms)[phase]
        action = jnp.sum(edges <= uniforms, axis=0, keepdims=True).astype(jnp.int32)
        drawn = learners.pulled(action, (len(mixture), *uniforms.shape[1:]))
        return jnp.asarray(shifted, uniforms.dtype) @ drawn.astype(uniforms.dtype)

    name = "rock_paper_scissors" if period is None else "shifting_rock_paper_scissors"
    return Problem(name, len(matrix), float(-shifted.min()), 1, _count, utilities, _next)


def fixed(utilities: Sequence[float] | np.ndarray, max_return: float, name: str = "fixed") -> Problem:
    """Arms that are worth the same in every round, such as pure policies against a fixed daimon."""
    worth = np.asarray(utilities, np.float64)
    checks.at_least("num_arms", len(worth), 2)
    _check_range(worth, max_return)

    def constant(state: Any, policy: learners.Arms, uniforms: Float[Array, "U *B"]) -> learners.Arms:
        return jnp.broadcast_to(_column(worth, policy), policy.shape)

    return Problem(name, len(worth), float(max_return), 0, _no_state, constant, _stay)


def learning_daimon(
    payoffs: np.ndarray, max_return: float, daimon: learners.Learner, name: str = "learning daimon"
) -> Problem:
    """Arms against a daimon that learns: it mixes its own pure policies, and sees the learner's mixture.

    `payoffs[x, y]`, in [−G, 0], is what arm x is worth against the daimon's y; the daimon, a full-monitoring
    learner, wants it low. Arms are worth their expectation over the daimon's mixture.
    """
    matrix = np.asarray(payoffs, np.float64)
    checks.shape("payoffs", matrix, (None, None))
    checks.at_least("num_arms", len(matrix), 2)
    _check_range(matrix, max_return)

    def utilities(state: Any, policy: learners.Arms, uniforms: Float[Array, "U *B"]) -> learners.Arms:
        return jnp.asarray(matrix, policy.dtype) @ daimon.policy(state)

    def update(state: Any, policy: learners.Arms) -> Any:
        # Zero-sum and shifted: what the learner does not get, less G, so that it is not positive.
        gains = -(jnp.asarray(matrix.T, policy.dtype) @ policy) - max_return
        return daimon.update(state, gains)

    def init(*runs: int) -> Any:
        return daimon.init(matrix.shape[1], *runs)

    return Problem(name, len(matrix), float(max_return), 0, init, utilities, update)


UNREACHED = -1
"""In place of an action, at information states that the pure policy's own actions never lead to."""

_MOST = 20_000


def pure_policies(world: tree.Tree, agent: int) -> Int[np.ndarray, "X S"]:
    """All reduced pure policies of `agent`: an action for each of its information states it can come to.

    Columns are the agent's own information states, in the tree's order. Policies that differ only where
    their own actions never lead would be the same arm twice; they are listed once.
    """
    checks.index("agent", agent, world.num_agents)
    verdict = agent_state.has_perfect_recall(world, agent_state.information_state(world))
    if not verdict:
        raise ValueError(
            f"pure policies are enumerated for agents with perfect recall, but {verdict.reason}."
        )
    following = _following(world, agent)
    count = _ways(world, following, (-1, -1))
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


def pure_policy_returns(
    world: tree.Tree, agent: int, policies: Int[np.ndarray, "X S"], others: np.ndarray
) -> Float[np.ndarray, "X"]:
    """What each pure policy of `agent` is worth while the others follow `others`, in [−G, 0].

    `others` is [information states, actions] in the tree's order; the agent's own rows are not read.
    """
    checks.index("agent", agent, world.num_agents)
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
    return np.minimum((reach[0] * (world.chance_reach * world.shifted_rewards[:, 0])) @ reach[1].T, 0.0)


def against_fixed(world: tree.Tree, agent: int, others: np.ndarray) -> Problem:
    """The bandit of `agent`'s pure policies, while the others follow one policy throughout."""
    worth = pure_policy_returns(world, agent, pure_policies(world, agent), others)
    return fixed(worth, _width(world, agent), f"{world.name}, fixed daimon")


def against_learner(world: tree.Tree, daimon: learners.Learner) -> Problem:
    """The bandit of agent 0's pure policies in a two-agent game, while agent 1 learns against them."""
    matrix = payoff_matrix(world)
    return learning_daimon(matrix, _width(world, 0), daimon, f"{world.name}, learning daimon")


def _no_state(*runs: int) -> tuple[()]:
    return ()


def _stay(state: Any, policy: learners.Arms) -> Any:
    return state


def _count(*runs: int) -> Int[Array, ""]:
    # All runs are in the same round.
    return jnp.zeros((), jnp.int32)


def _next(rounds: Int[Array, ""], policy: learners.Arms) -> Int[Array, ""]:
    return rounds + 1


def _column(values: np.ndarray, like: Float[Array, "n *B"]) -> Float[Array, "..."]:
    """`values` with an axis of size 1 for each axis of runs that `like` has."""
    return jnp.asarray(values, like.dtype).reshape(*values.shape, *[1] * (like.ndim - 1))


def _check_range(utilities: np.ndarray, max_return: float) -> None:
    checks.positive("max_return", max_return)
    if not np.all((utilities <= 1e-9) & (utilities >= -max_return - 1e-9)):
        raise ValueError(
            f"utilities must lie in [-{max_return:g}, 0], but range from {utilities.min():g} to "
            f"{utilities.max():g}: subtract the largest."
        )


def _width(world: tree.Tree, agent: int) -> float:
    """G of one agent: how far its worst trajectory lies below its best."""
    return float(-world.shifted_returns[:, agent].min())


def _following(world: tree.Tree, agent: int) -> dict[tuple[int, int], list[int]]:
    """The information states that come next after each (information state, action) of the agent."""
    following: dict[tuple[int, int], list[int]] = {}
    own = np.flatnonzero(world.player == agent)
    states, first = np.unique(world.information_state[own], return_index=True)
    for state, row in zip(states, own[first], strict=True):
        before = world.previous_decision[row, agent]
        earlier = int(world.information_state[before]) if before >= 0 else -1
        sequence = (earlier, int(world.previous_action[row, agent]))
        following.setdefault(sequence, []).append(int(state))
    return following


def _ways(world: tree.Tree, following: dict[tuple[int, int], list[int]], sequence: tuple[int, int]) -> int:
    return math.prod(
        sum(_ways(world, following, (state, int(action))) for action in np.flatnonzero(world.legal[state]))
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
    allowed = np.ones((world.num_histories, len(policies)))
    rows = np.flatnonzero(tree.acted(world.parent, world.player, world.num_agents)[:, agent])
    column = world.information_state[world.parent[rows]] - world.states_of(agent).start
    allowed[rows] = world.incoming_action[rows, None] == policies[:, column].T
    return np.ascontiguousarray(world.along_paths(allowed, np.multiply).T)


def _reach_of_others(
    world: tree.Tree, agent: int, others: Float[np.ndarray, "S A"]
) -> Float[np.ndarray, "N"]:
    """The probability that chance and the other agents allow each history."""
    moved = tree.acted(world.parent, world.player, world.num_agents)
    rows = np.flatnonzero(moved.any(axis=1) & ~moved[:, agent])
    chances = world.chance.copy()
    chances[rows] = others[world.information_state[world.parent[rows]], world.incoming_action[rows]]
    return world.along_paths(chances, np.multiply)
