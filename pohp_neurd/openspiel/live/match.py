"""How good a player is in a game too big to solve: head-to-head matches, and a bound on exploitability.

Every figure is a mean over independent episodes with a normal 95% confidence interval, mean ± 1.96 standard
errors: good from a few hundred episodes on.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from pohp_neurd import checks
from pohp_neurd.openspiel.live import play as playing
from pohp_neurd.openspiel.live import train

NORMAL_95 = 1.959963984540054
"""Half the width of a 95% interval of the normal distribution, in standard errors."""


class Estimate(NamedTuple):
    """A mean with its 95% confidence interval."""

    mean: float
    low: float
    high: float
    num_episodes: int


class BestResponseBound(NamedTuple):
    """What learnt responders gain against a frozen policy: a lower bound on its NashConv."""

    nash_conv: Estimate
    """The sum of `gains`. True best responses gain at least as much in expectation, seat by seat."""
    gains: tuple[Estimate, ...]
    """For every seat: a responder's return there less the frozen policy's own."""


def play(
    game: str | Any,
    policies: Sequence[playing.Player],
    num_episodes: int,
    seed: int,
    *,
    block: int = playing.BLOCK,
) -> Estimate:
    """The mean return of `policies[0]` against the others, seats rotated so that it sits in each as often.

    A policy is a `play.Network`, None for uniformly random moves, or any OpenSpiel policy. Two policies
    may meet in a game for more: the others then all play the second. `num_episodes` is rounded up to a
    multiple of the number of seats. Episodes of one rotation count as one draw in the interval, which
    takes the seats' different values out of it.
    """
    world = playing.live_game(game)
    count = world.num_seats
    if not (len(policies) == count or (len(policies) == 2 and count > 2)):
        raise ValueError(f"{world.game} has {count} seats, but {len(policies)} policies were given.")
    checks.at_least("num_episodes", num_episodes, 2 * count)
    rounds = -(-num_episodes // count)
    shift = np.arange(rounds * count) % count
    seating = ((np.arange(count)[None, :] - shift[:, None]) % count).astype(np.int32)
    seating = np.minimum(seating, len(policies) - 1)
    returns = _returns(world, policies, seating, block, seed)
    mine = returns[np.arange(len(shift)), shift]
    rotations = mine.reshape(rounds, count).mean(axis=1)
    return _estimate(float(rotations.mean()), _squared_error(rotations), len(shift))


def best_response_bound(
    game: str | Any,
    frozen: playing.Player,
    *,
    num_updates: int,
    num_episodes: int,
    block: int = playing.BLOCK,
    seed: int = 0,
    responder: Callable[..., tuple[train.Trainer, train.State]] = train.responder,
) -> BestResponseBound:
    """A lower bound on the NashConv of `frozen`, from learners trained to respond to it, a seat at a time.

    Each begins as `frozen`, where that is a network, makes `num_updates` updates in its seat against
    `frozen` in all others, and is then judged over `num_episodes` fresh episodes; `frozen` itself plays as
    many in all seats, for comparison.
    `responder` is (world, frozen, seat, seed=) -> a trainer and its first state.
    """
    world = playing.live_game(game)
    checks.at_least("num_updates", num_updates)
    checks.at_least("num_episodes", num_episodes, 2)
    everywhere = np.zeros((num_episodes, world.num_seats), np.int32)
    own = _returns(world, [frozen], everywhere, block, seed, 0)
    gains, squares = [], _squared_error(own.sum(axis=1))
    for seat in range(world.num_seats):
        trainer, begun = responder(world, frozen, seat, seed=seed)
        learnt = train.network(trainer, train.advance(trainer, begun, num_updates)[0])
        seating = everywhere.copy()
        seating[:, seat] = 1
        theirs = _returns(world, [frozen, learnt], seating, block, seed, 1 + seat)[:, seat]
        gain = float(theirs.mean() - own[:, seat].mean())
        squared = _squared_error(theirs)
        gains.append(_estimate(gain, squared + _squared_error(own[:, seat]), 2 * num_episodes))
        squares += squared
    total = sum(gain.mean for gain in gains)
    return BestResponseBound(_estimate(total, squares, (1 + world.num_seats) * num_episodes), tuple(gains))


def _returns(
    world: playing.LiveGame,
    policies: Sequence[playing.Player],
    seating: np.ndarray,
    block: int,
    seed: int,
    number: int = 0,
) -> Float[np.ndarray, "E P"]:
    # A branch of its own: training with the same seed draws from other keys.
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 2), number)
    return playing.play(
        world, policies, len(seating), block=block, key=key, seating=seating, record=False
    ).returns


def _squared_error(samples: np.ndarray) -> float:
    """The variance of the mean of `samples`."""
    return float(np.var(samples, ddof=1)) / len(samples)


def _estimate(mean: float, squared_error: float, num_episodes: int) -> Estimate:
    spread = NORMAL_95 * math.sqrt(squared_error)
    return Estimate(mean, mean - spread, mean + spread, num_episodes)
