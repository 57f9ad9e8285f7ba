"""Self-play in a game behind one small interface, whether the game is compiled or played live."""

import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from pohp_neurd import (
    checks,
    directions,
    exact,
    learners,
    neural,
    openspiel,
    optimizers,
    self_play,
    shaping,
    tally_learners,
)
from pohp_neurd.experiment import game_config
from pohp_neurd.finite import tree as trees
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import saved
from pohp_neurd.openspiel.live import match, play, train


class Trainer(NamedTuple):
    """What a run needs of a training loop. The state is one pytree of arrays."""

    init: Callable[[], Any]
    advance: Callable[[Any, int], Any]
    """(state, number of updates) -> state; where calls are cut makes no difference."""
    counts: Callable[[Any], dict[str, int]]
    """Updates, episodes and steps (decisions) so far."""
    evaluate: Callable[[Any], dict[str, float]]
    export: Callable[[Any], saved.Saved]
    """The policies, apart from the training."""
    diverged: Callable[[Any], int | None]
    """The first update after which the learner's state was not finite; None if there is none."""
    columns: tuple[str, ...] = ()
    """What `evaluate` finds beside NashConv."""


INFO = tuple(name for name in learners.Info._fields if name != "exploration")
"""What there is to plot of the last update."""
AGAINST_UNIFORM = ("return_against_uniform", "half_width")
ALONE = ("mean_return", "half_width")


class Counted(NamedTuple):
    """A loop's state with the decisions so far, which outgrow 32 bits."""

    loop: self_play.State
    steps: np.int64


def build(config: game_config.Config) -> tuple[game_config.Config, Trainer]:
    """The trainer of a config, and the config with nothing left open."""
    game = openspiel.load_game(
        config.game
    )  # a name that is none is told of as such, and not as a game too large
    may_be_live = (config.policy, config.update) == ("neural", "sampled")
    if config.play != "live":
        if compiling.may_be_larger(game, config.max_histories):
            print(
                f"{config.game} may have more than {config.max_histories:,} histories: they are walked, up "
                "to that many, before training begins.",
                file=sys.stderr,
            )
        try:
            tree = _tree(config.game, config.max_histories)
        except ValueError as error:
            if config.play == "compiled" or not may_be_live:
                raise ValueError(f"{error} Live play takes policy=neural and update=sampled.") from None
            print(f"{error} This run plays it live.", file=sys.stderr)
        else:
            _check_recall(config, tree)
            config = game_config.resolved(config, "compiled", tree.legal.size)
            return config, compiled_trainer(config)
    config = game_config.resolved(config, "live")
    return config, live_trainer(config)


def _has_recall(tree: trees.Tree) -> bool:
    """Whether no information state merges histories that its agent could tell apart."""
    return exact.sequence_form_of(tree).slot is not None


def _check_recall(config: game_config.Config, tree: trees.Tree) -> None:
    """Refuses what an imperfect recall does not allow, and says what is left out for it."""
    if _has_recall(tree):
        return
    if config.update == "expected":
        raise ValueError(
            f"{tree.name} has no perfect recall, which update=expected needs: use update=sampled."
        )
    if config.policy == "tabular":
        print(
            f"{tree.name} has no perfect recall, which average policies need: this run has none, and saves "
            "its current policy in the average's place.",
            file=sys.stderr,
        )


@functools.lru_cache(maxsize=1)
def _tree(game: str, max_histories: int) -> trees.Tree:
    return openspiel.compile_game(openspiel.load_game(game), max_histories=max_histories)


class _Parts(NamedTuple):
    """What runs with different seeds share, so that the second compiles nothing."""

    tree: trees.Tree
    loop: self_play.Loop
    arena: self_play.Arena


@functools.lru_cache(maxsize=1)
def _parts(config: game_config.Config) -> _Parts:
    tree = _tree(config.game, config.max_histories)
    neural_policy = config.policy == "neural"
    seen = compiling.features_of(tree) if neural_policy else None
    arena = self_play.arena_of(tree, features=seen)
    weights = self_play.Weights(config.average_power or 0.0, config.average_forgetting or 0.0)
    loop = self_play.loop(
        _network_learner(config, tree, arena.seats) if neural_policy else _table_learner(config),
        num_episodes=config.batch_size or 1,
        scale=max(tree.return_bound, 1e-6),
        update=config.update,
        weights=config.weights,
        alternating=config.alternating,
        average=None if neural_policy or arena.form is None else weights,
    )
    return _Parts(tree, loop, arena)


def compiled_trainer(config: game_config.Config) -> Trainer:
    """Self-play on a compiled game, with exact NashConv; `config` has nothing left open."""
    tree, loop, arena = _parts(dataclasses.replace(config, seed=0))
    neural_policy = config.policy == "neural"
    key = jax.random.key(config.seed)
    playing = jax.random.fold_in(key, 1)

    def init() -> Counted:
        with jax.enable_x64(True):
            return Counted(loop.init(arena, key=jax.random.fold_in(key, 0)), np.int64(0))

    def advance(state: Counted, num_updates: int) -> Counted:
        with jax.enable_x64(True):
            following = loop.advance(arena, state.loop, np.int32(num_updates), playing)
        steps = 0 if config.update == "expected" else int(following.steps)
        # Taken over: what is left would depend on how the run is cut into calls.
        following = following._replace(steps=jnp.zeros((), jnp.int32))
        return Counted(following, state.steps + np.int64(steps))

    def counts(state: Counted) -> dict[str, int]:
        updates = int(state.loop.updates)
        episodes = 0 if config.update == "expected" else updates * (config.batch_size or 1)
        return {"updates": updates, "episodes": episodes, "steps": int(state.steps)}

    def tables(state: Counted) -> np.ndarray:
        """The current policy, and the average one if there is one."""
        with jax.enable_x64(True):
            found = [np.asarray(loop.policies(arena, state.loop))]
            if neural_policy:
                smooth = state.loop._replace(learner=tally_learners.averaged(state.loop.learner))
                found.append(np.asarray(loop.policies(arena, smooth)))
            elif arena.form is not None:
                found.append(np.asarray(loop.average(arena, state.loop)))
        both = np.stack([table.astype(np.float64) for table in found])
        return both / both.sum(axis=-1, keepdims=True)

    def export(state: Counted) -> saved.Saved:
        if not neural_policy:
            found = tables(state)
            return saved.Saved(saved.About(config.game, "tabular"), found[0], found[-1])
        learnt = state.loop.learner
        networks = learnt.parameters, tally_learners.averaged(learnt).parameters
        return saved.Saved(_about(config, len(learnt.parameters)), *networks)

    def evaluate(state: Counted) -> dict[str, float]:
        judged = np.asarray(exact.nash_conv(tree, tables(state))).tolist()
        figures = dict(zip(("nash_conv", "nash_conv_average"), judged, strict=False))
        return figures | {name: float(getattr(state.loop.info, name)) for name in INFO}

    def diverged(state: Counted) -> int | None:
        first = int(state.loop.diverged)
        return None if first == self_play.NEVER else first

    return Trainer(init, advance, counts, evaluate, export, diverged, INFO)


def live_trainer(config: game_config.Config) -> Trainer:
    """Self-play on live states, judged by play against the uniform policy, or alone by its own returns."""
    world = play.live_game(config.game)
    alone = world.num_seats == 1
    columns = ALONE if alone else AGAINST_UNIFORM
    separate = not config.shared
    model = play.network(world, config.hidden_layers, critic=config.baseline, separate=separate)
    scale = float(world.game.max_utility() - world.game.min_utility())
    learner = learners.learner(
        model.apply,
        rule(config),
        optimizer(config),
        common_mode=config.common_mode,
        threshold=config.threshold,
        entropy_cost=scale * config.entropy_cost,
        magnet=magnet(config, scale),
    )
    trainer = train.Trainer(
        world,
        model,
        learner,
        batch_episodes=config.batch_size or 1,
        separate=separate,
        alternating=config.alternating,
        seed=config.seed,
    )

    def advance(state: train.State, num_updates: int) -> train.State:
        for _ in range(num_updates):
            following, _ = train.update(trainer, state)
            if not checks.all_finite(following.learner):
                return following
            state = following
        return state

    def counts(state: train.State) -> dict[str, int]:
        updates = int(state.learner.updates)
        return {"updates": updates, "episodes": int(state.episodes), "steps": int(state.decisions)}

    def evaluate(state: train.State) -> dict[str, float]:
        mine = train.network(trainer, state)
        at_table = [mine] if alone else [mine, None]
        found = match.play(world, at_table, _MATCH_EPISODES, seed=int(state.learner.updates))
        return dict(zip(columns, (found.mean, found.mean - found.low), strict=True))

    def diverged(state: train.State) -> int | None:
        return None if checks.all_finite(state.learner) else int(state.learner.updates) - 1

    def export(state: train.State) -> saved.Saved:
        found = state.learner.parameters
        if config.shared:
            networks: tuple[Any, ...] = (found,)
        else:
            seats = range(world.num_seats)
            networks = tuple(jax.tree.map(lambda leaf, i=i: leaf[i], found) for i in seats)
        # Live play keeps no average: both are the current network.
        return saved.Saved(_about(config, len(networks)), networks, networks)

    return Trainer(
        functools.partial(train.init, trainer), advance, counts, evaluate, export, diverged, columns
    )


def _about(config: game_config.Config, num_networks: int) -> saved.About:
    return saved.About(config.game, "neural", config.hidden_layers, config.baseline, num_networks)


_MATCH_EPISODES = 512


def _table_learner(config: game_config.Config) -> tally_learners.TallyLearner:
    return tally_learners.table(
        rule(config),
        step_size=step_size(config),
        magnet=magnet(config),
        threshold=config.threshold,
        entropy_cost=config.entropy_cost,
        baseline_rate=0.05 if config.baseline and config.update == "sampled" else None,
        average_over=config.average_over,
    )


def _network_learner(
    config: game_config.Config, tree: trees.Tree, seats: tally_learners.Seats
) -> tally_learners.TallyLearner:
    assert seats.all.features is not None, "a network sees features"
    every = len(seats.sizes) if config.alternating else 1
    one_each = [optimizer(config, every=every, first=seat % every) for seat in range(len(seats.sizes))]
    return tally_learners.network(
        neural.network(
            seats.all.features.shape[1], tree.num_actions, torso=config.hidden_layers, critic=config.baseline
        ),
        rule(config),
        [optimizer(config)] if config.shared else one_each,
        magnet=magnet(config),
        common_mode=config.common_mode,
        threshold=config.threshold,
        entropy_cost=config.entropy_cost,
        baseline=config.baseline and config.update == "sampled",
        average_rate=config.average_forgetting or 0.0,
        alternating=config.alternating,
    )


def rule(config: game_config.Config) -> directions.Rule:
    """The algorithm, with its exploration over time."""
    exploration = config.exploration or 0.0
    if not config.exploration_decay:
        return directions.rule(config.learner, exploration)
    return directions.rule(config.learner, scheduled(config, exploration, config.exploration_decay))


def step_size(config: game_config.Config) -> Any:
    """The step size over time."""
    hot = scheduled(config, config.step_size or 0.0, config.step_size_decay or 0.0)
    total, cooling = float(game_config.updates(config)), config.cooling or 0.0
    if not cooling:
        return hot
    return lambda count: hot(count) * (1.0 - jnp.asarray(count, jnp.float32) / total) ** cooling


def magnet(config: game_config.Config, scale: float = 1.0) -> shaping.Magnet | None:
    """The magnet over time, for returns in [-scale, 0]; None where its strength is 0."""
    if not config.magnet_strength:
        return None
    start, pull = float(config.decay_start or 1), scale * config.magnet_strength * (config.step_size or 0.0)
    if config.policy == "neural" and config.optimizer == "sgd" and pull >= 2:
        raise ValueError(
            f"with optimizer=sgd, step_size times magnet_strength, for returns that are {scale:g} wide, must "
            f"be below 2, or the pull overshoots, but is {pull:g}."
        )
    speed = min((config.magnet_speed or 0.0) / start, 1.0)
    return shaping.Magnet(
        scheduled(config, scale * config.magnet_strength, config.magnet_decay),
        directions.decaying(speed, power=config.magnet_speed_decay or 0.0, start=start),
    )


def scheduled(config: game_config.Config, value: float, decay: float) -> Any:
    """`value` / (1 + t / decay_start)^decay."""
    return directions.decaying(value, power=decay, start=float(config.decay_start or 1))


def optimizer(config: game_config.Config, *, every: int = 1, first: int = 0) -> optax.GradientTransformation:
    """A network's optimizer; of one that moves at every n-th update only, as it counts its own steps."""
    schedule = step_size(config)
    return optimizers.optimizer(config.optimizer, lambda count: schedule(every * count + first))
