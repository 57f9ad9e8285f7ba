"""Exact truth on a tree by plain recursion in numpy: slow, and independent of every sweep."""

import numpy as np

from pohp_neurd.finite import tree as trees


def children(tree, row):
    first = int(tree.first_child[row])
    return range(first, first + int(tree.num_children[row]))


def edge(tree, policy, state, row, child):
    if tree.player[row] == trees.CHANCE:
        return tree.chance[child]
    return policy[state[row], tree.incoming_action[child]]


def reach(tree, policy, state):
    """P[h] of every history, from the root down."""
    found = np.zeros(tree.num_histories)

    def walk(row, probability):
        found[row] = probability
        for child in children(tree, row):
            walk(child, probability * edge(tree, policy, state, row, child))

    walk(0, 1.0)
    return found


def value(tree, policy, state, row):
    """Every agent's expected return after `row`."""
    total = np.zeros(tree.num_agents)
    for child in children(tree, row):
        worth = tree.rewards[child] + value(tree, policy, state, child)
        total += edge(tree, policy, state, row, child) * worth
    return total


def state_quantities(tree, policy, state, number):
    """Realization, belief {history: probability}, and q(a) {action: value} of one agent state.

    Where it is never realized, belief and values are empty: the paper does not define them.
    """
    everywhere = reach(tree, policy, state)
    histories = [row for row in range(tree.num_histories) if state[row] == number]
    realization = sum(everywhere[row] for row in histories)
    if realization == 0:
        return 0.0, {}, {}
    belief = {row: everywhere[row] / realization for row in histories}
    action_values: dict[int, float] = {}
    for row in histories:
        agent = tree.player[row]
        for child in children(tree, row):
            action = int(tree.incoming_action[child])
            worth = (tree.rewards[child] + value(tree, policy, state, child))[agent]
            action_values[action] = action_values.get(action, 0.0) + belief[row] * worth
    return realization, belief, action_values


def best_response_value(tree, policy, state, agent):
    """The best of all the agent's pure plans over everything it has seen and done, by brute force recursion.

    Information sets of perfect recall: histories with the same own sequence of (information state, action).
    """

    def best(histories):
        """The most that the agent gets from histories that it cannot tell apart, with their weights."""
        turns: dict[int, list] = {}
        total = 0.0
        stack = list(histories)
        while stack:
            row, weight = stack.pop()
            if tree.player[row] == agent:
                turns.setdefault(int(tree.information_state[row]), []).append((row, weight))
                continue
            for child in children(tree, row):
                chance = weight * edge(tree, policy, state, row, child)
                total += chance * tree.rewards[child, agent]
                stack.append((child, chance))
        for members in turns.values():
            options = []
            for action in np.flatnonzero(tree.legal[tree.information_state[members[0][0]]]):
                below, gained = [], 0.0
                for row, weight in members:
                    child = next(c for c in children(tree, row) if tree.incoming_action[c] == action)
                    gained += weight * tree.rewards[child, agent]
                    below.append((child, weight))
                options.append(gained + best(below))
            total += max(options)
        return total

    return tree.rewards[0, agent] + best([(0, 1.0)])
