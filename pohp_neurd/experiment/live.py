"""A run of live self-play, as a task: states of the game itself, judged by matches."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from pohp_neurd import learners
from pohp_neurd.experiment import (
    actors,
    executor,
    game_config,
    game_task,
    local_actors,
    ray_actors,
    schedules,
)
from pohp_neurd.experiment import run as run_loop
from pohp_neurd.openspiel import saved
from pohp_neurd.openspiel.live import match, play, train

AGAINST_UNIFORM = ("return_against_uniform", "half_width")
ALONE = ("mean_return", "half_width")
_AVERAGE = "_average"  # such columns are of the average policy
_MATCH_EPISODES = 512


class Played(NamedTuple):
    """The state of live play, and the figures of the last update, which no checkpoint has."""

    loop: train.State
    info: learners.Info | None


def trainer(config: game_config.Config) -> train.Trainer:
    """The trainer of a live run; `config` has nothing left open."""
    world = play.live_game(config.game)
    separate = not config.shared
    model = play.network(world, config.hidden_layers, critic=config.baseline, separate=separate)
    scale = float(world.game.max_utility() - world.game.min_utility())
    learner = learners.learner(
        model.apply,
        schedules.rule(config),
        schedules.optimizer(config),
        common_mode=config.common_mode,
        threshold=config.threshold,
        entropy_cost=scale * config.entropy_cost,
        magnet=schedules.magnet(config, scale),
    )
    return train.Trainer(
        world,
        model,
        learner,
        batch_episodes=config.batch_size or 1,
        block=config.block_size,
        average_rate=config.average_forgetting or 0.0,
        staleness=config.staleness,
        separate=separate,
        alternating=bool(config.alternating),
        seed=config.seed,
    )


@contextlib.contextmanager
def crew(
    config: game_config.Config, chosen: game_config.Actors, trainer: train.Trainer
) -> Iterator[actors.Crew | None]:
    """Who plays the blocks of a run beside this process, or in its place; None if it is alone."""
    with contextlib.ExitStack() as stack:
        if chosen.executor == "ray":
            yield stack.enter_context(ray_actors.crew(config, chosen))
        elif (chosen.workers or 1) > 1:
            known, evidence = train.forms(trainer)
            words = jax.ShapeDtypeStruct((len(play.words_of(jax.random.key(0))),), np.int64)
            forms = actors.Order(known, words, jax.ShapeDtypeStruct((), bool)), evidence
            count = executor.available(chosen.workers)
            yield stack.enter_context(local_actors.crew(config, count, forms, actors.Player(config, trainer)))
        else:
            yield None


def task(config: game_config.Config, trainer: train.Trainer, crew: actors.Crew | None) -> run_loop.Task:
    """Self-play on live states, judged by play against the uniform policy, or alone by its own returns.

    `crew` plays the blocks; without one this process does.
    """
    world, separate = trainer.world, trainer.separate
    alone = world.num_seats == 1
    columns = ALONE if alone else AGAINST_UNIFORM
    collect = train.here if crew is None else crew.collect

    def advance(state: Played, num_updates: int) -> Played:
        return Played(*train.updates(trainer, state.loop, num_updates, collect)[:2])

    def evaluate(state: Played) -> run_loop.Row:
        loop, info = state
        assert info is not None, "rows are of an update"
        updates = int(loop.learner.updates)
        row: run_loop.Row = {}
        for average, suffix in ((False, ""), (True, _AVERAGE)):
            mine = train.network(trainer, loop, average=average)
            found = match.play(world, [mine] if alone else [mine, None], _MATCH_EPISODES, seed=updates)
            figures = (found.mean, found.mean - found.low)
            row |= dict(zip((f"{name}{suffix}" for name in columns), figures, strict=True))
        counts = {"updates": updates, "episodes": int(loop.episodes), "steps": int(loop.decisions)}
        return {**counts, **row, **game_task.info_row(info)}

    def policies(state: Played) -> saved.Saved:
        found = []
        for average in (False, True):
            parameters = train.network(trainer, state.loop, average=average).parameters
            seats = range(world.num_seats)
            each = (
                tuple(jax.tree.map(lambda leaf, i=i: leaf[i], parameters) for i in seats)
                if separate
                else None
            )
            found.append(each or (parameters,))
        return game_task.networks(config, *found)

    def lost(state: Played) -> int | None:
        return None if train.finite(state.loop) else int(state.loop.learner.updates)

    return game_task.task(
        config,
        (*columns, *(f"{name}{_AVERAGE}" for name in columns), *game_task.INFO),
        lambda: Played(train.init(trainer), None),
        advance,
        evaluate,
        policies,
        lost,
        opening=f"{config.game} is played live.",
        kept=lambda state: state.loop,
        again=lambda loop, done: Played(loop, None),
        **({} if crew is None else {"status": crew.status}),
    )
