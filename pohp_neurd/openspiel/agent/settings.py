"""What an agent is told once: model, learner, step sizes; checked, defaults filled in."""

import dataclasses
import difflib
import math
import operator
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from pohp_neurd import checks, types

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
