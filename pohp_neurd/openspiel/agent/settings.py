"""What an agent is told once: model, learner, step sizes; checked, and compiled into functions."""

import dataclasses
import difflib
import functools
import math
import operator
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from pohp_neurd import checks, learners, policy, regularisation, types
from pohp_neurd.openspiel.agent import acting

_SUITED = {
    ("table", "sgd"): (1.0, 0.5),
    ("table", "adam"): (0.05, 0.05),
    ("network", "sgd"): (0.3, 0.03),
    ("network", "adam"): (0.003, 0.003),
}
"""Step sizes of policy and critic that suit a kind of model and an optimizer."""
_MAGNET = 0.2
_ELSEWHERE = {
    "state_representation_size": "info_state_size",
    "input_shape": "info_state_size",
    "learning_rate": "pi_learning_rate",
    "gradient_clipping": "max_global_gradient_norm",
    "optimizer_str": "optimizer",
    "loss_str": "learner",
    "epsilon": "exploration",
}
"""What OpenSpiel's agents call what has another name here."""


def refuse(unknown: Collection[str], known: Collection[str]) -> None:
    """Raises where there are keywords that the agent does not have, with the name that was meant."""
    for name in unknown:
        near = [_ELSEWHERE[name]] if name in _ELSEWHERE else difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}."
        if name == "name":
            hint = "agents are told apart by player_id."
        raise TypeError(f"NeuRDCIX has no keyword {name!r}: {hint}")


def whole(name: str, value: Any, *, least: int = 1) -> int:
    """`value` as an int: numpy's whole numbers and a word such as "64" are ones too, True is none."""
    try:
        number = int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        number = least - 1
    if number < least or isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be a whole number of at least {least}, but is {value!r}.")
    return number


def shown(rate: float | types.Schedule) -> str:
    """A step size in words."""
    return "a schedule" if callable(rate) else f"{rate:g}"


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
    magnet_strength: float | types.Schedule | None
    magnet_speed: float
    entropy_cost: float
    threshold: float | None
    common_mode: str
    max_return: float | None
    return_centre: float | None
    return_scale: float | None
    input_scale: float | None
    max_global_gradient_norm: float | None
    players: int | None = None
    """Seats of the game; None before the first time step."""

    def __post_init__(self) -> None:
        if self.baseline is not None:
            checks.one_of("baseline", self.baseline, ("value", "none"))
        for name in ("pi_learning_rate", "critic_learning_rate"):
            if not callable(getattr(self, name)):
                checks.positive(name, getattr(self, name))
        checks.non_negative("entropy_cost", self.entropy_cost)
        for name in ("max_global_gradient_norm", "return_scale", "input_scale"):
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name))
        for name in ("max_return", "return_centre"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, but is {value}.")


def settings(given: Mapping[str, Any]) -> Settings:
    """Settings from keywords as users and flags give them, defaults filled in."""
    clean = dict(given)
    for name in ("info_state_size", "num_actions"):
        if clean[name] is None:
            raise TypeError(f"NeuRDCIX needs {name}: NeuRDCIX(player_id, info_state_size, num_actions).")
    size = clean["info_state_size"]
    shape = size if isinstance(size, tuple | list) or np.ndim(size) else [size]
    clean["info_state_size"] = math.prod(whole("info_state_size", length) for length in shape)
    for name in ("num_actions", "max_states", "batch_size"):
        clean[name] = whole(name, clean[name])
    hidden = clean["hidden_layers_sizes"]
    layers = [hidden] if isinstance(hidden, str) or not np.iterable(hidden) else hidden
    clean["hidden_layers_sizes"] = tuple(whole("every one of hidden_layers_sizes", width) for width in layers)
    is_table = isinstance(clean["network"], str) and clean["network"] == "table"
    if clean["optimizer"] is None:
        clean["optimizer"] = "sgd" if is_table else "adam"
    checks.one_of("optimizer", clean["optimizer"], ("sgd", "adam"))
    suited = _SUITED["table" if is_table else "network", clean["optimizer"]]
    for name, value in zip(("pi_learning_rate", "critic_learning_rate"), suited, strict=True):
        clean[name] = value if clean[name] is None else clean[name]
    return Settings(**clean)


class Program(NamedTuple):
    """The functions of an agent; agents of the same settings share one, and compile it once."""

    host: acting.HostModel
    init: Any
    """Parameters -> learners.State."""
    update: Any
    """(learners.State, learners.Decision) -> (learners.State, learners.Info, all finite?), compiled."""
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
    host = acting.build(
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
    if strength is None:  # with one player too there is a reference, so that nothing changes its shape
        strength = 0.0 if settings.players == 1 else _MAGNET
    magnet = None
    if settings.magnet_strength != 0:
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

    def told(state: learners.State, decisions: learners.Decision) -> tuple[Any, Any, Any]:
        state, info = update(state, decisions)
        numbers = [leaf for leaf in jax.tree.leaves(state) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        return state, info, jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in numbers]))

    return Program(host, init, jax.jit(told), host.has_critic and settings.baseline != "none")


class Annealing(NamedTuple):
    """The optimizer's last part: every step is multiplied by this."""

    factor: jax.Array


def annealed(state: learners.State, factor: float) -> learners.State:
    """`state` with steps of `factor` times their length from now on."""
    *others, _ = state.optimizer
    return state._replace(optimizer=(*others, Annealing(jnp.asarray(factor, jnp.float32))))


def _optimizer(settings: Settings) -> optax.GradientTransformation:
    steps = learners.sgd if settings.optimizer == "sgd" else optax.adam
    parts = [steps(settings.pi_learning_rate), _annealing()]
    if settings.max_global_gradient_norm is not None:
        parts.insert(0, optax.clip_by_global_norm(settings.max_global_gradient_norm))
    return optax.chain(*parts)


def _annealing() -> optax.GradientTransformation:
    def init(parameters: types.Parameters) -> Annealing:
        del parameters
        return Annealing(jnp.ones((), jnp.float32))

    def update(steps: Any, state: Annealing, parameters: Any = None) -> tuple[Any, Annealing]:
        del parameters
        return jax.tree.map(lambda step: step * state.factor.astype(step.dtype), steps), state

    return optax.GradientTransformation(init, update)


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
