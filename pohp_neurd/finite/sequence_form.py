"""A tree as each agent's sequences: what makes exact evaluation fast (von Stengel 1996).

A sequence is an information state of one agent and an action there, or nothing at all. A history is
reached with the product of chance and each agent's realization plan at its last sequence. So one gather,
multiply and sum over the histories with a reward, which mostly are terminal, replaces a walk over all
histories, and one sweep over an agent's own turns replaces a walk for each of its decisions.

Best responses are over *recall states*: information states, told apart by the agent's own earlier states
and actions. Where the game has perfect recall, as games should, they are the information states themselves.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from pohp_neurd.finite import tree as trees

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
    """All recall states of one agent after the same number of its own decisions, sorted by their width.

    Every state has a slot for each of its legal actions, in rectangles of like width: a game with many
    actions and few of them legal, such as liar's dice, costs what its legal actions cost.
    """

    parent: Int[Any, "n"]
    """Their parent sequences' slots in the level above."""
    rewards: Sums
    """Over the rewards after a sequence and before the next; factors are the other agents' plans."""
    rewards_owner: Int[Any, "t"]
    """The slots of those sequences in this level."""
    children: Sums
    """Over the next turns that follow a sequence; the factor is the value of a state one level below."""
    both: tuple[Int[Any, "m"], Int[Any, "m"]]
    """Sequences that have sums of both kinds: their places in the one list and in the other."""
    sources: tuple[Int[Any, "n width"], ...]
    """A rectangle each: the places of the actions' values among the two constants, then sums of rewards,
    of children, of both."""


class AgentForm(NamedTuple):
    """One agent's sequences."""

    levels: tuple[Level, ...]
    at_root: Sums
    """Over the rewards before the agent has ever acted: one group, or none."""
    entry: Int[Any, "slots"]
    """For every slot of every level, which entry of the policy table it is; -1 for padding."""


class SequenceForm(NamedTuple):
    """All agents' sequences, as a pytree of arrays to be passed through jit.

    A plan of an agent is 1 for the empty sequence, then the slots of all its levels.
    """

    agents: tuple[AgentForm, ...]
    slot: Int[Any, "S A"] | None
    """For every entry of the policy table its slot, all agents' slots in a row; -1 at illegal actions.
    None where several recall states share a row of the table: then a table has no slot of its own."""


class _Rectangle(NamedTuple):
    """States of one level and one width."""

    states: Int[np.ndarray, "n"]
    """Recall states."""
    actions: Int[np.ndarray, "n width"]
    """Their legal actions; -1 for padding."""


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


class _Slots(NamedTuple):
    """Where an agent's sequences stand in its plan."""

    levels: list[list[_Rectangle]]
    offsets: list[int]
    """The first slot of each level in the plan."""
    of: Int[np.ndarray, "R A"]
    """The slot of every recall state and action in its level; -1 where there is none."""
    state: Int[np.ndarray, "slots"]
    """The recall state of every slot."""
    action: Int[np.ndarray, "slots"]
    """Its action; -1 for padding."""


class Layout(NamedTuple):
    """What a form and its arrivals have in common."""

    recall: _Recall
    slots: list[_Slots]
    last: list[Int[np.ndarray, "N"]]
    """Of every agent, the place in its plan of the last sequence on the way to each history; 0 for none."""
    padding: int


def layout(tree: trees.Tree, *, padding: int = 0) -> Layout:
    """Where the sequences of `tree` stand.

    A rectangle joins the next wider one where that takes at most `padding` entries more: less to compile.
    """
    recall = _recall_states(tree)
    slots = [_slots(tree, recall, agent, padding) for agent in range(tree.num_agents)]
    last = [_last_sequence(tree, recall, slots[agent], agent) for agent in range(tree.num_agents)]
    return Layout(recall, slots, last, padding)


def build(
    tree: trees.Tree, agent_states: Int[np.ndarray, "N"] | None = None, laid_out: Layout | None = None
) -> SequenceForm:
    """The sequence form of `tree`, in numpy and float64.

    `agent_states` are the policy's rows at every decision, where they are not the information states.
    """
    recall, slots, last, padding = laid_out or layout(tree)
    if agent_states is None:
        agent_states = tree.information_state
    row = np.zeros(len(recall.player), np.int64)
    decisions = recall.at >= 0
    row[recall.at[decisions]] = agent_states[decisions]
    if not np.array_equal(row[recall.at[decisions]], agent_states[decisions]):
        raise ValueError("an agent state must be a function of what its agent has seen and done.")
    chance = tree.chance_reach
    entries = [
        np.where(each.action >= 0, row[each.state] * tree.num_actions + each.action, -1).astype(np.int32)
        for each in slots
    ]
    agents = []
    for agent in range(tree.num_agents):
        rows = np.flatnonzero(tree.rewards[:, agent])
        others = [last[other][rows] for other in range(tree.num_agents) if other != agent]
        coefficients = tree.rewards[rows, agent] * chance[rows]
        levels, at_root = _sweeps(recall, slots[agent], last[agent][rows], others, coefficients, padding)
        agents.append(AgentForm(levels, at_root, entries[agent]))
    shared = len(np.unique(row)) < len(row)
    return SequenceForm(tuple(agents), None if shared else _slot_table(tree, entries))


class Arrivals(NamedTuple):
    """What it takes to know how probable chance and the other agents make each information state."""

    sums: tuple[Sums, ...]
    """Part by part, over the histories of each of its states; factors are the other agents' plans."""
    place: Int[Any, "S"]
    """Each information state's place among all these sums."""


def arrivals(
    tree: trees.Tree,
    parts: Sequence[Int[np.ndarray, "_"]] | None = None,
    laid_out: Layout | None = None,
) -> Arrivals:
    """The sums over the histories of every information state, for plans of a form of the same layout.

    `parts` are all information states, each the states of one agent; by default one part an agent. Needs
    perfect recall, as `build` tells.
    """
    if parts is None:
        parts = [np.flatnonzero(tree.state_player == agent) for agent in range(tree.num_agents)]
    _, _, last, padding = laid_out or layout(tree)
    chance = tree.chance_reach
    sums, owners = [], []
    ordered = np.argsort(tree.information_state, kind="stable")
    part_of = np.full(tree.num_information_states + 1, -1)  # the last entry is that of -1, no state
    for part, members in enumerate(parts):
        part_of[members] = part
    inside = part_of[tree.information_state[ordered]]
    for part, members in enumerate(parts):
        rows, agent = ordered[inside == part], tree.state_player[members[:1]].sum()
        others = [last[other][rows] for other in range(tree.num_agents) if other != agent]
        found, states = _sums(tree.information_state[rows], others, chance[rows], padding)
        sums.append(found)
        owners.append(states)
    order = np.concatenate(owners)
    place = np.zeros(len(order), np.int32)
    place[order] = np.arange(len(order))
    return Arrivals(tuple(sums), place)


def _recall_states(tree: trees.Tree) -> _Recall:
    before, action, turns = (
        trees.at_turn(values, tree.player)
        for values in (tree.previous_decision, tree.previous_action, tree.turns)
    )
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


def _slots(tree: trees.Tree, recall: _Recall, agent: int, padding: int) -> _Slots:
    first, stop = np.searchsorted(recall.player, [agent, agent + 1])
    levels, offsets = [], []
    of = np.full((len(recall.player), tree.num_actions), -1, np.int32)
    plan = 1
    sizes = tree.legal[recall.information_state].sum(axis=1)
    if padding:  # few widths in all levels together, for at most an eighth more
        eighth = int(sizes[first:stop].sum()) // 8
        for chosen, width in _widths(sizes[first:stop], max(padding, eighth)):
            sizes[first + chosen] = width
    for depth in range(int(recall.level[first:stop].max(initial=-1)) + 1):
        states = first + np.flatnonzero(recall.level[first:stop] == depth)
        legal = tree.legal[recall.information_state[states]]
        rectangles, within = [], 0
        for chosen, width in _widths(sizes[states], padding):
            # The positions of the legal actions, in order, then padding.
            ranks = np.argsort(~legal[chosen], axis=1, kind="stable")[:, :width]
            actions = np.where(np.take_along_axis(legal[chosen], ranks, axis=1), ranks, -1)
            place = within + np.arange(actions.size).reshape(actions.shape)
            real = actions >= 0
            of[np.repeat(states[chosen], real.sum(axis=1)), actions[real]] = place[real]
            rectangles.append(_Rectangle(states[chosen], actions))
            within += actions.size
        levels.append(rectangles)
        offsets.append(plan)
        plan += within
    parts = [part for rectangles in levels for part in rectangles]
    none = np.zeros(0, np.int64)
    state = np.concatenate([none, *(np.repeat(part.states, part.actions.shape[1]) for part in parts)])
    action = np.concatenate([none, *(part.actions.reshape(-1) for part in parts)])
    return _Slots(levels, offsets, of, state, action)


def _slot_table(tree: trees.Tree, entries: list[Int[np.ndarray, "_"]]) -> Int[np.ndarray, "S A"]:
    joined = np.concatenate(entries)
    table = np.full(tree.legal.size, -1, np.int32)
    real = joined >= 0
    table[joined[real]] = np.flatnonzero(real)
    return table.reshape(tree.legal.shape)


def _last_sequence(tree: trees.Tree, recall: _Recall, slots: _Slots, agent: int) -> Int[np.ndarray, "N"]:
    before = tree.previous_decision[:, agent]
    acted = np.flatnonzero(before >= 0)
    state = recall.at[before[acted]]
    place = np.zeros(tree.num_histories, np.int64)
    offsets = np.array(slots.offsets or [0])
    place[acted] = offsets[recall.level[state]] + slots.of[state, tree.previous_action[acted, agent]]
    return place


def _sweeps(
    recall: _Recall,
    slots: _Slots,
    own: Int[np.ndarray, "Z"],
    others: Sequence[Int[np.ndarray, "Z"]],
    coefficients: Float[np.ndarray, "Z"],
    padding: int,
) -> tuple[tuple[Level, ...], Sums]:
    """The levels of one agent, and its sums at the root."""
    sums = functools.partial(_sums, padding=padding)
    by_own = np.argsort(own, kind="stable")
    own, coefficients = own[by_own], coefficients[by_own]
    others = [other[by_own] for other in others]
    forms = []
    for depth, rectangles in enumerate(slots.levels):
        states = np.concatenate([rectangle.states for rectangle in rectangles])
        size = sum(rectangle.actions.size for rectangle in rectangles)
        offset = slots.offsets[depth]
        inside = slice(*np.searchsorted(own, [offset, offset + size]))
        rewards, rewards_owner = sums(
            own[inside] - offset, [other[inside] for other in others], coefficients[inside]
        )
        below = slots.levels[depth + 1] if depth + 1 < len(slots.levels) else []
        next_states = np.concatenate([np.zeros(0, np.int64), *[rectangle.states for rectangle in below]])
        parents = slots.of[recall.parent[next_states], recall.parent_action[next_states]]
        by_parent = np.argsort(parents, kind="stable")
        children, children_owner = sums(parents[by_parent], [by_parent], np.ones(len(parents)))
        source, both = _sources(rectangles, rewards_owner, children_owner)
        parent = slots.of[recall.parent[states], recall.parent_action[states]]
        forms.append(
            Level(
                parent=np.where(recall.parent[states] >= 0, parent, 0).astype(np.int32),
                rewards=rewards,
                rewards_owner=rewards_owner.astype(np.int32),
                children=children,
                both=both,
                sources=source,
            )
        )
    unowned = slice(0, np.searchsorted(own, 1))
    at_root, _ = sums(own[unowned], [other[unowned] for other in others], coefficients[unowned])
    return tuple(forms), at_root


def _sources(
    rectangles: list[_Rectangle], rewards_owner: np.ndarray, children_owner: np.ndarray
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, np.ndarray]]:
    """Where each slot of a level finds its value, and the slots that need a sum of sums."""
    legal = np.concatenate([rectangle.actions.reshape(-1) >= 0 for rectangle in rectangles])
    source = np.where(legal, NOTHING, ILLEGAL).astype(np.int32)
    source[rewards_owner] = FIRST_SUM + np.arange(len(rewards_owner))
    source[children_owner] = FIRST_SUM + len(rewards_owner) + np.arange(len(children_owner))
    shared, in_rewards, in_children = np.intersect1d(rewards_owner, children_owner, return_indices=True)
    source[shared] = FIRST_SUM + len(rewards_owner) + len(children_owner) + np.arange(len(shared))
    bounds = np.cumsum([rectangle.actions.size for rectangle in rectangles])[:-1]
    pieces = [
        piece.reshape(rectangle.actions.shape)
        for piece, rectangle in zip(np.split(source, bounds), rectangles, strict=True)
    ]
    return tuple(pieces), (in_rewards.astype(np.int32), in_children.astype(np.int32))


def _widths(
    sizes: Int[np.ndarray, "groups"], padding: int
) -> Iterator[tuple[Int[np.ndarray, "chosen"], int]]:
    """Groups of like size, with the width of a rectangle that holds them.

    A rectangle for each size wastes nothing, and is taken where there are few sizes; one for each power of
    two wastes at most half. One joins the next wider for at most `padding` entries.
    """
    few = len(np.unique(sizes)) <= 3
    classes = sizes if few else np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64)
    joined: list[tuple[np.ndarray, int]] = []
    for kind in np.unique(classes):
        chosen = np.flatnonzero(classes == kind)
        width = int(sizes[chosen].max())
        if joined and len(joined[-1][0]) * (width - joined[-1][1]) <= padding:
            chosen = np.sort(np.concatenate([joined.pop()[0], chosen]))
        joined.append((chosen, width))
    yield from joined


def _sums(
    owner: Int[np.ndarray, "E"],
    factors: Sequence[Int[np.ndarray, "E"]],
    coefficient: Float[np.ndarray, "E"],
    padding: int = 0,
) -> tuple[Sums, Int[np.ndarray, "groups"]]:
    """Sums of the entries of each owner, given in the order of owners; and the owners, in their order."""
    owners, starts, sizes = np.unique(owner, return_index=True, return_counts=True)
    blocks, order = [], []
    for chosen, width in _widths(sizes, padding):
        columns = np.arange(width)
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
