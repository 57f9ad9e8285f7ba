"""The package's network and its draws on the host, compiled with numba: for one step of live play.

It skips what is zero, as most of a game's tensor is and half of the ReLUs are, has no threads, and computes
every row on its own, in one order. So a row comes out the same to the bit whatever stands beside it, and
whichever process computes it; and a handful of states does not cost a call of JAX.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from jaxtyping import Bool, Float, Int

Forward = Callable[[Float[np.ndarray, "N D"]], tuple[Float[np.ndarray, "N A"], Float[np.ndarray, "N"] | None]]
"""Agent states -> logits, and values if there is a critic."""


def network(parameters: Any) -> Forward:
    """`neural.network` with these parameters, at many agent states."""
    layers = len([name for name in parameters if name.startswith("torso_")])
    torso = [_layer(parameters[f"torso_{index}"]) for index in range(layers)]
    # Both heads as one layer: a sweep over one number costs as much as one over ten.
    heads = [parameters[name] for name in ("actor", "critic") if name in parameters]
    last = {name: np.concatenate([np.asarray(head[name]) for head in heads], axis=-1) for name in ("w", "b")}
    num_actions = len(heads[0]["b"])

    def forward(agent_states: Float[np.ndarray, "N D"]) -> tuple[np.ndarray, np.ndarray | None]:
        hidden = agent_states
        for index, layer in enumerate(torso):
            units = linear(layer, hidden)
            np.maximum(units, 0.0, out=units)
            hidden = units if index == layers - 1 else np.concatenate([units, hidden], axis=1)
        outputs = linear(last, hidden)
        logits = np.ascontiguousarray(outputs[:, :num_actions])
        return logits, outputs[:, num_actions] if len(heads) > 1 else None

    return forward


def _layer(layer: Any) -> dict[str, np.ndarray]:
    # Copies: what comes out of a cluster's memory may be read only, and would be compiled for anew.
    return {name: np.array(layer[name]) for name in ("w", "b")}


def linear(layer: Any, inputs: Float[np.ndarray, "N I"]) -> Float[np.ndarray, "N O"]:
    """Inputs · w + b."""
    outputs = np.empty((len(inputs), len(layer["b"])), np.float32)
    _linear(inputs, layer["w"], layer["b"], np.empty(inputs.shape[1], np.int64), outputs)
    return outputs


def policies(
    logits: Float[np.ndarray, "N A"], legal: Bool[np.ndarray, "N A"]
) -> tuple[Float[np.ndarray, "N A"], Float[np.ndarray, "N A"]]:
    """`policy.probabilities` of many rows, in float64; and where each action's part of [0, 1) ends.

    The last that has a part at all ends at 1, and what rounding leaves open goes to the likeliest, as in
    `policy.thresholds`: never to a rare one.
    """
    chances, ends = np.empty(logits.shape), np.empty(logits.shape)
    _policies(logits, legal, chances, ends)
    return chances, ends


def draw(
    ends: Float[np.ndarray, "P S A"],
    players: Int[np.ndarray, "N"],
    rows: Int[np.ndarray, "N"],
    uniform: Float[np.ndarray, "N"],
) -> Int[np.ndarray, "N"]:
    """The action that each uniform number draws: the first whose part ends above it."""
    actions = np.empty(len(rows), np.int32)
    _draw(ends, players, rows, uniform, actions)
    return actions


def _compiled(function: Any) -> Any:
    # Unwrapped: the shape checks of the tests wrap every function, and numba compiles plain ones only.
    return numba.njit(cache=True, fastmath={"contract"})(inspect.unwrap(function))


@_compiled
def _linear(inputs: Any, weights: Any, bias: Any, places: Any, outputs: Any) -> None:
    """`places` is room for the numbers of the inputs that are not 0: four at a time make one sweep."""
    width = outputs.shape[1]
    for row in range(inputs.shape[0]):
        count = 0
        for i in range(inputs.shape[1]):
            places[count] = i
            count += inputs[row, i] != 0.0
        out = outputs[row]
        for j in range(width):
            out[j] = bias[j]
        whole = count - count % 4
        for k in range(0, whole, 4):
            a, b, c, d = places[k], places[k + 1], places[k + 2], places[k + 3]
            x, y, z, u = inputs[row, a], inputs[row, b], inputs[row, c], inputs[row, d]
            first, second, third, fourth = weights[a], weights[b], weights[c], weights[d]
            for j in range(width):
                out[j] += x * first[j] + y * second[j] + z * third[j] + u * fourth[j]
        for k in range(whole, count):
            a = places[k]
            x, first = inputs[row, a], weights[a]
            for j in range(width):
                out[j] += x * first[j]


@_compiled
def _policies(logits: Any, legal: Any, chances: Any, ends: Any) -> None:
    num_actions = logits.shape[1]
    for row in range(logits.shape[0]):
        highest = -np.inf
        for a in range(num_actions):
            if legal[row, a] and logits[row, a] > highest:
                highest = np.float64(logits[row, a])
        total = 0.0
        for a in range(num_actions):
            weight = np.exp(np.float64(logits[row, a]) - highest) if legal[row, a] else 0.0
            chances[row, a] = weight
            total += weight
        summed, likeliest, last = 0.0, 0, 0
        for a in range(num_actions):
            chances[row, a] /= total
            summed += chances[row, a]
            ends[row, a] = summed
            if chances[row, a] > chances[row, likeliest]:
                likeliest = a
            if chances[row, a] > 0:
                last = a
        for a in range(likeliest, num_actions):
            ends[row, a] += 1.0 - summed
        for a in range(last, num_actions):
            ends[row, a] = 1.0


@_compiled
def _draw(ends: Any, players: Any, rows: Any, uniform: Any, actions: Any) -> None:
    for n in range(rows.shape[0]):
        part = ends[players[n], rows[n]]
        action = 0
        while part[action] <= uniform[n]:
            action += 1
        actions[n] = action
