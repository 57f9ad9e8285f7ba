"""The package's network and its draws on the host, compiled with numba: for one step of live play.

It skips what is zero, as most of a game's tensor is and half of the ReLUs are, has no threads, and computes
every row on its own, in one order. So a row comes out the same to the bit whatever stands beside it, and
whichever process computes it; and a handful of states does not cost a call of JAX.
"""

import inspect
from typing import Any

import numba
import numpy as np
from jaxtyping import Bool, Float

_ROWS = 64
"""At a time: so few stay in the processor's own memory."""


class Network:
    """`neural.network` with these parameters, at the agent states that it is shown, and back.

    `network(agent_states)` is their logits, and their values if there is a critic. It remembers what went
    into every layer, so that `pullback` need not compute it again.
    """

    def __init__(self, parameters: Any) -> None:
        # Copies: what comes out of a cluster's memory may be read only, and would be compiled for anew.
        layers = {name: {part: np.array(layer[part]) for part in "wb"} for name, layer in parameters.items()}
        self._torso = [f"torso_{index}" for index in range(sum(name.startswith("torso_") for name in layers))]
        self._heads = [name for name in ("actor", "critic") if name in layers]
        # Both heads as one layer: a sweep over one number costs as much as one over ten.
        heads = [layers[name] for name in self._heads]
        last = {part: np.concatenate([head[part] for head in heads], axis=-1) for part in "wb"}
        self._layers = [*(layers[name] for name in self._torso), last]
        self._num_actions = len(heads[0]["b"])
        self._inputs: list[list[np.ndarray]] = [[] for _ in self._layers]

    def __call__(
        self, agent_states: Float[np.ndarray, "N D"]
    ) -> tuple[Float[np.ndarray, "N A"], Float[np.ndarray, "N"] | None]:
        if len(agent_states) > _ROWS:
            parts = [self(agent_states[at : at + _ROWS]) for at in range(0, len(agent_states), _ROWS)]
            logits, values = zip(*parts, strict=True)
            return np.concatenate(logits), None if values[0] is None else np.concatenate(values)
        hidden, last = agent_states, len(self._torso) - 1
        for index, layer in enumerate(self._layers[:-1]):
            self._inputs[index].append(hidden)
            width = len(layer["b"])
            following = np.empty((len(hidden), width + (index < last) * hidden.shape[1]), np.float32)
            following[:, width:] = hidden[:, : following.shape[1] - width]
            _linear(hidden, layer["w"], layer["b"], following, True)
            hidden = following
        self._inputs[-1].append(hidden)
        outputs = linear(self._layers[-1]["w"], self._layers[-1]["b"], hidden)
        logits = np.ascontiguousarray(outputs[:, : self._num_actions])
        return logits, outputs[:, self._num_actions] if len(self._heads) > 1 else None

    def pullback(
        self, logits: Float[np.ndarray, "N A"], values: Float[np.ndarray, "N"] | None
    ) -> dict[str, dict[str, np.ndarray]]:
        """The gradient of Σ logits · f + values · V over all agent states so far.

        Step by step, as they were shown: arrays that small are never new to the processor.
        """
        slopes = logits if values is None else np.concatenate([logits, values[:, None]], axis=1)
        layers, features = self._layers, self._layers[0]["w"].shape[0]
        found = [{part: np.zeros_like(layer[part]) for part in "wb"} for layer in layers]
        # Into a layer go the ReLUs of the one before, then, but into the heads, what that one saw.
        units = [0, *(len(layer["b"]) for layer in layers[:-1])]
        learnt = [len(layer["w"]) - features for layer in layers]
        if self._torso:
            learnt[-1] = units[-1]
        turned = [np.ascontiguousarray(layer["w"][:n].T) for layer, n in zip(layers, learnt, strict=True)]
        last = 0
        for pieces in zip(*self._inputs, strict=True):
            first, last = last, last + len(pieces[0])
            slope, skipped = slopes[first:last], None
            for index in reversed(range(len(layers))):
                before = np.zeros((last - first, learnt[index]), np.float32)
                if skipped is not None:
                    before[:, : skipped.shape[1]] = skipped
                _back(pieces[index], slope, turned[index], units[index], *found[index].values(), before)
                slope = np.ascontiguousarray(before[:, : units[index]])
                skipped = before[:, units[index] :]
        *torso, heads = found
        parts = [self._num_actions] * (len(self._heads) - 1)
        split = {part: np.split(heads[part], parts, axis=-1) for part in "wb"}
        each = [{part: split[part][place] for part in "wb"} for place in range(len(self._heads))]
        return dict(zip((*self._torso, *self._heads), (*torso, *each), strict=True))


def linear(
    weights: Float[np.ndarray, "I O"], bias: Float[np.ndarray, "O"], inputs: Float[np.ndarray, "N I"]
) -> Float[np.ndarray, "N O"]:
    """Inputs · weights + bias."""
    outputs = np.empty((len(inputs), len(bias)), np.float32)
    _linear(inputs, weights, bias, outputs, False)
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


def _compiled(function: Any) -> Any:
    # Unwrapped: the shape checks of the tests wrap every function, and numba compiles plain ones only.
    return numba.njit(cache=True, fastmath={"contract"})(inspect.unwrap(function))


@_compiled
def _add(factors: Any, rows: Any, places: Any, out: Any) -> None:
    """Adds factors · rows to `out`, but for factors that are 0; `places` is room for the others' numbers."""
    count = 0
    for i in range(factors.shape[0]):
        places[count] = i
        count += factors[i] != 0.0
    width = out.shape[0]
    whole = count - count % 4
    for k in range(0, whole, 4):  # four at a time make one sweep over `out`
        a, b, c, d = places[k], places[k + 1], places[k + 2], places[k + 3]
        x, y, z, u = factors[a], factors[b], factors[c], factors[d]
        first, second, third, fourth = rows[a], rows[b], rows[c], rows[d]
        for j in range(width):
            out[j] += x * first[j] + y * second[j] + z * third[j] + u * fourth[j]
    for k in range(whole, count):
        x, first = factors[places[k]], rows[places[k]]
        for j in range(width):
            out[j] += x * first[j]


@_compiled
def _linear(inputs: Any, weights: Any, bias: Any, outputs: Any, relu: bool) -> None:
    """Inputs · weights + bias into the first columns of `outputs`."""
    width, places = bias.shape[0], np.empty(inputs.shape[1], np.int64)
    for row in range(inputs.shape[0]):
        out = outputs[row, :width]
        for j in range(width):
            out[j] = bias[j]
        _add(inputs[row], weights, places, out)
        if relu:
            for j in range(width):
                out[j] = max(out[j], np.float32(0.0))


@_compiled
def _back(inputs: Any, slopes: Any, turned: Any, units: int, weights: Any, bias: Any, before: Any) -> None:
    """Adds the gradient of one layer to `weights` and `bias`, and to `before` the slopes of its inputs.

    The first `units` of the inputs are ReLUs.
    """
    places = np.empty(max(slopes.shape), np.int64)
    for i in range(weights.shape[0]):
        _add(inputs[:, i], slopes, places, weights[i])
    for row in range(inputs.shape[0]):
        for j in range(bias.shape[0]):
            bias[j] += slopes[row, j]
        if before.shape[1]:
            _add(slopes[row], turned, places, before[row])
            for i in range(units):
                if inputs[row, i] <= 0.0:
                    before[row, i] = np.float32(0.0)


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
def draw(ends: Any, chances: Any, values: Any, players: Any, rows: Any, uniform: Any) -> tuple[Any, Any, Any]:
    """The action that each uniform number draws, its probability, and the value of its row.

    That is the first action whose part ends above the number. `ends`, `chances` and `values` are of every
    player at every row.
    """
    count = rows.shape[0]
    actions = np.empty(count, np.int32)
    likely, valued = np.empty(count, np.float32), np.empty(count, np.float32)
    for n in range(count):
        player, row, action = players[n], rows[n], 0
        while ends[player, row, action] <= uniform[n]:
            action += 1
        actions[n], likely[n], valued[n] = action, chances[player, row, action], values[player, row]
    return actions, likely, valued


@_compiled
def gather(parts: Any, rows: Any, totals: Any) -> None:
    """Adds every part to the total of its row."""
    for n in range(rows.shape[0]):
        for a in range(parts.shape[1]):
            totals[rows[n], a] += parts[n, a]
