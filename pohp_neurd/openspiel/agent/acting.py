"""A model as an agent in Python needs it: quick for one decision, and the same model for the learner.

A compiled call costs more than a small network's arithmetic, so that acting uses plain numpy on a copy of the
parameters where the form of the model is known (the package's own network, and tables). Any other model is
called through `jax.jit`. Both agree with the learner's model to float precision.
"""

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pohp_neurd import neural, policy, tabular, types
from pohp_neurd.openspiel import uniforms

_DEVIATION = 0.3
"""Of the first layer's first parameters; 1 / √11 of Kuhn poker's 11 inputs is the usual choice there."""

_LENGTH = 3.0
"""Information states that are longer, as vectors, are shortened for a network."""

Forward = Callable[[Any, np.ndarray], tuple[np.ndarray, np.ndarray | None]]
"""(parameters on the host, agent states with a leading axis or without) -> logits, critic's values."""


def build(
    network: Any, info_state_size: int, num_actions: int, hidden: Sequence[int], max_states: int, critic: bool
) -> tuple[policy.Model, Forward, bool]:
    """The model that `network` names, its forward pass on the host, and whether it has a critic.

    `network` is "mlp", "table", a `policy.Model`, or a transformed haiku function.
    """
    if network == "table":
        model = tabular.table(max_states, num_actions, critic=critic)
        return model, _table_forward, critic
    if network == "mlp":
        model = _begun(neural.network(info_state_size, num_actions, torso=hidden, critic=critic))
        return model, functools.partial(_network_forward, len(hidden)), critic
    if not (hasattr(network, "init") and hasattr(network, "apply")):
        raise ValueError(
            f"network must be 'mlp', 'table', a policy.Model or a transformed haiku function, but is "
            f"{network!r}."
        )
    model = network if isinstance(network, policy.Model) else _from_haiku(network, info_state_size)
    output = jax.eval_shape(
        lambda: model.apply(model.init(key=jax.random.key(0)), jnp.zeros(info_state_size))
    )
    if output.logits.shape != (num_actions,):
        raise ValueError(
            f"the network must give {num_actions} logits for one information state, but gives the shape "
            f"{output.logits.shape}."
        )
    return model, _compiled_forward(model), output.value is not None


def _begun(model: policy.Model) -> policy.Model:
    """The package's network with first parameters that do not depend on how long information states are.

    These are mostly zeros, of a length (as vectors) that has little to do with how many numbers they have. So
    the first layer's weights have one deviation for all games, and its biases too, as if there were one more
    number that is always 1: some games show nothing but zeros. Heads begin at 0: the first policy is uniform.
    """

    def init(*, key: types.Key) -> types.Parameters:
        begun = dict(model.init(key=key))
        for index, name in enumerate(("w", "b") if "torso_0" in begun else ()):
            normal = jax.random.normal(jax.random.fold_in(key, index), begun["torso_0"][name].shape)
            begun["torso_0"] = {**begun["torso_0"], name: _DEVIATION * normal}
        for head in begun.keys() & {"actor", "critic"}:
            begun[head] = jax.tree.map(jnp.zeros_like, begun[head])
        return begun

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


def softmax(scores: Sequence[float]) -> list[float]:
    """`policy.probabilities` on the host: of the logits of legal actions, in float64.

    Plain floats: with a handful of actions, numpy's calls would take longer than the arithmetic. Rows sum to
    1 as OpenSpiel's samplers ask.

    >>> softmax([0.0, 0.0])
    [0.5, 0.5]
    """
    highest = max(scores)
    weights = [math.exp(score - highest) for score in scores]
    total = math.fsum(weights)
    if math.isnan(total):
        raise FloatingPointError(
            "the network's logits are not finite: its weights or the information state are too large."
        )
    return [weight / total for weight in weights]


def probabilities(logits: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """`softmax` at many information states: [S, A] from logits and masks of that shape."""
    table = np.zeros(logits.shape)
    for row, scores, mask in zip(table, logits, legal, strict=True):
        row[mask] = softmax(scores[mask].tolist())
    return table


def choose(logits: np.ndarray, legal: Sequence[int], uniform: float) -> tuple[int, float, np.ndarray]:
    """The action of `legal` that a uniform number picks, its probability, and those of all actions."""
    every = logits.tolist()
    chances = softmax([every[action] for action in legal])
    action = uniforms.pick(list(zip(legal, chances, strict=True)), uniform)
    row = np.zeros(len(every))
    row[legal] = chances
    return int(action), float(row[action]), row


class Inputs:
    """Information states of length `size` as the model takes them: rows of a table, or scaled numbers.

    A table has `max_rows`, a network None; its are divided by `scale`, None: one that follows the longest.
    """

    def __init__(self, size: int, max_rows: int | None, scale: float | None) -> None:
        self._size, self._max_rows = size, max_rows
        self._follows = scale is None and max_rows is None
        self.scale = 1.0 if scale is None else scale
        self.rows: dict[bytes, int] = {}
        """A table's row for every information state met, by the bytes of its tensor."""
        self.like = np.zeros(size, np.float32) if max_rows is None else np.zeros((), np.int32)
        """An agent state, for the shape of arrays of them."""

    def read(self, info_state: Any, seat: int, *, learns: bool) -> np.ndarray:
        """The agent state: features, or a table's row. Scale and rows follow it where the agent `learns`."""
        features = np.asarray(info_state, np.float32).reshape(-1)
        if features.size != self._size:
            raise ValueError(
                f"the information state has {features.size} numbers, but info_state_size is {self._size}."
            )
        # A quick look; only where the product is not finite can there be something wrong.
        square = float(features.dot(features))
        if not math.isfinite(square):
            square = float(np.square(features, dtype=float).sum())
            if not math.isfinite(square):
                raise ValueError(f"the information state of player {seat} holds a NaN or an infinity.")
        if learns and self._follows and square > (_LENGTH * self.scale) ** 2:
            self.scale = math.sqrt(square) / _LENGTH
        return features if self._max_rows is None else self._row(features, learns)

    def scaled(self, states: np.ndarray) -> np.ndarray:
        """Agent states as the model takes them."""
        return states if self._max_rows is not None or self.scale == 1 else states / np.float32(self.scale)

    def many(self, info_states: Any) -> np.ndarray:
        """What the model takes at many information states; −1 for those that a table has not met."""
        states = np.asarray(info_states, np.float32)
        if self._max_rows is None:
            return self.scaled(states)
        return np.array([self._row(features, False) for features in states], np.int32)

    def _row(self, features: np.ndarray, learns: bool) -> np.ndarray:
        name = (features + 0.0).tobytes()  # the sum makes a zero of a negative zero
        row = self.rows.get(name, -1)
        if row < 0 and learns:
            if len(self.rows) == self._max_rows:
                raise ValueError(
                    f"the table is full: there are more than max_states={len(self.rows)} information states."
                )
            row = self.rows[name] = len(self.rows)
        return np.asarray(row, np.int32)
