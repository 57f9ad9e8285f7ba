"""What the config of a game says of learning, as rules, schedules and optimizers."""

from typing import Any

import jax.numpy as jnp
import optax

from pohp_neurd import checks, directions, optimizers, shaping
from pohp_neurd.experiment import game_config


def rule(config: game_config.Config) -> directions.Rule:
    """The algorithm, with its exploration over time."""
    exploration: Any = config.exploration or 0.0
    if config.exploration_decay:
        exploration = scheduled(config, exploration, config.exploration_decay)
    if config.learner in checks.MINIMIZERS:
        return directions.regrets(config.estimator, exploration)
    return directions.rule(config.learner, exploration)


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
        scheduled(config, scale * config.magnet_strength, config.magnet_decay or 0.0),
        directions.decaying(speed, power=config.magnet_speed_decay or 0.0, start=start),
    )


def scheduled(config: game_config.Config, value: float, decay: float) -> Any:
    """`value` / (1 + t / decay_start)^decay."""
    return directions.decaying(value, power=decay, start=float(config.decay_start or 1))


def optimizer(config: game_config.Config, *, every: int = 1, first: int = 0) -> optax.GradientTransformation:
    """A network's optimizer; of one that moves at every n-th update only, as it counts its own steps."""
    schedule = step_size(config)
    return optimizers.optimizer(config.optimizer, lambda count: schedule(every * count + first))
