"""Slow exact truth in numpy float64: what the package computes fast, written down the other way round."""

import itertools

import jax
import numpy as np

from pohp_neurd.finite import tree


def softmax(logits, legal):
    """Softmax over legal actions, one exponential at a time."""
    weights = [np.exp(np.float64(x) - np.max(np.asarray(logits, np.float64)[legal])) for x in logits]
    total = sum(w for w, ok in zip(weights, legal, strict=True) if ok)
    return np.array([w / total if ok else 0.0 for w, ok in zip(weights, legal, strict=True)])


def action_values(return_, action, probabilities, exploration, baseline=0.0):
    """Definition 1 of the paper around a baseline, action by action."""
    estimates = []
    for a in range(len(probabilities)):
        beta = min(1.0, probabilities[a] + exploration)
        estimates.append(baseline + ((return_ - baseline) / beta if a == action else 0.0))
    return np.array(estimates)


def advantages(return_, action, probabilities, exploration, baseline=0.0):
    """q̂(a) − v̂ with v̂ = Σ π q̂: the definition from which the paper's formula follows."""
    estimates = action_values(return_, action, probabilities, exploration, baseline)
    return estimates - np.dot(probabilities, estimates)


def moments(samples, probabilities):
    """Mean and variance of a vector that is `samples[A]` with probability `probabilities[A]`."""
    samples, probabilities = np.asarray(samples, np.float64), np.asarray(probabilities, np.float64)
    mean = sum(p * x for p, x in zip(probabilities, samples, strict=True))
    return mean, sum(p * (x - mean) ** 2 for p, x in zip(probabilities, samples, strict=True))


def n_step_return(rewards, continuations, next_values, start, steps, bootstrap):
    """Σ_k (Π_{j<k} γ) r + (Π γ) b V after `steps` rewards from decision `start`."""
    total, weight = 0.0, 1.0
    for t in range(start, start + steps):
        total += weight * rewards[t]
        weight *= continuations[t]
    return total + weight * bootstrap[start + steps - 1] * next_values[start + steps - 1]


def truncated_lambda_returns(rewards, continuations, next_values, steps, lambda_, bootstrap):
    """The forward view: a mixture of n-step returns with weights (1 − λ) λ^(n−1), the rest on the longest."""
    count = len(rewards)
    bootstrap = np.broadcast_to(bootstrap, count)
    returns = []
    for start in range(count):
        longest = min(steps, count - start)
        total = 0.0
        for n in range(1, longest + 1):
            weight = lambda_ ** (n - 1) * ((1 - lambda_) if n < longest else 1.0)
            total += weight * n_step_return(rewards, continuations, next_values, start, n, bootstrap)
        returns.append(total)
    return np.array(returns)


def finite_differences(function, point, step=1e-6):
    """The gradient of a scalar function by central differences, entry by entry."""
    point = np.array(point, np.float64)
    gradient = np.zeros_like(point)
    for place in np.ndindex(point.shape):
        moved = [point.copy(), point.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        gradient[place] = (float(function(moved[0])) - float(function(moved[1]))) / (2 * step)
    return gradient


def tree_returns(world, policy):
    """(reach probability, rewards of all agents added up) of every terminal history, path by path."""
    terminals = []
    for row in np.flatnonzero(world.player == tree.TERMINAL):
        reach, total = 1.0, world.rewards[row].copy()
        while world.parent[row] >= 0:
            above = world.parent[row]
            reach *= world.chance[row]
            if world.player[above] >= 0:
                reach *= policy[world.information_state[above], world.incoming_action[row]]
            total += world.rewards[above]
            row = above
        terminals.append((reach, total))
    return terminals


def expected_return(process, policy, history, agent=0):
    """Exact expected return of `agent` that follows `history`, by playing every action of everybody.

    The process must be without chance; `policy(history)` are the active agent's probabilities.
    """
    apply = jax.jit(lambda history, action: process.apply(history, action, key=jax.random.key(0)))
    answers = (process.continuation, process.legal_actions, process.reward, policy)
    look = jax.jit(lambda history: [answer(history) for answer in answers])

    def value(history):
        going, legal, _, probabilities = (np.asarray(x) for x in look(history))
        total = 0.0
        for action in np.flatnonzero(legal & (probabilities > 0) & (going > 0)):
            after = apply(history, np.int32(action))
            total += float(probabilities[action]) * (float(look(after)[2][agent]) + value(after))
        return float(going) * total

    return value(history)


def pure_policies(legal):
    """All deterministic policies of an [S, A] mask, as one-hot tables."""
    eye = np.eye(legal.shape[1])
    for choice in itertools.product(*(np.flatnonzero(row) for row in legal)):
        yield eye[list(choice)]
