"""Sweeps over a tree or a graph: reach, realization, beliefs, values, advantages.

The equations of Morrill et al. (2022), Section 2.1, as they stand, for any agent states: imperfect recall and
absent-mindedness included. `exact` is the door to them for users. A tree is a graph in which every node has
one way in; all that happens here happens along edges.
"""

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from pohp_neurd.finite import graph
from pohp_neurd.finite import tree as trees


class Quantities(NamedTuple):
    """What is true of every history (or node of a graph) and every agent state under a policy."""

    reach: Float[np.ndarray, "N"]
    """P[h]."""
    realization: Float[np.ndarray, "S"]
    """P[s]: the expected number of visits, which without absent-mindedness is a probability."""
    counterfactual_realization: Float[np.ndarray, "S"]
    """P[s] as if the state's own agent had done all it could to come here."""
    belief: Float[np.ndarray, "N"]
    """ξ_s(h) at decisions, 0 elsewhere. Where s is never reached: the belief were its agent to try, or
    uniform if even that is in vain; so all values are finite."""
    history_value: Float[np.ndarray, "N P"]
    """Every agent's expected return from each history, its own reward not included."""
    value: Float[np.ndarray, "S"]
    """v_s, of the state's own agent."""
    action_value: Float[np.ndarray, "S A"]
    """q_s(a); 0 at illegal actions, as below."""
    advantage: Float[np.ndarray, "S A"]
    """ρ_s(a) = q_s(a) − v_s."""
    shifted_action_value: Float[np.ndarray, "S A"]
    """q_s(a) of the rewards that are shifted to be never positive, which is what learners see."""


class _Edges(NamedTuple):
    """A tree or a graph as edges; the rows that they join have the end of the game at their end."""

    player: np.ndarray
    """Of each row."""
    levels: list[slice]
    """The edges of one level after the other, from the root on."""
    source: np.ndarray
    child: np.ndarray
    action: np.ndarray
    chance: np.ndarray
    rewards: np.ndarray


def _of_tree(tree: trees.Tree) -> _Edges:
    return _Edges(
        player=tree.player,
        levels=[slice(start - 1, stop - 1) for start, stop in itertools.pairwise(tree.levels[1:])],
        source=tree.parent[1:],
        child=np.arange(1, tree.num_histories),
        action=tree.incoming_action[1:],
        chance=tree.chance[1:],
        rewards=tree.rewards[1:],
    )


def _of_graph(world: graph.Graph) -> _Edges:
    return _Edges(
        player=np.append(world.player, trees.TERMINAL),
        levels=[edges for _, edges in world.by_level()],
        source=world.source,
        child=world.child,
        action=world.action,
        chance=world.chance,
        rewards=world.rewards,
    )


def quantities(
    world: trees.Tree | graph.Graph, state: Int[np.ndarray, "N"], policy: Float[np.ndarray, "S A"]
) -> Quantities:
    """Everything at once: one sweep down the levels for reach, one up for values, sums over agent states.

    `state` is the policy's row at every decision.
    """
    edges = _of_graph(world) if isinstance(world, graph.Graph) else _of_tree(world)
    player, source, child = edges.player, edges.source, edges.child
    # The edges by which an agent acts: who it is, and the places in the policy.
    acts = np.flatnonzero(player[source] >= 0)
    agent, row, action = player[source[acts]], state[source[acts]], edges.action[acts]
    probability = edges.chance.copy()
    probability[acts] = policy[row, action]
    others = np.repeat(probability[:, None], world.num_agents, axis=1)
    others[acts, agent] = 1.0

    reach, tried = np.zeros(len(player)), np.zeros((len(player), world.num_agents))
    reach[0] = tried[0] = 1.0
    for here in edges.levels:
        np.add.at(reach, child[here], reach[source[here]] * probability[here])
        np.add.at(tried, child[here], tried[source[here]] * others[here])
    values = np.zeros((len(player), world.num_agents))
    for here in reversed(edges.levels):
        worth = probability[here, None] * (edges.rewards[here] + values[child[here]])
        np.add.at(values, source[here], worth)

    decisions = np.flatnonzero(player >= 0)
    at, reached, attempted = state[decisions], reach[decisions], tried[decisions, player[decisions]]

    def per_state(numbers: np.ndarray) -> np.ndarray:
        return np.bincount(at, numbers, len(policy))

    realization, counterfactual = per_state(reached), per_state(attempted)
    weight = np.where(realization[at] > 0, reached, np.where(counterfactual[at] > 0, attempted, 1.0))
    belief = np.zeros(len(player))
    belief[decisions] = weight / per_state(weight)[at]

    # q_s(a): over all edges by the action a of all histories of s.
    worth = edges.rewards[acts, agent] + values[child[acts], agent]
    shifted = worth - world.best_return_to_go[source[acts], agent]

    def per_action(numbers: np.ndarray) -> np.ndarray:
        pair = row.astype(np.int64) * policy.shape[1] + action
        return np.bincount(pair, belief[source[acts]] * numbers, policy.size).reshape(policy.shape)

    action_value = per_action(worth)
    value = np.sum(policy * action_value, axis=1)
    return Quantities(
        reach=reach[: len(state)],
        realization=realization,
        counterfactual_realization=counterfactual,
        belief=belief[: len(state)],
        history_value=values[: len(state)],
        value=value,
        action_value=action_value,
        advantage=np.where(per_action(np.ones(len(acts))) > 0, action_value - value[:, None], 0.0),
        shifted_action_value=per_action(shifted),
    )
