"""Best responses with perfect recall on a graph: depth first over all that a responder can see and do.

A belief is a short list of (node, weight), all with the same past for the responder; the weight is chance
times the opponents' reach. After each action chance and the opponents move until the responder is to act
again: where that leads is computed once for every node, before the search. Equal nodes are merged, and what
arrives is split by what the responder then sees. Nothing is stored but one path, so that memory does not
grow with the number of information states. Compiled with numba: millions of tiny beliefs are neither array
work nor what XLA is good at.
"""

import concurrent.futures
import inspect
import os
import queue
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from jaxtyping import Float, Int

from pohp_neurd.finite import graph

# Unsigned, as numba asks of every signed index whether it counts from the end.
_EDGE = np.dtype([("reward", np.float64), ("start", np.uint32), ("stop", np.uint32)], align=True)

_TASKS = 128  # enough to keep all threads at work to the end; thousands would cost more than they share out


class Moves(NamedTuple):
    """A graph as one responder sees it, the others' policies filled in. Nodes are those where it moves."""

    first_edge: Int[np.ndarray, "M1"]
    edges: np.ndarray
    """[E] of _EDGE: what the responder earns before it moves again, on average, and which replies follow. The
    last edge leads to the first turn."""
    seen: Int[np.ndarray, "M"]
    """What the responder sees."""
    reply_node: Int[np.ndarray, "R"]
    """Where the responder moves next."""
    reply_chance: Float[np.ndarray, "R"]


def moves(world: graph.Graph, table: Float[np.ndarray, "S A"], agent: int) -> Moves:
    """`world` as `agent` sees it while the others follow `table`."""
    own = world.player == agent
    number = np.where(own, np.cumsum(own) - 1, -1).astype(np.int32)
    replies = _replies(
        number, world.first_edge, world.child, world.probabilities(table), world.rewards[:, agent]
    )
    earned, start, stop, node, chance = replies
    mine = own[world.source]
    child = np.append(world.child[mine], 0)  # the last leads to the root
    edges = np.zeros(len(child), _EDGE)
    edges["reward"][:-1] = world.rewards[mine, agent]
    edges["reward"] += earned[child]
    edges["start"], edges["stop"] = start[child], stop[child]
    first_edge = np.append(0, np.cumsum(np.diff(world.first_edge)[own]))
    return Moves(first_edge, edges, world.seen[own], node, chance)


class Response(NamedTuple):
    """What a best response is worth."""

    value: float
    information_states: int
    """How many the responder can come to. All of them were visited."""


class Belief(NamedTuple):
    """Where the responder may be, with the same past for it."""

    nodes: Int[np.ndarray, "b"]
    weights: Float[np.ndarray, "b"]


def best_response(
    moves: Moves,
    *,
    max_information_states: int,
    num_threads: int | None = None,
    progress: Callable[[int], Any] = lambda count: None,
) -> Response:
    """The value of a best response from the root, and how many information states it can come to.

    What follows the responder's first moves, at most two, is independent, and is shared out over threads.
    `progress` is told how many information states have been visited since its last call.
    """
    earned, parts = first_turns(moves)
    for depth in range(3):
        tasks: list[Belief] = []
        total = [_planned(moves, part, depth, tasks) for part in parts]
        if len(tasks) >= _TASKS:
            break
    count = sum(plan.information_states for plan in total)
    values = np.zeros(len(tasks))
    threads = num_threads or len(os.sched_getaffinity(0))
    desks: queue.SimpleQueue[_Work] = (
        queue.SimpleQueue()
    )  # reused, as a task is often shorter than making one
    for _ in range(threads):
        desks.put(_work(moves, max_information_states))
    # The largest first, so that no thread is left with one when the others are done.
    order = sorted(range(len(tasks)), key=lambda place: -len(tasks[place].nodes))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        running = {pool.submit(_solved, moves, desks, tasks[place]): place for place in order}
        for future in concurrent.futures.as_completed(running):
            values[running[future]], visited = future.result()
            count += visited
            progress(visited)
            if count > max_information_states:
                pool.shutdown(wait=True, cancel_futures=True)
                break
    if count > max_information_states:
        raise ValueError(
            f"a responder has more than {max_information_states:,} information states: raise "
            "max_information_states, or judge by sampled play."
        )
    return Response(float(earned + sum(plan.value(values) for plan in total)), count)


class _Plan(NamedTuple):
    """How the value at a belief follows from those of tasks, and how many information states that decides."""

    value: Callable[[np.ndarray], float]
    information_states: int


def _planned(moves: Moves, belief: Belief, depth: int, tasks: list[Belief]) -> _Plan:
    """The plan for `belief`; what is `depth` moves further on is added to `tasks`.

    Not within `best_response`: a function that calls itself there is a cycle, which would keep `moves` in
    memory until the next collection.
    """
    if depth == 0:
        tasks.append(belief)
        place = len(tasks) - 1
        return _Plan(lambda values: values[place], 0)
    options = [
        (earned, [_planned(moves, part, depth - 1, tasks) for part in parts])
        for earned, parts in options_at(moves, belief)
    ]

    def value(values: np.ndarray) -> float:
        return max(earned + sum(plan.value(values) for plan in plans) for earned, plans in options)

    return _Plan(value, 1 + sum(plan.information_states for _, plans in options for plan in plans))


def first_turns(moves: Moves) -> tuple[float, list[Belief]]:
    """What is earned before the responder's first turn, and its beliefs there."""
    edge = moves.edges[-1]
    part = slice(int(edge["start"]), int(edge["stop"]))
    work = _work(moves, 0)
    size = part.stop - part.start
    work.nodes[:size], work.weights[:size] = moves.reply_node[part], moves.reply_chance[part]
    _group(moves, work, 0, size)
    return float(edge["reward"]), _parts(moves, work, 0, size)


def options_at(moves: Moves, belief: Belief) -> list[tuple[float, list[Belief]]]:
    """For every legal action, in order, what is earned before the next turn, and the beliefs there."""
    work, size, found = _work(moves, 0), len(belief.nodes), []
    for action in range(int(np.diff(moves.first_edge[belief.nodes[0] :][:2])[0])):
        work.nodes[:size], work.weights[:size] = belief
        earned, stop = _act(moves, work, action, 0, size, size)
        found.append((earned, _parts(moves, work, size, stop)))
    return found


def values_at(moves: Moves, options: Sequence[tuple[float, list[Belief]]], limit: int) -> list[float]:
    """What each of the `options_at` a belief is worth, with best responses after it."""
    desks: queue.SimpleQueue[_Work] = queue.SimpleQueue()
    desks.put(_work(moves, limit))
    return [earned + sum(_solved(moves, desks, part)[0] for part in parts) for earned, parts in options]


class _Work(NamedTuple):
    """Where one thread works."""

    nodes: np.ndarray
    """Beliefs of the path so far, one after the other."""
    weights: np.ndarray
    place: np.ndarray
    """Where each node stands in the newest belief, if it does: what stands there tells."""
    group: np.ndarray
    """The same of each sight among the groups of the newest belief."""
    sights: np.ndarray
    """Of these groups; then their sizes."""
    sizes: np.ndarray
    sorted_nodes: np.ndarray
    sorted_weights: np.ndarray
    visited: np.ndarray
    """Information states so far, and how many there may be."""


def _work(moves: Moves, limit: int, room: int | None = None) -> _Work:
    count, sights = len(moves.seen), int(moves.seen.max(initial=-1)) + 1
    room = 2 * count + 64 if room is None else room
    return _Work(
        nodes=np.zeros(room, np.uint32),
        weights=np.zeros(room),
        place=np.zeros(count, np.uint32),
        group=np.zeros(sights, np.uint32),
        sights=np.zeros(count + 1, np.uint32),
        sizes=np.zeros(count + 1, np.uint32),
        sorted_nodes=np.zeros(count, np.uint32),
        sorted_weights=np.zeros(count),
        visited=np.array([0, limit], np.int64),
    )


def _parts(moves: Moves, work: _Work, start: int, stop: int) -> list[Belief]:
    """The arrivals between two places of the path, cut by what is seen."""
    nodes, weights = work.nodes[start:stop].copy(), work.weights[start:stop].copy()
    cuts = np.flatnonzero(np.diff(moves.seen[nodes])) + 1
    return list(map(Belief, np.split(nodes, cuts), np.split(weights, cuts))) if len(nodes) else []


def _solved(moves: Moves, desks: "queue.SimpleQueue[_Work]", belief: Belief) -> tuple[float, int]:
    size, work = len(belief.nodes), desks.get()
    while True:
        work.visited[0] = 0
        work.nodes[:size], work.weights[:size] = belief
        value = _value(moves, work, 0, size, size)
        visited, limit = work.visited.tolist()
        if not np.isnan(value) or visited > limit:
            desks.put(work)
            return value, visited
        work = _work(moves, limit, 2 * len(work.nodes))  # the path did not fit


def _compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    # Unwrapped: the shape checks of the tests wrap every function, and numba compiles plain ones only.
    return lambda function: numba.njit(nogil=True, cache=True, **options)(inspect.unwrap(function))


# What allocates nothing need not count references, which threads would do with atomic operations.
_search = _compiled(_nrt=False)


@_compiled()
def _replies(own: Any, first_edge: Any, child: Any, probability: Any, reward: Any) -> Any:
    """From every node, what the responder earns until it moves, on average, and where it moves then.

    `own` numbers the responder's nodes, and is -1 elsewhere. Returns what is earned, and the first and the
    last of the replies of every node, the end of the game last; then the replies' nodes and chances.
    """
    count = len(own)
    earned = np.zeros(count + 1)
    start, stop = np.zeros(count + 1, np.uint32), np.zeros(count + 1, np.uint32)
    place = np.zeros(count, np.uint32)
    # Far more than most graphs need: what is never written takes no memory.
    nodes, chances = np.empty(16 * count, np.uint32), np.empty(16 * count)
    end = 0
    for node in range(count - 1, -1, -1):
        begin = end
        if own[node] >= 0:
            if end == len(nodes):
                nodes, chances = np.append(nodes, nodes), np.append(chances, chances)
            nodes[end], chances[end] = own[node], 1.0
            end += 1
        else:
            for edge in range(first_edge[node], first_edge[node + 1]):
                share, following = probability[edge], child[edge]
                if share == 0.0:
                    continue
                earned[node] += share * reward[edge]
                if following < 0:
                    continue
                earned[node] += share * earned[following]
                for reply in range(start[following], stop[following]):
                    arrival = nodes[reply]
                    known = place[arrival]
                    if known < begin or known >= end or nodes[known] != arrival:
                        if end == len(nodes):
                            nodes, chances = np.append(nodes, nodes), np.append(chances, chances)
                        known = end
                        place[arrival] = end
                        nodes[end], chances[end] = arrival, 0.0
                        end += 1
                    chances[known] += share * chances[reply]
        start[node], stop[node] = begin, end
    return earned, start, stop, nodes[:end], chances[:end]


@_search
def _group(moves: Any, work: Any, begin: int, end: int) -> None:
    """Arrivals with the same sight side by side."""
    groups = 0
    for i in range(begin, end):
        sight = moves.seen[work.nodes[i]]
        group = work.group[sight]
        if group >= groups or work.sights[group] != sight:
            group = groups
            work.group[sight] = group
            work.sights[group] = sight
            work.sizes[group] = 0
            groups += 1
        work.sizes[group] += 1
    if groups <= 1:
        return
    first = 0
    for group in range(groups):
        size = work.sizes[group]
        work.sizes[group] = first
        first += size
    for i in range(begin, end):
        group = work.group[moves.seen[work.nodes[i]]]
        to = work.sizes[group]
        work.sizes[group] = to + 1
        work.sorted_nodes[to], work.sorted_weights[to] = work.nodes[i], work.weights[i]
    for i in range(end - begin):
        work.nodes[begin + i], work.weights[begin + i] = work.sorted_nodes[i], work.sorted_weights[i]


@_search
def _act(moves: Any, work: Any, action: int, begin: int, end: int, free: int) -> Any:
    """What `action` earns at the belief from `begin` to `end`; arrivals stand from `free` on, by sight."""
    earned = 0.0
    stop = free
    for i in range(begin, end):
        weight = work.weights[i]
        edge = moves.edges[moves.first_edge[work.nodes[i]] + action]
        earned += weight * edge.reward
        if stop + edge.stop - edge.start > len(work.nodes):
            return earned, -1
        for reply in range(edge.start, edge.stop):
            share = weight * moves.reply_chance[reply]
            if share == 0.0:
                continue
            arrival = moves.reply_node[reply]
            known = work.place[arrival]
            if known < free or known >= stop or work.nodes[known] != arrival:
                work.place[arrival] = stop
                work.nodes[stop] = arrival
                work.weights[stop] = share
                stop += 1
            else:
                work.weights[known] += share
    if stop > free + 1:
        _group(moves, work, free, stop)
    return earned, stop


@_search
def _value(moves: Any, work: Any, begin: int, end: int, free: int) -> float:
    """The best response's value at the belief from `begin` to `end` of the path; `free` is where it ends."""
    work.visited[0] += 1
    if work.visited[0] > work.visited[1]:
        return np.nan
    best = -np.inf
    node = work.nodes[begin]
    for action in range(moves.first_edge[node + 1] - moves.first_edge[node]):
        value, stop = _act(moves, work, action, begin, end, free)
        if stop < 0:
            return np.nan
        start = free
        while start < stop:
            sight = moves.seen[work.nodes[start]]
            following = start + 1
            while following < stop and moves.seen[work.nodes[following]] == sight:
                following += 1
            value += _value(moves, work, start, following, stop)
            start = following
        if np.isnan(value):
            return value
        best = max(best, value)
    return best
