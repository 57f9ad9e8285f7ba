"""Best responses with perfect recall on a graph: depth first over all that a responder can see and do.

A belief is a short list of (node, weight), all with the same past for the responder; the weight is chance
times the opponents' reach. After each action chance and the opponents move until the responder is to act
again, equal nodes are merged on the way, and what arrives is split by what the responder then sees. Nothing
is stored but one path, so that memory does not grow with the number of information states. Compiled with
numba: millions of tiny beliefs are neither array work nor what XLA is good at.
"""

import concurrent.futures
import inspect
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from jaxtyping import Bool, Float, Int

from pohp_neurd.finite import graph

_EDGE = np.dtype([("child", np.int32), ("probability", np.float64), ("reward", np.float64)], align=True)


class Moves(NamedTuple):
    """A graph as one responder sees it, the others' policies filled in."""

    is_own: Bool[np.ndarray, "N"]
    """Whether the responder moves."""
    first_edge: Int[np.ndarray, "N1"]
    edges: np.ndarray
    """[E] of _EDGE: the child, -1 where the responder does not move again; the probability, of chance and
    opponents; the responder's reward, with all that follows where it does not move again."""
    seen: Int[np.ndarray, "N"]
    """What the responder sees where it moves."""
    level: Int[np.ndarray, "N"]
    levels: Int[np.ndarray, "L"]
    """The first node of every level: nodes are numbered level by level."""


def moves(world: graph.Graph, table: Float[np.ndarray, "S A"], agent: int) -> Moves:
    """`world` as `agent` sees it while the others follow `table`.

    Where the agent will not move again the rest of the game is an expectation: it is taken here, once for
    every node, and not once for every belief.
    """
    own = world.player == agent
    edges = np.zeros(len(world.child), _EDGE)
    edges["child"], edges["probability"] = world.child, world.probabilities(table)
    edges["reward"] = world.rewards[:, agent]
    over, worth = np.append(~own, True), np.zeros(len(own) + 1)  # the last is the end of the game
    for nodes, places in reversed(world.by_level()):
        mine, cuts = edges[places], world.first_edge[nodes] - places.start
        ends = over[mine["child"]]
        mine["reward"] += np.where(ends, worth[mine["child"]], 0.0)
        mine["child"] = np.where(ends, -1, mine["child"])
        over[nodes] &= np.logical_and.reduceat(ends | (mine["probability"] == 0), cuts)
        worth[nodes] = np.add.reduceat(mine["probability"] * mine["reward"], cuts)
    return Moves(own, world.first_edge, edges, world.seen, world.level, world.levels)


class Response(NamedTuple):
    """What a best response is worth."""

    value: float
    information_states: int
    """How many the responder can come to. All of them were visited."""


def best_response(
    moves: Moves,
    *,
    max_information_states: int,
    num_threads: int | None = None,
    progress: Callable[[int], Any] = lambda count: None,
) -> Response:
    """The value of a best response from the root, node 0, and how many information states it can come to.

    What follows the responder's first two moves is independent, and is shared out over threads. `progress`
    is told how many information states have been visited since its last call.
    """
    tasks: list[_Belief] = []
    count = 0
    work = _work(moves, max_information_states)
    work.mass[0], work.waiting[0], work.filled[0] = 1.0, 0, 1

    def parts(start: int, stop: int) -> list[_Belief]:
        """The arrivals between two places of the path, cut by what is seen."""
        nodes, weights = work.nodes[start:stop].copy(), work.weights[start:stop].copy()
        cuts = np.flatnonzero(np.diff(moves.seen[nodes])) + 1
        return list(zip(np.split(nodes, cuts), np.split(weights, cuts), strict=True)) if len(nodes) else []

    def planned(belief: _Belief, depth: int) -> Callable[[np.ndarray], float]:
        """The value at `belief` as a function of the values of the tasks below it."""
        nonlocal count
        if depth == 0:
            tasks.append(belief)
            place = len(tasks) - 1
            return lambda values: values[place]
        count += 1
        first, size = moves.first_edge[belief[0][0] : belief[0][0] + 2], len(belief[0])
        options = []
        for action in range(first[1] - first[0]):
            work.nodes[:size], work.weights[:size] = belief
            earned, stop = _act(moves, work, action, 0, size, size)
            options.append((earned, [planned(part, depth - 1) for part in parts(size, stop)]))
        return lambda values: max(
            earned + sum(value(values) for value in following) for earned, following in options
        )

    earned, stop = _settle(moves, work, 0, 0, 0)
    _sort(moves, work, 0, stop)
    total = [planned(part, 2) for part in parts(0, stop)]
    values = np.zeros(len(tasks))
    threads = num_threads or len(os.sched_getaffinity(0))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        running = {
            pool.submit(_solved, moves, belief, max_information_states): place
            for place, belief in enumerate(tasks)
        }
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
    return Response(float(earned + sum(value(values) for value in total)), count)


_Belief = tuple[np.ndarray, np.ndarray]


class _Work(NamedTuple):
    """Where one thread works."""

    nodes: np.ndarray
    """Beliefs of the path so far, one after the other."""
    weights: np.ndarray
    mass: np.ndarray
    """Of the nodes that wait for chance and opponents to move; 0 elsewhere."""
    waiting: np.ndarray
    """At each level's place, the nodes of that level that wait."""
    filled: np.ndarray
    """How many wait at each level."""
    visited: np.ndarray
    """Information states so far, and how many there may be."""


def _work(moves: Moves, limit: int, room: int | None = None) -> _Work:
    count = len(moves.level)
    room = 2 * count + 64 if room is None else room
    return _Work(
        nodes=np.zeros(room, np.int32),
        weights=np.zeros(room),
        mass=np.zeros(count),
        waiting=np.zeros(count, np.int32),
        filled=np.zeros(len(moves.levels) + 1, np.int64),
        visited=np.array([0, limit], np.int64),
    )


def _solved(moves: Moves, belief: _Belief, limit: int) -> tuple[float, int]:
    size = len(belief[0])
    room = None
    while True:
        work = _work(moves, limit, room)
        work.nodes[:size], work.weights[:size] = belief
        value = _value(moves, work, 0, size, size)
        visited = int(work.visited[0])
        if not np.isnan(value) or visited > limit:
            return value, visited
        room = 2 * len(work.nodes)  # the path did not fit


def _compiled(function: Callable[..., Any]) -> Any:
    # Unwrapped: the shape checks of the tests wrap every function, and numba compiles plain ones only.
    return numba.njit(nogil=True, cache=True)(inspect.unwrap(function))


@_compiled
def _settle(moves: Any, work: Any, low: int, high: int, at: int) -> Any:
    """Lets chance and opponents move until the responder is to act; arrivals are written from `at` on.

    Waiting nodes stand in `work.waiting`, level by level from `low` to `high`, their weights in `work.mass`,
    which is 0 again afterwards. Edges lead one level down: a node has all its weight when its level comes.
    """
    earned = 0.0
    end = at
    depth = low
    while depth <= high:
        place = moves.levels[depth]
        for waiting in range(place, place + work.filled[depth]):
            node = work.waiting[waiting]
            weight = work.mass[node]
            work.mass[node] = 0.0
            if moves.is_own[node]:
                if end == len(work.nodes):
                    return earned, -1
                work.nodes[end] = node
                work.weights[end] = weight
                end += 1
                continue
            for place_of_edge in range(moves.first_edge[node], moves.first_edge[node + 1]):
                edge = moves.edges[place_of_edge]
                share = weight * edge.probability
                if share == 0.0:
                    continue
                earned += share * edge.reward
                following = edge.child
                if following >= 0:
                    if work.mass[following] == 0.0:
                        work.waiting[moves.levels[depth + 1] + work.filled[depth + 1]] = following
                        work.filled[depth + 1] += 1
                        high = max(high, depth + 1)
                    work.mass[following] += share
        work.filled[depth] = 0
        depth += 1
    return earned, end


@_compiled
def _sort(moves: Any, work: Any, begin: int, end: int) -> None:
    """Arrivals with the same sight side by side."""
    if end - begin > 48:
        order = np.argsort(moves.seen[work.nodes[begin:end]], kind="mergesort")
        work.nodes[begin:end] = work.nodes[begin:end][order]
        work.weights[begin:end] = work.weights[begin:end][order]
        return
    for i in range(begin + 1, end):
        node, weight = work.nodes[i], work.weights[i]
        sight = moves.seen[node]
        j = i
        while j > begin and moves.seen[work.nodes[j - 1]] > sight:
            work.nodes[j] = work.nodes[j - 1]
            work.weights[j] = work.weights[j - 1]
            j -= 1
        work.nodes[j], work.weights[j] = node, weight


@_compiled
def _act(moves: Any, work: Any, action: int, begin: int, end: int, free: int) -> Any:
    """What `action` earns at the belief from `begin` to `end`; arrivals are sorted, from `free` on."""
    earned = 0.0
    low, high = len(work.filled), -1
    for place in range(begin, end):
        node, weight = work.nodes[place], work.weights[place]
        edge = moves.edges[moves.first_edge[node] + action]
        earned += weight * edge.reward
        following = edge.child
        if following >= 0:
            depth = moves.level[following]
            if work.mass[following] == 0.0:
                work.waiting[moves.levels[depth] + work.filled[depth]] = following
                work.filled[depth] += 1
            work.mass[following] += weight
            low, high = min(low, depth), max(high, depth)
    more, stop = _settle(moves, work, low, high, free)
    if stop >= 0:
        _sort(moves, work, free, stop)
    return earned + more, stop


@_compiled
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
