"""A model as an agent in Python needs it: quick for one decision, and the same model for the learner.

A compiled call costs more than a small network's arithmetic, so that acting uses plain numpy on a copy of the
parameters where the form of the model is known (the package's own network, and tables). Any other model is
called through `jax.jit`. Both agree with the learner's model to float precision.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pohp_neurd import neural, policy, tabular, types

_DEVIATION = 0.3
"""Of the first layer's first parameters; 1 / √11 of Kuhn poker's 11 inputs is the usual choice there."""

Forward = Callable[[Any, np.ndarray], tuple[np.ndarray, np.ndarray | None]]
"""(parameters on the host, agent states with a leading axis or without) -> logits, critic's values."""


@dataclasses.dataclass(frozen=True)
class HostModel:
    """A model, and its forward pass on the host."""

    model: policy.Model
    forward: Forward
    has_critic: bool
    is_table: bool


def build(
    network: Any, info_state_size: int, num_actions: int, hidden: Sequence[int], max_states: int, critic: bool
) -> HostModel:
    """The model that `network` names: "mlp", "table", a `policy.Model`, or a transformed haiku function."""
    if network == "table":
        model = tabular.table(max_states, num_actions, critic=critic)
        return HostModel(model, _table_forward, critic, True)
    if network == "mlp":
        model = _begun(neural.network(info_state_size, num_actions, torso=hidden, critic=critic))
        return HostModel(model, functools.partial(_network_forward, len(hidden)), critic, False)
    if not (hasattr(network, "init") and hasattr(network, "apply")):
        raise ValueError(
            f"network must be 'mlp', 'table', a policy.Model or a transformed haiku function, but is "
            f"{network!r}."
        )
    model = network if isinstance(network, policy.Model) else _from_haiku(network, info_state_size)
    has_critic = _checked_output(model, info_state_size, num_actions)
    return HostModel(model, _compiled_forward(model), has_critic, False)


def _begun(model: policy.Model) -> policy.Model:
    """The package's network with first parameters that do not depend on how long information states are.

    These are mostly zeros, of a length (as vectors) that has little to do with how many numbers they have. So
    the first layer's weights have one deviation for all games, and its biases too, as if there were one more
    number that is always 1: some games show nothing but zeros. Heads begin at 0: the first policy is uniform.
    """

    def init(*, key: types.Key) -> types.Parameters:
        begun = dict(model.init(key=key))
        if "torso_0" in begun:
            begun["torso_0"] = {
                name: _DEVIATION
                * jax.random.normal(jax.random.fold_in(key, index), begun["torso_0"][name].shape)
                for index, name in enumerate(("w", "b"))
            }
        heads = {
            name: jax.tree.map(jnp.zeros_like, begun[name]) for name in ("actor", "critic") if name in begun
        }
        return {**begun, **heads}

    return policy.Model(init, model.apply)


def _from_haiku(transformed: Any, info_state_size: int) -> policy.Model:
    """A haiku function of features as a Model; it returns logits, or (logits, value)."""
    # hk.transform's apply takes a random key second, hk.without_apply_rng's does not.
    takes_key = "rng" in inspect.signature(transformed.apply).parameters

    def init(*, key: types.Key) -> types.Parameters:
        return transformed.init(key, jnp.zeros(info_state_size))

    def apply(parameters: types.Parameters, agent_state: types.History) -> policy.Output:
        inputs = (None, agent_state) if takes_key else (agent_state,)
        output = transformed.apply(parameters, *inputs)
        logits, value = output if isinstance(output, tuple) else (output, None)
        return policy.Output(logits, None if value is None else jnp.reshape(value, ()))

    return policy.Model(init, apply)


def _checked_output(model: policy.Model, info_state_size: int, num_actions: int) -> bool:
    """Whether the model has a critic, once it is clear that its logits fit."""

    def once() -> policy.Output:
        return model.apply(model.init(key=jax.random.key(0)), jnp.zeros(info_state_size))

    output = jax.eval_shape(once)
    if output.logits.shape != (num_actions,):
        raise ValueError(
            f"the network must give {num_actions} logits for one information state, but gives the shape "
            f"{output.logits.shape}."
        )
    return output.value is not None


def _compiled_forward(model: policy.Model) -> Forward:
    one = jax.jit(model.apply)
    many = jax.jit(jax.vmap(model.apply, in_axes=(None, 0)))

    def forward(parameters: Any, states: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        output = (one if states.ndim == 1 else many)(parameters, states)
        return np.asarray(output.logits), None if output.value is None else np.asarray(output.value)

    return forward


def _network_forward(
    layers: int, parameters: Any, states: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """`neural.network` in numpy."""
    hidden = states
    for index in range(layers):
        layer = parameters[f"torso_{index}"]
        units = np.maximum(hidden @ layer["w"] + layer["b"], 0.0)
        hidden = units if index == layers - 1 else np.concatenate([units, hidden], axis=-1)
    logits = hidden @ parameters["actor"]["w"] + parameters["actor"]["b"]
    critic = parameters.get("critic")
    return logits, None if critic is None else (hidden @ critic["w"] + critic["b"])[..., 0]


def _table_forward(parameters: Any, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """`tabular.table` in numpy; a row of −1 is a state that was never met: uniform, of value 0."""
    met = rows >= 0
    logits = np.where(met[..., None], parameters.logits[rows], 0.0)
    values = None if parameters.values is None else np.where(met, parameters.values[rows], 0.0)
    return logits, values


def probabilities(logits: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """`policy.probabilities` in float64 on the host, so that rows sum to 1 as OpenSpiel's samplers ask."""
    masked = np.where(legal, logits.astype(np.float64), -np.inf)
    weights = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
