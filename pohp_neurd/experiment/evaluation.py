"""How good a trained policy is: exact where its game compiles, by play and trained responders elsewhere."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from pohp_neurd import exact, openspiel
from pohp_neurd.experiment import configs
from pohp_neurd.finite import tree as trees
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import policies, saved
from pohp_neurd.openspiel.live import match, play

Config = configs.Evaluation


def evaluate(config: Config, tell: Callable[[str], None] = print) -> dict[str, Any]:
    """All that was asked for, as figures; `tell` gets a sentence for each."""
    mine = saved.load(config.checkpoint)
    theirs = saved.load(config.opponent) if config.opponent not in configs.NO_RUN else None
    if theirs is not None and theirs.about.game != mine.about.game:
        raise ValueError(
            f"{config.checkpoint} plays {mine.about.game}, but {config.opponent} plays {theirs.about.game}."
        )
    seats = openspiel.load_game(mine.about.game).num_players()
    alone = seats == 1
    if alone and config.opponent:
        raise ValueError(f"{mine.about.game} has one seat: there is none for opponent={config.opponent}.")
    if seats > 2 and config.opponent == configs.BEST_RESPONSE:
        raise ValueError(f"opponent=best_response is for two seats, but {mine.about.game} has {seats}.")
    use = config.use or mine.usual
    world = mine.world or _compiled(config, mine.about.game)
    figures: dict[str, Any] = {"game": mine.about.game, "use": use, "nash_conv": None}
    if world is not None:
        table = saved.table(mine, world, use)
        figures["returns"] = exact.expected_returns(world, table).tolist()
        figures["best_response_values"] = exact.best_response_values(world, table).tolist()
        figures["nash_conv"] = sum(figures["best_response_values"]) - sum(figures["returns"])
        tell(f"NashConv of the {use} policy: {figures['nash_conv']:.6f} (exact)")
    elif alone:
        found = match.play(mine.about.game, [_player(mine, use)], config.episodes, config.seed)
        figures["mean_return"] = found._asdict()
        tell(f"Mean return: {found.mean:.4f} ({_interval(found)})")
    if config.opponent:
        met = figures["head_to_head"] = _head_to_head(config, use, mine, theirs, world)
        interval = "exact" if met["exact"] else f"95% interval {met['low']:.4f} to {met['high']:.4f}"
        tell(f"Mean return against {config.opponent}, seats rotated: {met['mean']:.4f} ({interval})")
    if config.response_updates:
        bound = match.best_response_bound(
            mine.about.game,
            _player(mine, use),
            num_updates=config.response_updates,
            num_episodes=config.episodes,
            num_seeds=config.response_seeds,
            seed=config.seed,
        )
        figures["nash_conv_lower_bound"] = _bounded("Trained responders gain", bound, figures, tell)
    if config.search_simulations:
        bot = match.Search(openspiel.load_game(mine.about.game), config.search_simulations, config.seed)
        bound = match.bound(
            mine.about.game,
            _player(mine, use),
            lambda seat: [bot],
            num_episodes=config.episodes,
            seed=config.seed,
        )
        figures["search_lower_bound"] = _bounded("Search gains", bound, figures, tell)
    return figures


def _bounded(
    words: str, bound: match.BestResponseBound, figures: dict[str, Any], tell: Callable[[str], None]
) -> dict[str, Any]:
    """A lower bound as figures, told beside the exact value where there is one."""
    found, exactly = bound.nash_conv, figures["nash_conv"]
    beside = "" if exactly is None else f", and is {exactly:.4f} exactly"
    tell(f"{words} {found.mean:.4f} ({_interval(found)}): NashConv is at least that, up to chance{beside}")
    return {**found._asdict(), "gains": [gain.mean for gain in bound.gains]}


def at_table(config: configs.Play) -> tuple[str, Any, Any]:
    """The game, the trained policy, and whom a person meets: the policy, or a best response to it."""
    mine = saved.load(config.checkpoint)
    use = config.use or mine.usual
    policy = opponent = saved.openspiel_policy(mine, use)
    if config.opponent == configs.BEST_RESPONSE:
        world = mine.world or openspiel.compile_game(mine.about.game)
        opponent = policies.BestResponses(world, saved.table(mine, world, use))
    return mine.about.game, policy, opponent


def _interval(found: match.Estimate) -> str:
    return f"95% interval {found.low:.4f} to {found.high:.4f}"


def _compiled(config: Config, game: str) -> trees.Tree | None:
    """The game's tree; without one, a line on stderr says what cannot be judged and what can."""
    try:
        return openspiel.compile_game(game, max_histories=config.max_histories)
    except ValueError as error:
        reason = str(error).partition(": ")[0]  # what follows is advice for training
        print(
            f"NashConv is not computed, as {reason}: --response_updates=200 gives a lower bound on it, "
            "--opponent=uniform a head-to-head result.",
            file=sys.stderr,
        )
        return None


def _head_to_head(
    config: Config, use: str, mine: saved.Saved, theirs: saved.Saved | None, world: exact.World | None
) -> dict[str, Any]:
    """The returns of `mine` at each seat in turn: exact if both have one table's rows, else by play."""
    table = None if world is None else saved.table(mine, world, use)
    responding = config.opponent == configs.BEST_RESPONSE
    if responding or world is None or (theirs is not None and not _alike(mine, theirs)):
        other: Any = None
        if theirs is not None:
            other = _player(theirs, config.use or theirs.usual)
        elif responding:
            if world is None:
                raise ValueError(f"a best response needs a compiled game, which {mine.about.game} is not.")
            other = policies.BestResponses(world, table)
        found = match.play(mine.about.game, [_player(mine, use), other], config.episodes, config.seed)
        return {**found._asdict(), "exact": False}
    other = exact.uniform(world)
    if theirs is not None:
        other = saved.table(theirs, world, config.use or theirs.usual)
    returns = []
    for seat in range(world.num_agents):
        seated = np.where((world.state_player == seat)[:, None], table, other)
        returns.append(float(exact.expected_returns(world, seated)[seat]))
    mean = float(np.mean(returns))
    return {"mean": mean, "low": mean, "high": mean, "num_episodes": 0, "exact": True, "by_seat": returns}


def _alike(one: saved.Saved, other: saved.Saved) -> bool:
    """Whether the tables of two runs have the same rows."""
    if one.world is None or other.world is None:
        return one.world is other.world
    here, there = compiling.origin_of(one.world), compiling.origin_of(other.world)
    return (here.agent_state, here.world) == (there.agent_state, there.world)


def _player(policy: saved.Saved, use: str) -> play.Player:
    if policy.about.kind == "neural" and policy.world is None:
        return saved.network(policy, use)
    return saved.openspiel_policy(policy, use)
