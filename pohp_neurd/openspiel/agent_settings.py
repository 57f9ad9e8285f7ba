"""What an agent is told once: model, learner, step sizes; checked, and compiled into functions."""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from pohp_neurd import checks, learners, policy, regularisation, types
from pohp_neurd.openspiel import host_model


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that shapes an agent's learning but its seat and its seed."""

    info_state_size: int
    num_actions: int
    learner: str
    exploration: float | types.Schedule
    network: Any
    hidden_layers_sizes: tuple[int, ...]
    max_states: int
    batch_size: int
    pi_learning_rate: float | types.Schedule
    critic_learning_rate: float
    optimizer: str
    baseline: str | None
    magnet_strength: float | types.Schedule
    magnet_speed: float
    entropy_cost: float
    threshold: float | None
    common_mode: str
    max_return: float | None
    return_scale: float | None
    max_global_gradient_norm: float | None

    def __post_init__(self) -> None:
        whole = ("info_state_size", "num_actions", "max_states", "batch_size")
        for name in whole:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, but is {value!r}.")
        checks.one_of("optimizer", self.optimizer, ("sgd", "adam"))
        if self.baseline is not None:
            checks.one_of("baseline", self.baseline, ("value", "none"))
        for name in ("pi_learning_rate", "critic_learning_rate"):
            if not callable(getattr(self, name)):
                checks.positive(name, getattr(self, name))
        checks.non_negative("entropy_cost", self.entropy_cost)
        for name in ("max_global_gradient_norm", "return_scale"):
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name))
        if self.max_return is not None and not math.isfinite(self.max_return):
            raise ValueError(f"max_return must be a finite number, but is {self.max_return}.")


class Program(NamedTuple):
    """The functions of an agent; agents of the same settings share one, and compile it once."""

    host: host_model.HostModel
    init: Any
    """Parameters -> learners.State."""
    update: Any
    """(learners.State, learners.Decision) -> (learners.State, learners.Info), compiled."""
    uses_value: bool


def program(settings: Settings) -> Program:
    """The functions of `settings`."""
    try:
        hash(settings)
    except TypeError:  # a network or a schedule that cannot be hashed is compiled for itself
        return _program(settings)
    return _shared_program(settings)


@functools.lru_cache(maxsize=32)
def _shared_program(settings: Settings) -> Program:
    return _program(settings)


def _program(settings: Settings) -> Program:
    host = host_model.build(
        settings.network,
        settings.info_state_size,
        settings.num_actions,
        settings.hidden_layers_sizes,
        settings.max_states,
        settings.baseline != "none",
    )
    if settings.baseline == "value" and not host.has_critic:
        raise ValueError("baseline 'value' needs a network that returns a value beside its logits.")
    strength = settings.magnet_strength
    magnet = None
    if callable(strength) or strength != 0:
        magnet = regularisation.Magnet(strength, settings.magnet_speed)
    rule = _with_entropy(learners.rule(settings.learner, settings.exploration), settings.entropy_cost)
    init, update = learners.learner(
        host.model.apply,
        rule,
        _optimizer(settings),
        common_mode=settings.common_mode,
        threshold=settings.threshold,
        magnet=magnet,
        critic_cost=_critic_cost(settings),
    )
    return Program(host, init, jax.jit(update), host.has_critic and settings.baseline != "none")


def _optimizer(settings: Settings) -> optax.GradientTransformation:
    steps = learners.sgd if settings.optimizer == "sgd" else optax.adam
    chained = steps(settings.pi_learning_rate)
    if settings.max_global_gradient_norm is None:
        return chained
    return optax.chain(optax.clip_by_global_norm(settings.max_global_gradient_norm), chained)


def _critic_cost(settings: Settings) -> float:
    """Actor and critic share weights and so an optimizer: the critic's rate is a weight of its loss."""
    rate = settings.pi_learning_rate
    return settings.critic_learning_rate / float(rate(0) if callable(rate) else rate)


def _with_entropy(rule: learners.Rule, cost: float) -> learners.Rule:
    """`rule` with a pull to the uniform policy: the gradient of cost · H(π) in mirror descent's terms."""
    if cost == 0:
        return rule

    def direction(
        probabilities: types.Probabilities, decision: learners.Decision, exploration: types.Scalar
    ) -> jax.Array:
        floor = jnp.finfo(probabilities.dtype).tiny
        surprise = -jnp.log(jnp.maximum(probabilities, floor))
        pull = cost * policy.centred(surprise, decision.legal)
        return rule.direction(probabilities, decision, exploration) + pull

    return learners.Rule(direction, rule.exploration)
