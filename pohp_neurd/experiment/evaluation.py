"""How good a trained policy is: exact where its game compiles, by play and trained responders elsewhere."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from pohp_neurd import exact, openspiel
from pohp_neurd.experiment import configs
from pohp_neurd.finite import tree as trees
from pohp_neurd.openspiel import saved
from pohp_neurd.openspiel.live import match, play

Config = configs.Evaluation


def evaluate(config: Config, tell: Callable[[str], None] = print) -> dict[str, Any]:
    """All that was asked for, as figures; `tell` gets a sentence for each."""
    mine = saved.load(config.checkpoint)
    theirs = None if config.opponent in ("", configs.UNIFORM) else saved.load(config.opponent)
    if theirs is not None and theirs.about.game != mine.about.game:
        raise ValueError(
            f"{config.checkpoint} plays {mine.about.game}, but {config.opponent} plays {theirs.about.game}."
        )
    alone = openspiel.load_game(mine.about.game).num_players() == 1
    if alone and config.opponent:
        raise ValueError(f"{mine.about.game} has one seat: there is none for opponent={config.opponent}.")
    tree = _compiled(config, mine.about.game)
    figures: dict[str, Any] = {"game": mine.about.game, "use": config.use, "nash_conv": None}
    if tree is not None:
        table = saved.table(mine, tree, config.use)
        figures["nash_conv"] = float(exact.nash_conv(tree, table))
        figures["returns"] = exact.expected_returns(tree, table).tolist()
        tell(f"NashConv of the {config.use} policy: {figures['nash_conv']:.6f} (exact)")
    elif alone:
        found = match.play(mine.about.game, [_player(mine, config.use)], config.episodes, config.seed)
        figures["mean_return"] = found._asdict()
        tell(f"Mean return: {found.mean:.4f} ({_interval(found)})")
    if config.opponent:
        met = figures["head_to_head"] = _head_to_head(config, mine, theirs, tree)
        interval = "exact" if met["exact"] else f"95% interval {met['low']:.4f} to {met['high']:.4f}"
        tell(f"Mean return against {config.opponent}, seats rotated: {met['mean']:.4f} ({interval})")
    if config.response_updates:
        bound = match.best_response_bound(
            mine.about.game,
            _player(mine, config.use),
            num_updates=config.response_updates,
            num_episodes=config.episodes,
            seed=config.seed,
        )
        found, gains = bound.nash_conv, [gain.mean for gain in bound.gains]
        figures["nash_conv_lower_bound"] = {**found._asdict(), "gains": gains}
        tell(
            f"Trained responders gain {found.mean:.4f} ({_interval(found)}): NashConv is at least that, "
            "up to chance"
        )
    return figures


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
    config: Config, mine: saved.Saved, theirs: saved.Saved | None, tree: trees.Tree | None
) -> dict[str, Any]:
    if tree is None:
        at_table = [_player(mine, config.use), None if theirs is None else _player(theirs, config.use)]
        found = match.play(mine.about.game, at_table, config.episodes, config.seed)
        return {**found._asdict(), "exact": False}
    table = saved.table(mine, tree, config.use)
    other = exact.uniform(tree) if theirs is None else saved.table(theirs, tree, config.use)
    returns = []
    for seat in range(tree.num_agents):
        seated = np.where((tree.state_player == seat)[:, None], table, other)
        returns.append(float(exact.expected_returns(tree, seated)[seat]))
    mean = float(np.mean(returns))
    return {"mean": mean, "low": mean, "high": mean, "num_episodes": 0, "exact": True, "by_seat": returns}


def _player(policy: saved.Saved, use: str) -> play.Player:
    return (
        saved.network(policy, use) if policy.about.kind == "neural" else saved.openspiel_policy(policy, use)
    )
