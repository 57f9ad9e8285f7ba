"""How good a player is in a game too big to solve: head-to-head matches, and a bound on exploitability.

Every figure is a mean over independent episodes with a normal 95% confidence interval, mean ± 1.96 standard
errors: good from a few hundred episodes on.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pyspiel
from jaxtyping import Float
from open_spiel.python import policy as openspiel_policy

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
    num_seeds: int = 1,
    block: int = playing.BLOCK,
    seed: int = 0,
    responder: Callable[..., tuple[train.Trainer, train.State]] = train.responder,
) -> BestResponseBound:
    """A lower bound on the NashConv of `frozen`, from learners trained to respond to it, a seat at a time.

    Each begins as `frozen`, where that is a network, makes `num_updates` updates in its seat against
    `frozen` in all others, and is judged as `bound` says; of those of `num_seeds` seeds the best is kept.
    `responder` is (world, frozen, seat, seed=) -> a trainer and its first state.
    """
    world = playing.live_game(game)
    checks.at_least("num_updates", num_updates)
    checks.at_least("num_seeds", num_seeds)

    def trained(seat: int) -> list[playing.Player]:
        found: list[playing.Player] = []
        for one in range(seed, seed + num_seeds):
            trainer, begun = responder(world, frozen, seat, seed=one)
            found.append(train.network(trainer, train.advance(trainer, begun, num_updates)[0]))
        return found

    return bound(world, frozen, trained, num_episodes=num_episodes, block=block, seed=seed)


def bound(
    game: str | Any,
    frozen: playing.Player,
    responders: Callable[[int], Sequence[playing.Player]],
    *,
    num_episodes: int,
    block: int = playing.BLOCK,
    seed: int = 0,
) -> BestResponseBound:
    """A lower bound on the NashConv of `frozen`, from `responders` of each seat, whoever they are.

    Of several, the one that did best in `num_episodes` is kept, and judged over as many fresh ones, so that
    choosing adds nothing to the bound; `frozen` itself plays as many in all seats, for comparison.
    """
    world = playing.live_game(game)
    checks.at_least("num_episodes", num_episodes, 2)
    everywhere = np.zeros((num_episodes, world.num_seats), np.int32)
    own = _returns(world, [frozen], everywhere, block, seed, 0)
    gains, squares = [], _squared_error(own.sum(axis=1))
    for seat in range(world.num_seats):
        seating = everywhere.copy()
        seating[:, seat] = 1

        def returns(one: playing.Player, number: int, seat: int = seat, seating: Any = seating) -> np.ndarray:
            return _returns(world, [frozen, one], seating, block, seed, number)[:, seat]

        candidates = responders(seat)
        kept = candidates[0]
        if len(candidates) > 1:
            choosing = 1 + world.num_seats + seat
            kept = max(candidates, key=lambda one: float(returns(one, choosing).mean()))
        theirs = returns(kept, 1 + seat)
        gain = float(theirs.mean() - own[:, seat].mean())
        squared = _squared_error(theirs)
        gains.append(_estimate(gain, squared + _squared_error(own[:, seat]), 2 * num_episodes))
        squares += squared
    total = sum(gain.mean for gain in gains)
    return BestResponseBound(_estimate(total, squares, (1 + world.num_seats) * num_episodes), tuple(gains))


class Search(openspiel_policy.Policy):
    """OpenSpiel's tree search as a player: MCTS in games of perfect information, ISMCTS in others.

    It knows nothing of whom it meets: its playouts are random, and its opponents search as it does.
    """

    def __init__(self, game: Any, simulations: int, seed: int = 0) -> None:
        super().__init__(game, list(range(game.num_players())))
        checks.at_least("simulations", simulations)
        evaluator = pyspiel.RandomRolloutEvaluator(1, seed)
        width = game.max_utility() - game.min_utility()  # UCT's constant is for returns in [0, 1]
        if game.get_type().information == pyspiel.GameType.Information.PERFECT_INFORMATION:
            megabytes, solve, verbose = 256, True, False
            self._bot = pyspiel.MCTSBot(
                game, evaluator, _UCT * width, simulations, megabytes, solve, seed, verbose
            )
            return
        _check_resampled(game)
        kind = pyspiel.ISMCTSFinalPolicyType.MAX_VISIT_COUNT
        self._bot = pyspiel.ISMCTSBot(seed, evaluator, _UCT * width, simulations, -1, kind)

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """All on the action that a fresh search finds."""
        return {self._bot.step(state): 1.0}


_UCT = 2.0


def _check_resampled(game: Any) -> None:
    """Information set search draws states that a player cannot tell apart, which not every game can."""
    state, told = game.new_initial_state(), game.get_type().short_name
    while state.is_chance_node():
        state.apply_action(state.chance_outcomes()[0][0])
    try:
        state.resample_from_infostate(state.current_player(), lambda: 0.5)
    except RuntimeError:
        raise ValueError(
            f"ISMCTS needs states that a player cannot tell apart, and OpenSpiel's {told} draws none: "
            "response_updates trains responders there."
        ) from None


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
