"""The paper's network and its optimizer row by row, in compiled code: most rows rest at every step.

Pipeline: agent state -> **logits and value**, and direction -> **parameters**. Adam with β1 = 0 leaves a
weight alone whose gradient is 0; its moment decays, which can wait until its next gradient. The weights that
leave one input or one hidden unit stand in a row; where that input or unit is 0, so is the gradient of the
whole row, and the row costs nothing. Half of a new network's hidden units are 0 at any one state, nearly all
where a large learning rate has made units die, and all but two inputs of catch. `actor_critic.dense` computes
the same by autodiff.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import checks, foreign, learners, neural, optimizers, policy, types
from pohp_neurd.online import actor_critic


class State(NamedTuple):
    """Parameters and moments by rows.

    First the weights from each of D inputs to the first layer, then those past it to the second; the weights
    from each of H hidden units to the second layer; the biases of both layers; the weights of each of A
    actions and of the value; and in the last row the biases of these.
    """

    weights: Float[Array, "N L"]
    """L is H, or A + 1 if that is more."""
    moments: Float[Array, "N L"]
    """ν at the last update of the row."""
    counts: Int[Array, "N"]
    """How many updates there had been after that one."""
    updates: Int[Array, ""]


def paper_network(
    observation_size: int,
    num_actions: int,
    rule: learners.Rule,
    optimizer: actor_critic.Adam,
    *,
    torso: Sequence[int] = neural.PAPER_TORSO,
    common_mode: str = checks.COMMON_MODE,
    critic_cost: float = 1.0,
) -> actor_critic.ActorCritic:
    """The paper's network, for one state: D features [1, D], or the numbers [1, k] of those that are 1."""
    if len(torso) != 2 or torso[0] != torso[1]:
        raise ValueError(f"rows are of two layers of one width, but the torso is {tuple(torso)}.")
    width = torso[0]
    whole = neural.network(observation_size, num_actions, torso=torso, critic=True)
    learner = learners.learner(
        whole.apply, rule, optimizer.transformation(), common_mode=common_mode, critic_cost=critic_cost
    )

    def init(*, key: types.Key) -> State:
        weights = split(whole.init(key=key))
        counts = jnp.zeros(len(weights), jnp.int32)
        return State(weights, jnp.zeros_like(weights), counts, jnp.zeros((), jnp.int32))

    def outputs(state: State, states: Any) -> actor_critic.Outputs:
        found = _forward(state.weights, *_inputs(state, states, observation_size), width, num_actions + 1)[2]
        return actor_critic.Outputs(found[None, :-1], found[-1:])

    def update(state: State, decisions: learners.Decision) -> State:
        inputs = _inputs(state, decisions.agent_state, observation_size)
        hidden, units, found = _forward(state.weights, *inputs, width, num_actions + 1)
        seen = policy.Output(found[None, :-1], found[-1:])
        slopes, _ = learner.slopes(state.updates, seen, None, decisions)
        slope = jnp.concatenate([slopes.logits[0], jnp.asarray(slopes.value)])
        rate, epsilon = optimizers.corrected(
            state.updates + 1, optimizer.learning_rate, optimizer.decay, optimizer.epsilon, slope.dtype
        )
        numbers = jnp.stack([jnp.asarray(optimizer.decay, slope.dtype), rate, epsilon])
        return _backward(state, *inputs, hidden, units, slope, state.updates[None], numbers)

    def parameters(state: State) -> types.Parameters:
        return join(state.weights, observation_size, num_actions, width)

    return actor_critic.ActorCritic(init, outputs, update, parameters)


def split(parameters: types.Parameters) -> Float[Array, "N L"]:
    """The parameters of `neural.network` in rows."""
    first, second, actor, critic = (parameters[name] for name in ("torso_0", "torso_1", "actor", "critic"))
    width = first["w"].shape[1]
    ends = jnp.concatenate([actor["b"], critic["b"]])
    parts = (
        first["w"],
        second["w"][width:],
        second["w"][:width],
        first["b"][None],
        second["b"][None],
        actor["w"].T,
        critic["w"].T,
        ends[None],
    )
    length = max(width, len(ends))
    return jnp.concatenate([jnp.pad(part, ((0, 0), (0, length - part.shape[1]))) for part in parts])


def join(
    weights: Float[Array, "N L"], observation_size: int, num_actions: int, width: int
) -> types.Parameters:
    """The inverse of `split`."""
    sizes = observation_size, observation_size, width, 1, 1, num_actions, 1
    parts = jnp.split(weights, np.cumsum(sizes))
    first, past, hidden, bias_0, bias_1, actor, critic = (part[:, :width] for part in parts[:-1])
    ends = parts[-1][0]
    return {
        "torso_0": {"w": first, "b": bias_0[0]},
        "torso_1": {"w": jnp.concatenate([hidden, past]), "b": bias_1[0]},
        "actor": {"w": actor.T, "b": ends[:num_actions]},
        "critic": {"w": critic.T, "b": ends[num_actions : num_actions + 1]},
    }


def _inputs(state: State, states: Any, observation_size: int) -> tuple[Int[Array, "k"], Float[Array, "k"]]:
    """Which inputs there are, and what they are."""
    given = jnp.asarray(states)[0]
    if jnp.issubdtype(given.dtype, jnp.integer):
        if len(given) == observation_size:
            raise ValueError(
                f"all {observation_size} features were given as integers, which list the inputs that are 1: "
                "give them as floats."
            )
        return given.astype(jnp.int32), jnp.ones(given.shape, state.weights.dtype)
    return jnp.arange(len(given), dtype=jnp.int32), given.astype(state.weights.dtype)


def _forward(
    weights: Any, active: Any, features: Any, width: int, num_outputs: int
) -> tuple[Array, Array, Array]:
    """Hidden units, units of the second layer, and logits with the value behind them."""
    dtype = weights.dtype
    shapes = [jax.ShapeDtypeStruct((size,), dtype) for size in (width, width, num_outputs)]
    hidden, units, outputs = jax.ffi.ffi_call(_registered("forward", dtype), shapes)(
        weights, active, features
    )
    return hidden, units, outputs


def _backward(state: State, *others: Any) -> State:
    """The state after an update, in place."""
    given = state.weights, state.moments, state.counts
    shapes = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in given]
    call = jax.ffi.ffi_call(
        _registered("backward", state.weights.dtype), shapes, input_output_aliases={0: 0, 1: 1, 2: 2}
    )
    weights, moments, counts = call(*given, *others)
    return State(weights, moments, counts, state.updates + 1)


@functools.cache
def _registered(name: str, dtype: Any) -> str:
    whole = f"pohp_neurd.online.{name}.{dtype}"
    make: Callable[[Any], Any] = {"forward": _forward_call, "backward": _backward_call}[name]
    foreign.register(whole, make(np.dtype(dtype).type))
    return whole


def _forward_call(real: Any) -> Any:
    @foreign.compiled()
    def call(given: foreign.Words, filled: foreign.Words) -> None:
        forward(
            foreign.matrix(given[0], real),
            foreign.vector(given[1], np.int32),
            foreign.vector(given[2], real),
            foreign.vector(filled[0], real),
            foreign.vector(filled[1], real),
            foreign.vector(filled[2], real),
        )

    return call


def _backward_call(real: Any) -> Any:
    @foreign.compiled()
    def call(given: foreign.Words, filled: foreign.Words) -> None:
        # Weights, moments and counts are filled where they were given.
        backward(
            foreign.matrix(filled[0], real),
            foreign.matrix(filled[1], real),
            foreign.vector(filled[2], np.int32),
            foreign.vector(given[3], np.int32),
            foreign.vector(given[4], real),
            foreign.vector(given[5], real),
            foreign.vector(given[6], real),
            foreign.vector(given[7], real),
            foreign.vector(given[8], np.int32)[0],
            foreign.vector(given[9], real),
        )

    return call


@foreign.compiled(fastmath={"contract"})
def _add(total: Any, factor: Any, row: Any) -> None:
    for column in range(len(total)):
        total[column] += factor * row[column]


@foreign.compiled(fastmath={"contract"})
def _add_rows(total: Any, factors: Any, rows: Any) -> None:
    active = np.flatnonzero(factors)
    whole = len(active) // 4 * 4
    for place in range(0, whole, 4):  # four at once, or most of the time would go into reading the total
        a, b, c, d = active[place], active[place + 1], active[place + 2], active[place + 3]
        e, f, g, h = factors[a], factors[b], factors[c], factors[d]
        one, two, three, four = rows[a], rows[b], rows[c], rows[d]
        for column in range(len(total)):
            total[column] += (e * one[column] + f * two[column]) + (g * three[column] + h * four[column])
    for place in range(whole, len(active)):
        _add(total, factors[active[place]], rows[active[place]])


@foreign.compiled(fastmath={"contract", "reassoc"})
def _dot(one: Any, other: Any) -> Any:
    total = one[0] * other[0]
    for column in range(1, len(one)):
        total += one[column] * other[column]
    return total


@foreign.compiled(fastmath={"contract"})
def forward(weights: Any, active: Any, features: Any, hidden: Any, units: Any, outputs: Any) -> None:
    """Fills `hidden`, `units` and `outputs`."""
    width, num_outputs = len(hidden), len(outputs)
    num_inputs = (len(weights) - width - num_outputs - 3) // 2
    bias = 2 * num_inputs + width
    hidden[:] = weights[bias, :width]
    units[:] = weights[bias + 1, :width]
    for place in range(len(active)):
        if features[place] != 0:
            _add(hidden, features[place], weights[active[place]])
            _add(units, features[place], weights[num_inputs + active[place]])
    hidden[:] = np.maximum(hidden, 0)
    _add_rows(units, hidden, weights[2 * num_inputs : bias])
    units[:] = np.maximum(units, 0)
    for output in range(num_outputs):
        outputs[output] = _dot(units, weights[bias + 2 + output]) + weights[bias + 2 + num_outputs, output]


@foreign.compiled(fastmath={"contract"})
def backward(
    weights: Any,
    moments: Any,
    counts: Any,
    active: Any,
    features: Any,
    hidden: Any,
    units: Any,
    slopes: Any,
    count: Any,
    numbers: Any,
) -> None:
    """One update of the rows with a gradient; `numbers` are β2, α and ε, these two with their correction."""
    width, num_outputs = len(hidden), len(slopes)
    num_inputs = (len(weights) - width - num_outputs - 3) // 2
    bias = 2 * num_inputs + width
    first, second = np.zeros_like(hidden), np.zeros_like(units)  # the loss's slopes before the ReLUs
    for output in range(num_outputs):
        _add(second, slopes[output], weights[bias + 2 + output])
    for unit in range(width):
        if units[unit] <= 0:
            second[unit] = 0
    for output in range(num_outputs):
        _step(weights, moments, counts, bias + 2 + output, slopes[output], units, count, numbers)
    _step(weights, moments, counts, bias + 2 + num_outputs, slopes.dtype.type(1), slopes, count, numbers)
    for unit in range(width):
        if hidden[unit] > 0:
            row = 2 * num_inputs + unit
            first[unit] = _dot(second, weights[row])
            _step(weights, moments, counts, row, hidden[unit], second, count, numbers)
    for place in range(len(active)):
        if features[place] != 0:
            row = active[place]
            _step(weights, moments, counts, row, features[place], first, count, numbers)
            _step(weights, moments, counts, num_inputs + row, features[place], second, count, numbers)
    _step(weights, moments, counts, bias, slopes.dtype.type(1), first, count, numbers)
    _step(weights, moments, counts, bias + 1, slopes.dtype.type(1), second, count, numbers)


@foreign.compiled(fastmath={"contract"})
def _step(
    weights: Any, moments: Any, counts: Any, row: Any, factor: Any, slopes: Any, count: Any, numbers: Any
) -> None:
    """θ ← θ − α g / (√ν + ε) with ν ← β ν + (1 − β) g², of a row whose gradient g is `factor` · `slopes`."""
    real = numbers.dtype.type  # a number that is not of it would make all of this float64
    decay, rate, epsilon = numbers
    kept, idle = decay, count - counts[row]
    if idle > 0:
        kept = real(decay ** (idle + 1))
    fresh = real(1) - decay
    weight, moment = weights[row], moments[row]
    for column in range(len(slopes)):
        gradient = factor * slopes[column]
        now = kept * moment[column] + fresh * (gradient * gradient)
        moment[column] = now
        weight[column] -= rate * gradient / (np.sqrt(now) + epsilon)
    counts[row] = count + 1
