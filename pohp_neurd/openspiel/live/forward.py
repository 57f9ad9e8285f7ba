"""The package's network and its draws on the host, compiled with numba: for one step of live play.

It skips what is zero, as most of a game's tensor is and half of the ReLUs are, has no threads, and computes
every row on its own, in one order. So a row comes out the same to the bit whatever stands beside it, and
whichever process computes it; and a handful of states does not cost a call of JAX.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from pohp_neurd import foreign, neural

_ROWS = 64
"""That go back at a time: so few stay in the processor's own memory."""


class Network:
    """`neural.network` with these parameters, at the agent states that it is shown, and back.

    `network(agent_states)` is their logits, and their values if there is a critic. It remembers what was not
    zero of every agent state and of every layer there, so that `pullback` need not compute it again.
    """

    def __init__(self, layout: neural.Layout, flat: Float[np.ndarray, "n"]) -> None:
        self._layout, self._flat = layout, np.asarray(flat)
        self._most, self._num_outputs = int(layout.widths[:-1].sum()), int(layout.widths[-1])
        self._factors, self._places = np.empty(1 << 15, np.float32), np.empty(1 << 15, np.int32)
        self._ends = np.zeros((256, len(layout.widths)), np.int64)
        self._rows = self._used = 0

    def __call__(
        self, agent_states: Float[np.ndarray, "N D"]
    ) -> tuple[Float[np.ndarray, "N A"], Float[np.ndarray, "N"] | None]:
        count, num_actions = len(agent_states), self._layout.num_actions
        first, self._rows = self._rows, self._rows + count
        self._ends = _with_room(self._ends, first, self._rows)
        used, most = self._used, self._used + count * self._most + 1
        self._factors = _with_room(self._factors, used, most)
        self._places = _with_room(self._places, used, most)
        outputs = np.empty((count, self._num_outputs), np.float32)
        kept = self._factors, self._places, self._ends
        self._used = _forward(agent_states, self._flat, self._layout.widths, *kept, first, used, outputs)
        logits = np.ascontiguousarray(outputs[:, :num_actions])
        return logits, outputs[:, num_actions] if self._num_outputs > num_actions else None

    def pullback(self, slopes: Float[np.ndarray, "N K"]) -> Float[np.ndarray, "n"]:
        """The gradient of Σ slopes · (f, V) over all agent states so far; of f alone without a critic."""
        gradient = np.zeros_like(self._flat)
        kept = self._factors, self._places, self._ends[: self._rows]
        _back(np.ascontiguousarray(slopes), self._turned(), self._layout.widths, *kept, gradient, _ROWS)
        return gradient

    def _turned(self) -> Float[np.ndarray, "m"]:
        """How slopes come back to the ReLUs that a layer sees: none to what it sees of the agent state."""
        num_features, *widths = self._layout.widths.tolist()
        seen = [*(size - num_features for size, _ in self._layout.shapes[:-1]), sum(widths[-2:-1])]
        weights = zip(self._layout.places[::2], self._layout.shapes, seen, strict=True)
        turned = [self._flat[b:e].reshape(shape)[:n].T.ravel() for (b, e), shape, n in weights]
        return np.concatenate(turned[::-1])


def _with_room(array: np.ndarray, used: int, size: int) -> np.ndarray:
    """`array` as far as it is used, with room for `size`; what is not used is not touched."""
    if len(array) >= size:
        return array
    larger = np.empty((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger


_compiled = foreign.compiled(fastmath={"contract"})


# All that a row meets has a number: the ReLUs of the torso's last layer, those of the layer before, and so
# on, and at the end the agent state. So what a layer sees is everything from some number on, in the order of
# its weights; but the heads see the last ReLUs alone. What is not zero is listed as it is met, the agent
# state first: `factors` at `places`. `ends` has for every row where its list begins, and where in it the
# agent state ends, and each layer.


@_compiled
def _add(factors: Any, places: Any, first: int, last: int, base: int, rows: Any, out: Any) -> None:
    """Adds factors · rows to `out`, rows counted from `base`; of the list from `first` to `last`."""
    width = out.shape[0]
    eights = last - (last - first) % 8
    for k in range(first, eights, 8):  # eight at a time make one sweep over `out`, added up by fours
        a, b, c, d = places[k] - base, places[k + 1] - base, places[k + 2] - base, places[k + 3] - base
        e, f, g, h = places[k + 4] - base, places[k + 5] - base, places[k + 6] - base, places[k + 7] - base
        x, y, z, u = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        p, q, r, s = factors[k + 4], factors[k + 5], factors[k + 6], factors[k + 7]
        for j in range(width):
            four = out[j] + (x * rows[a, j] + y * rows[b, j] + z * rows[c, j] + u * rows[d, j])
            out[j] = four + (p * rows[e, j] + q * rows[f, j] + r * rows[g, j] + s * rows[h, j])
    whole = last - (last - first) % 4
    for k in range(eights, whole, 4):
        a, b, c, d = places[k] - base, places[k + 1] - base, places[k + 2] - base, places[k + 3] - base
        x, y, z, u = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        for j in range(width):
            out[j] += x * rows[a, j] + y * rows[b, j] + z * rows[c, j] + u * rows[d, j]
    if last - whole >= 2:
        a, b, x, y = places[whole] - base, places[whole + 1] - base, factors[whole], factors[whole + 1]
        for j in range(width):
            out[j] += x * rows[a, j] + y * rows[b, j]
    if (last - whole) % 2:
        a, x = places[last - 1] - base, factors[last - 1]
        for j in range(width):
            out[j] += x * rows[a, j]


@_compiled
def _list(values: Any, base: int, factors: Any, places: Any, used: int) -> int:
    """Lists what is not zero of `values`, whose numbers begin at `base`; returns where the list ends."""
    for c in range(values.shape[0]):
        places[used], factors[used] = base + c, values[c]
        used += values[c] != 0.0
    return used


@_compiled
def _forward(
    seen: Any,
    flat: Any,
    widths: Any,
    factors: Any,
    places: Any,
    ends: Any,
    first: int,
    used: int,
    outputs: Any,
) -> int:
    """The outputs of rows that are counted from `first`; returns where their lists end."""
    depth, units = widths.shape[0] - 2, widths[1:-1].sum()
    hidden = np.empty(widths.max(), np.float32)
    for row in range(seen.shape[0]):
        end = ends[first + row]
        end[0], base, at = used, units, 0
        used = _list(seen[row], base, factors, places, used)
        end[1] = used
        for layer in range(depth + 1):
            heads, width = layer == depth, widths[layer + 1]
            inputs = widths[layer] if heads else units + widths[0] - base
            weights = flat[at : at + inputs * width].reshape(inputs, width)
            bias = flat[at + inputs * width : at + (inputs + 1) * width]
            at += (inputs + 1) * width
            out = outputs[row] if heads else hidden[:width]
            for j in range(width):
                out[j] = bias[j]
            _add(factors, places, end[depth if heads else 0], used, base, weights, out)
            if not heads:
                base -= width
                for j in range(width):
                    out[j] = max(out[j], np.float32(0.0))
                used = _list(out, base, factors, places, used)
                end[layer + 2] = used
    return used


@_compiled
def _back(
    slopes: Any, turned: Any, widths: Any, factors: Any, places: Any, ends: Any, gradient: Any, size: int
) -> None:
    """Adds to `gradient` that of all rows, `size` of them at a time; `turned` begins with the heads."""
    depth, units = widths.shape[0] - 2, widths[1:-1].sum()
    total = units + widths[0]
    # The lists the other way round: of everything that rows meet, in which rows it is not zero.
    met, where = np.empty((total, size), np.float32), np.empty((total, size), np.int32)
    counts = np.empty(total, np.int64)
    before = np.empty((size, units), np.float32)  # the slopes of the ReLUs
    some, room = np.empty(widths.max(), np.float32), np.empty(size * widths.max(), np.float32)
    every = np.arange(widths[-1]).astype(np.int32)
    for first in range(0, slopes.shape[0], size):
        count = min(size, slopes.shape[0] - first)
        counts[:] = 0
        for row in range(count):
            for k in range(ends[first + row, 0], ends[first + row, depth + 1]):
                c = places[k]
                met[c, counts[c]], where[c, counts[c]] = factors[k], row
                counts[c] += 1
        before[:] = 0.0
        at, turn, base = gradient.shape[0], 0, 0
        for layer in range(depth, -1, -1):
            heads, width = layer == depth, widths[layer + 1]
            base += 0 if heads else width
            inputs = widths[layer] if heads else total - base
            at -= (inputs + 1) * width
            found = gradient[at : at + (inputs + 1) * width].reshape(inputs + 1, width)
            learnt = (widths[layer] if depth else 0) if heads else units - base
            back = turned[turn : turn + learnt * width].reshape(width, learnt)
            turn += learnt * width
            slope = slopes[first : first + count] if heads else room[: count * width].reshape(count, width)
            for row in range(count):
                if heads:
                    _add(slope[row], every, 0, width, 0, back, before[row, :learnt])
                else:
                    begin, end = ends[first + row, layer + 1], ends[first + row, layer + 2]
                    slope[row] = 0.0
                    for k in range(begin, end):
                        some[k - begin] = before[row, places[k]]
                        slope[row, places[k] - base + width] = some[k - begin]
                    into = before[row, base : base + learnt]
                    _add(some, places[begin:end], 0, end - begin, base - width, back, into)
                for j in range(width):
                    found[inputs, j] += slope[row, j]
            for i in range(inputs):
                if counts[base + i]:
                    _add(met[base + i], where[base + i], 0, counts[base + i], 0, slope, found[i])


@_compiled
def policies(logits: Any, legal: Any, chances: Any, ends: Any) -> None:
    """`policy.probabilities` of many rows, in float64; and where each action's part of [0, 1) ends.

    The last that has a part at all ends at 1, and what rounding leaves open goes to the likeliest, as in
    `policy.thresholds`: never to a rare one.
    """
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


@_compiled
def batch(
    which: Any,
    row: Any,
    action: Any,
    probability: Any,
    return_: Any,
    value: Any,
    allowed: Any,
    logits: Any,
    values: Any,
    reference: Any,
    highest: float,
    weight: float,
    rows: Any,
    actions: Any,
    legal: Any,
    numbers: Any,
) -> None:
    """Fills the last four, of `play.Batch`, with the decisions `which`."""
    for n in range(which.shape[0]):
        at = which[n]
        r = row[at]
        rows[n], actions[n] = r, action[at]
        legal[n] = allowed[r]
        numbers[n, 0], numbers[n, 1] = probability[at], return_[at] - highest
        numbers[n, 2], numbers[n, 3] = value[at], weight
        place = 4
        for part in (logits, values, reference):
            for a in range(part.shape[1]):
                numbers[n, place + a] = part[r, a]
            place += part.shape[1]


@_compiled
def ordered(
    row: Any, action: Any, probability: Any, value: Any, seat: Any, episode: Any, earned: Any, returns: Any
) -> Any:
    """The columns of `play.Play`, by episode, then seat, then in the order given, with returns-to-go."""
    count, num_seats = row.shape[0], returns.shape[1]
    places = np.zeros(returns.size + 1, np.int64)  # where the next decision of a trajectory goes
    for n in range(count):
        places[episode[n] * num_seats + seat[n] + 1] += 1
    places = np.cumsum(places)
    found = (np.empty_like(row), np.empty_like(action), np.empty_like(probability), np.empty_like(value))
    seats, episodes, to_go = np.empty_like(seat), np.empty_like(episode), np.empty(count)
    for n in range(count):
        trajectory = episode[n] * num_seats + seat[n]
        at = places[trajectory]
        places[trajectory] += 1
        found[0][at], found[1][at], found[2][at], found[3][at] = row[n], action[n], probability[n], value[n]
        seats[at], episodes[at] = seat[n], episode[n]
        to_go[at] = returns[episode[n], seat[n]] - earned[n]
    return (*found, seats, episodes, to_go)
