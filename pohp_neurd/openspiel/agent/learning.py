"""What an agent is told once, checked; and what it learns from: choices, one compiled update, returns."""

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

from pohp_neurd import checks, learners, optimizers, policy, shaping, types
from pohp_neurd.openspiel.agent import acting

_MAGNET = 0.2
_SUITED = {
    ("table", "sgd"): (1.0, 0.5),
    ("table", "adam"): (0.05, 0.05),
    ("network", "sgd"): (0.3, 0.03),
    ("network", "adam"): (0.003, 0.003),
}
"""Step sizes of policy and critic that suit a kind of model and an optimizer."""
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
        rates = "pi_learning_rate", "critic_learning_rate"
        for name in (*rates, "max_global_gradient_norm", "return_scale", "input_scale"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                checks.positive(name, value)
        checks.non_negative("entropy_cost", self.entropy_cost)
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


class Learning:
    """An agent's parameters, begun from `key`, and what becomes of them as its settings say."""

    def __init__(self, told: Settings, key: types.Key) -> None:
        self.told, self.program = told, program(told)
        self.returns = Returns(centre=told.return_centre or 0.0, scale=told.return_scale or 1.0)
        self.capacity = _power_of_two(4 * told.batch_size)
        """Batches are padded to this length, so that one compiled update serves all."""
        self.loss: float | None = None
        self.info: learners.Info | None = None
        self.adopt(self.program.init(self.program.model.init(key=key)))

    def adopt(self, state: learners.State) -> None:
        """Goes on from `state`."""
        self.state = state
        self.parameters = jax.tree.map(np.asarray, state.parameters)

    def meet(self, players: int | None) -> None:
        """Takes in how many players the game has: one alone needs no magnet."""
        self.told = dataclasses.replace(self.told, players=players)
        self.program = program(self.told)

    def forward(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Logits and the critic's values, on the host."""
        return self.program.forward(self.parameters, inputs)

    def update(self, arrays: Mapping[str, np.ndarray]) -> None:
        """One update from choices as `Experience.arrays` has them, with agent states as the model takes them.

        Raises a FloatingPointError, and changes nothing, where it would leave the finite numbers.
        """
        told, count = self.told, int(self.state.updates)
        told_of = {"centre": told.return_centre, "scale": told.return_scale}
        known = known_returns(arrays["return_"], self.returns, first=count == 0, **told_of)
        capacity = max(self.capacity, _power_of_two(len(arrays["return_"])))
        batch, loss = decisions(
            arrays, known, max_return=told.max_return, uses_value=self.program.uses_value, capacity=capacity
        )
        state, info, finite = self.program.update(self.state, batch)
        if not finite:
            rate = told.pi_learning_rate
            raise FloatingPointError(
                f"learning diverged: weights or the optimizer's sums are not finite after update "
                f"{count + 1}, which is not made; try a smaller pi_learning_rate (it is "
                f"{'a schedule' if callable(rate) else f'{rate:g}'}), a smaller critic_learning_rate (it is "
                f"{told.critic_learning_rate:g}) or a max_global_gradient_norm."
            )
        self.adopt(state)
        self.info, self.loss, self.returns, self.capacity = info, loss, known, capacity

    def anneal(self, factor: float) -> None:
        """Makes steps of `factor` times their length from now on."""
        *others, _ = self.state.optimizer
        optimizer = (*others, Annealing(jnp.asarray(factor, jnp.float32)))
        self.adopt(self.state._replace(optimizer=optimizer))


class Returns(NamedTuple):
    """What is known of returns, from those that were seen or from what the agent was told."""

    largest: float = -math.inf
    centre: float = 0.0
    """The critic tells how far returns are from here."""
    scale: float = 1.0
    """Returns are divided by this."""


def known_returns(
    returns: np.ndarray, so_far: Returns, *, first: bool, centre: float | None, scale: float | None
) -> Returns:
    """What is known after a batch of `returns`, the `first` or a later one; `centre` and `scale` if told."""
    if not np.isfinite(returns).all():
        raise ValueError("a return is not a finite number: rewards and discounts must be finite.")
    if scale is None:
        scale = max(0.0 if first else so_far.scale, float(np.abs(returns).max())) or 1.0
    if centre is None:
        # A critic that began below all returns would make every choice look good, and CIX would then hold on
        # to whatever comes first.
        centre = float(returns.mean()) if first else so_far.centre
    return Returns(max(so_far.largest, float(returns.max())), centre, scale)


def decisions(
    arrays: Mapping[str, np.ndarray],
    known: Returns,
    *,
    max_return: float | None,
    uses_value: bool,
    capacity: int,
) -> tuple[learners.Decision, float]:
    """A batch for the learner, padded to `capacity`, and its loss ½ mean (G − V)².

    `known` includes this batch's returns. They are shifted so that none is positive: by `max_return`, or the
    largest known. `uses_value` makes the critic's value the baseline.
    """
    returns, count = arrays["return_"], len(arrays["return_"])
    shift = known.largest if max_return is None else max_return
    if known.largest > shift + 1e-6 * max(1.0, abs(shift)):
        raise ValueError(f"max_return is {shift:g}, but there was a return of {known.largest:g}.")
    values = arrays["value"] + known.centre if uses_value else np.full(count, shift)
    loss = float(0.5 * np.mean((returns - values) ** 2))

    def padded(array: np.ndarray, dtype: Any = np.float32) -> np.ndarray:
        whole = np.zeros((capacity, *array.shape[1:]), dtype)
        whole[:count] = array
        return whole

    batch = learners.Decision(
        agent_state=padded(arrays["agent_state"], arrays["agent_state"].dtype),
        legal=padded(arrays["legal"], bool),
        action=padded(arrays["action"], np.int32),
        probability=padded(arrays["probability"]),
        return_=padded((returns - shift) / known.scale),
        baseline=padded((values - shift) / known.scale),
        # A mean over decisions, so that the step does not grow with the length of episodes.
        weight=padded(np.full(count, 1.0 / count)),
        target=padded((returns - known.centre) / known.scale),
    )
    return batch, loss


class Program(NamedTuple):
    """The functions of an agent; agents of the same settings share one, and compile it once."""

    model: policy.Model
    forward: acting.Forward
    init: Any
    """Parameters -> learners.State."""
    update: Any
    """(learners.State, learners.Decision) -> (learners.State, learners.Info, all finite?), compiled."""
    uses_value: bool


def program(told: Settings) -> Program:
    """The functions of an agent's settings."""
    try:
        hash(told)
    except TypeError:  # a network or a schedule that cannot be hashed is compiled for itself
        return _program.__wrapped__(told)
    return _program(told)


@functools.lru_cache(maxsize=32)
def _program(told: Settings) -> Program:
    model, forward, has_critic = acting.build(
        told.network,
        told.info_state_size,
        told.num_actions,
        told.hidden_layers_sizes,
        told.max_states,
        told.baseline != "none",
    )
    if told.baseline == "value" and not has_critic:
        raise ValueError("baseline 'value' needs a network that returns a value beside its logits.")
    strength = told.magnet_strength
    if strength is None:  # with one player too there is a reference, so that nothing changes its shape
        strength = 0.0 if told.players == 1 else _MAGNET
    magnet = None if told.magnet_strength == 0 else shaping.Magnet(strength, told.magnet_speed)
    rate = told.pi_learning_rate
    parts = [optimizers.optimizer(told.optimizer, rate), _annealing()]
    if told.max_global_gradient_norm is not None:
        parts.insert(0, optax.clip_by_global_norm(told.max_global_gradient_norm))
    init, update, *_ = learners.learner(
        model.apply,
        learners.rule(told.learner, told.exploration),
        optax.chain(*parts),
        common_mode=told.common_mode,
        threshold=told.threshold,
        magnet=magnet,
        entropy_cost=told.entropy_cost,
        # Actor and critic share weights and so an optimizer: the critic's rate is a weight of its loss.
        critic_cost=told.critic_learning_rate / float(rate(0) if callable(rate) else rate),
    )

    def watched(state: learners.State, batch: learners.Decision) -> tuple[Any, Any, Any]:
        state, info = update(state, batch)
        return state, info, checks.all_finite(state)

    return Program(model, forward, init, jax.jit(watched), has_critic and told.baseline != "none")


class Annealing(NamedTuple):
    """The optimizer's last part: every step is multiplied by this."""

    factor: jax.Array


def _annealing() -> optax.GradientTransformation:
    def update(steps: Any, state: Annealing, parameters: Any = None) -> tuple[Any, Annealing]:
        return jax.tree.map(lambda step: step * state.factor.astype(step.dtype), steps), state

    return optax.GradientTransformation(lambda parameters: Annealing(jnp.ones((), jnp.float32)), update)


def _power_of_two(count: int) -> int:
    return 1 << max(0, count - 1).bit_length()
