"""A tree as each agent's sequences: what makes exact evaluation fast (von Stengel 1996).

A sequence is an information state of one agent and an action there, or nothing at all. A history is
reached with the product of chance and each agent's realization plan at its last sequence. So one gather,
multiply and sum over the histories with a reward, which mostly are terminal, replaces a walk over all
histories, and one sweep over an agent's own turns replaces a walk for each of its decisions.

Best responses are over *recall states*: information states, told apart by the agent's own earlier states
and actions. Where the game has perfect recall, as games should, they are the information states themselves.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from pohp_neurd import tree as trees

NOTHING, ILLEGAL = 0, 1
"""Places of two constants before every level's sums: 0, and the value of an action that is not legal."""

FIRST_SUM = 2


class Block(NamedTuple):
    """Sums over groups of like size, as a rectangle with one group a row."""

    places: tuple[Int[Any, "groups width"], ...]
    """Where the summands' factors stand: one array for each factor."""
    coefficient: Float[Any, "groups width"]
    """The summands' constant factor; 0 for padding."""


Sums = tuple[Block, ...]
"""One sum for every group; the groups are in the order of the blocks."""


class Level(NamedTuple):
    """All recall states of one agent after the same number of its own decisions."""

    parent: Int[Any, "n"]
    """Their parent sequences' places in the realization plan of the level above."""
    rewards: Sums
    """Over the rewards after a sequence and before the next; factors are the other agents' plans."""
    rewards_owner: Int[Any, "t"]
    """The places of those sequences in this level's plan."""
    children: Sums
    """Over the next turns that follow a sequence; the factor is the value of a state one level below."""
    both: tuple[Int[Any, "m"], Int[Any, "m"]]
    """Sequences that have sums of both kinds: their places in the one list and in the other."""
    source: Int[Any, "n A"]
    """The place of each action's value among: the two constants, sums of rewards, of children, of both."""


class AgentForm(NamedTuple):
    """One agent's sequences."""

    levels: tuple[Level, ...]
    at_root: Sums
    """Over the rewards before the agent has ever acted: one group, or none."""


class SequenceForm(NamedTuple):
    """All agents' sequences, as a pytree of arrays to be passed through jit.

    Recall states stand agent by agent and level by level; a plan of an agent is 1 for the empty sequence,
    then all its levels' sequences, each level n states by A actions.
    """

    agents: tuple[AgentForm, ...]
    row: Int[Any, "R"] | None
    """The policy's row at each recall state; None where they are the same."""


def build(tree: trees.Tree, agent_states: Int[np.ndarray, "N"] | None = None) -> SequenceForm:
    """The sequence form of `tree`, in numpy and float64.

    `agent_states` are the policy's rows at every decision, where they are not the information states.
    """
    recall = _recall_states(tree)
    chance = _chance_reach(tree)
    last = [_last_sequence(tree, recall, agent) for agent in range(tree.num_agents)]
    agents = []
    for agent in range(tree.num_agents):
        rows = np.flatnonzero(tree.rewards[:, agent])
        others = [last[other][rows] for other in range(tree.num_agents) if other != agent]
        coefficients = tree.rewards[rows, agent] * chance[rows]
        agents.append(_agent_form(tree, recall, agent, last[agent][rows], others, coefficients))
    if agent_states is None:
        agent_states = tree.information_state
    row = np.zeros(len(recall.player), np.int32)
    decisions = recall.at >= 0
    row[recall.at[decisions]] = agent_states[decisions]
    if not np.array_equal(row[recall.at[decisions]], agent_states[decisions]):
        raise ValueError("an agent state must be a function of what its agent has seen and done.")
    same = np.array_equal(row, np.arange(tree.num_information_states))
    return SequenceForm(tuple(agents), None if same else row)


class _Recall(NamedTuple):
    """Recall states, numbered agent by agent and level by level."""

    at: Int[np.ndarray, "N"]
    """The recall state of each decision; -1 elsewhere."""
    information_state: Int[np.ndarray, "R"]
    player: Int[np.ndarray, "R"]
    level: Int[np.ndarray, "R"]
    parent: Int[np.ndarray, "R"]
    """The recall state of the agent's previous turn; -1 at its first."""
    parent_action: Int[np.ndarray, "R"]


def _recall_states(tree: trees.Tree) -> _Recall:
    everywhere = np.arange(tree.num_histories)
    agents = np.maximum(tree.player, 0)
    before = tree.previous_decision[everywhere, agents]
    action = tree.previous_action[everywhere, agents]
    turns = trees.own_turns(tree.parent, tree.player, tree.levels, tree.num_agents)
    decisions = np.flatnonzero(tree.player >= 0)
    provisional = np.full(tree.num_histories, -1, np.int64)
    representatives: list[np.ndarray] = []
    count = 0
    for turn in range(int(turns[decisions].max(initial=-1)) + 1):
        rows = decisions[turns[decisions] == turn]
        earlier = np.where(before[rows] >= 0, provisional[before[rows]], -1)
        identity = (earlier + 1) * (tree.num_actions + 1) + action[rows] + 1
        identity = identity * tree.num_information_states + tree.information_state[rows]
        _, first, inverse = np.unique(identity, return_index=True, return_inverse=True)
        provisional[rows] = count + inverse.reshape(-1)
        representatives.append(rows[first])
        count += len(first)
    witness = np.concatenate(representatives) if representatives else np.zeros(0, np.int64)
    state = tree.information_state[witness]
    # Rows of the tree are in the order of agents and own turns already: with perfect recall this order
    # is theirs.
    order = np.lexsort((state, turns[witness], tree.player[witness]))
    number = np.full(count + 1, -1, np.int64)
    number[order] = np.arange(count)
    witness = witness[order]
    return _Recall(
        at=number[provisional],
        information_state=tree.information_state[witness],
        player=tree.player[witness],
        level=turns[witness],
        parent=np.where(before[witness] >= 0, number[provisional[before[witness]]], -1),
        parent_action=action[witness],
    )


def _chance_reach(tree: trees.Tree) -> Float[np.ndarray, "N"]:
    """The probability of all chance outcomes on the way to each history."""
    reach = tree.chance.copy()
    for start, stop in itertools.pairwise(tree.levels[1:]):
        reach[start:stop] *= reach[tree.parent[start:stop]]
    return reach


def _last_sequence(tree: trees.Tree, recall: _Recall, agent: int) -> Int[np.ndarray, "N"]:
    """The place in the agent's plan of the last sequence on the way to each history; 0 for none."""
    before = tree.previous_decision[:, agent]
    first = int(np.searchsorted(recall.player, agent))
    place = (recall.at[before] - first) * tree.num_actions + tree.previous_action[:, agent] + 1
    return np.where(before >= 0, place, 0)


def _agent_form(
    tree: trees.Tree,
    recall: _Recall,
    agent: int,
    own: Int[np.ndarray, "Z"],
    others: Sequence[Int[np.ndarray, "Z"]],
    coefficients: Float[np.ndarray, "Z"],
) -> AgentForm:
    num_actions = tree.num_actions
    first, stop = np.searchsorted(recall.player, [agent, agent + 1])
    levels = recall.level[first:stop]
    bounds = first + np.searchsorted(levels, np.arange(levels.max(initial=-1) + 2))
    by_own = np.argsort(own, kind="stable")
    own, coefficients = own[by_own], coefficients[by_own]
    others = [other[by_own] for other in others]
    forms = []
    for depth in range(len(bounds) - 1):
        start, end = bounds[depth], bounds[depth + 1]
        below = bounds[depth + 2] if depth + 2 < len(bounds) else end
        offset = 1 + (start - first) * num_actions  # of this level in the agent's plan
        size = (end - start) * num_actions
        inside = slice(*np.searchsorted(own, [offset, offset + size]))
        rewards, rewards_owner = _sums(
            own[inside] - offset, [other[inside] for other in others], coefficients[inside]
        )
        parents = (recall.parent[end:below] - start) * num_actions + recall.parent_action[end:below]
        by_parent = np.argsort(parents, kind="stable")
        children, children_owner = _sums(parents[by_parent], [by_parent], np.ones(below - end))
        legal = tree.legal[recall.information_state[start:end]].reshape(-1)
        source, both = _sources(legal, rewards_owner, children_owner)
        above = bounds[depth - 1] if depth else 0
        parent = (recall.parent[start:end] - above) * num_actions + recall.parent_action[start:end]
        forms.append(
            Level(
                parent=np.where(recall.parent[start:end] >= 0, parent, 0).astype(np.int32),
                rewards=rewards,
                rewards_owner=rewards_owner.astype(np.int32),
                children=children,
                both=both,
                source=source.reshape(-1, num_actions),
            )
        )
    unowned = slice(0, np.searchsorted(own, 1))
    at_root, _ = _sums(own[unowned], [other[unowned] for other in others], coefficients[unowned])
    return AgentForm(tuple(forms), at_root)


def _sources(
    legal: np.ndarray, rewards_owner: np.ndarray, children_owner: np.ndarray
) -> tuple[Int[np.ndarray, "sequences"], tuple[np.ndarray, np.ndarray]]:
    """Where each sequence of a level finds its value, and the sequences that need a sum of sums."""
    source = np.where(legal, NOTHING, ILLEGAL).astype(np.int32)
    source[rewards_owner] = FIRST_SUM + np.arange(len(rewards_owner))
    source[children_owner] = FIRST_SUM + len(rewards_owner) + np.arange(len(children_owner))
    shared, in_rewards, in_children = np.intersect1d(rewards_owner, children_owner, return_indices=True)
    source[shared] = FIRST_SUM + len(rewards_owner) + len(children_owner) + np.arange(len(shared))
    return source, (in_rewards.astype(np.int32), in_children.astype(np.int32))


def _sums(
    owner: Int[np.ndarray, "E"], factors: Sequence[Int[np.ndarray, "E"]], coefficient: Float[np.ndarray, "E"]
) -> tuple[Sums, Int[np.ndarray, "groups"]]:
    """Sums of the entries of each owner, given in the order of owners; and the owners, in their order."""
    owners, starts, sizes = np.unique(owner, return_index=True, return_counts=True)
    # A block for each power of two wastes at most half; a block for each size wastes nothing, and is
    # taken where there are few sizes.
    kinds = np.unique(sizes)
    widths = sizes if len(kinds) <= 3 else 2 ** np.ceil(np.log2(sizes)).astype(np.int64)
    blocks, order = [], []
    for width in np.unique(widths):
        chosen = np.flatnonzero(widths == width)
        columns = np.arange(min(width, sizes[chosen].max()))
        inside = columns < sizes[chosen][:, None]
        entries = np.where(inside, starts[chosen][:, None] + columns, starts[chosen][:, None])
        blocks.append(
            Block(
                places=tuple(factor[entries].astype(np.int32) for factor in factors),
                coefficient=np.where(inside, coefficient[entries], 0.0),
            )
        )
        order.append(owners[chosen])
    return tuple(blocks), np.concatenate(order) if order else np.zeros(0, np.int64)
