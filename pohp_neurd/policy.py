"""From logits to an action: the masked softmax, sampling, entropy.

Pipeline: agent state -> logits -> **probabilities -> action** (Morrill et al. 2022, Section 3).
All that is compiled comes through here. Where OpenSpiel asks for one action at a time, a copy in numpy acts
without a call of JAX: `openspiel.agent.acting.softmax` is the one host copy of the masked softmax, and is
held to it by a test.

Draws are in fixed point, so that what is rare comes as rarely as it should. Near 1 the numbers of float32 are
2⁻²⁴ apart, uniform ones and cumulative probabilities alike: an action of probability 10⁻⁹ would come 60 times
too often or never, and an estimate that divides by the probability would be wrong by as much. Here both have
48 bits, in two whole numbers of 24.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import types

BITS = 24
ONE = 1 << BITS


class Output(NamedTuple):
    """What a model says of one agent state."""

    logits: Float[Array, "A"]
    value: Float[Array, ""] | None
    """The critic's estimate of the return from here; None for a model without a critic."""


@runtime_checkable
class Init(Protocol):
    """Fresh parameters of a model."""

    def __call__(self, *, key: types.Key) -> types.Parameters: ...


@runtime_checkable
class Apply(Protocol):
    """The model's output at one agent state."""

    def __call__(self, parameters: types.Parameters, agent_state: types.History) -> Output: ...


@runtime_checkable
class Hosted(Protocol):
    """A model with its parameters, at the agent states that it is shown, and back."""

    def __call__(self, agent_states: np.ndarray, /) -> tuple[np.ndarray, np.ndarray | None]:
        """Their logits, and their values if there is a critic."""

    def pullback(self, slopes: np.ndarray) -> types.Parameters:
        """The gradient of Σ slopes · (f, V) over all agent states so far; of f alone without a critic."""


class Host(NamedTuple):
    """`apply` at many agent states in numpy, of parameters that are one array: each array costs a call."""

    pack: Callable[[types.Parameters], Any]
    """Parameters, of JAX or of numpy -> one array."""
    unpack: Callable[[Any], types.Parameters]
    """Its inverse."""
    network: Callable[[np.ndarray], Hosted]
    """Of that array, as are its gradients."""


class Model(NamedTuple):
    """A parameterised policy, table or network, as pure functions."""

    init: Init
    apply: Apply
    host: Host | None = None
    """Where parameters need no JAX."""

    def packed(self) -> "Model":
        """The same model, of parameters in one array where it has a host; else of those it has."""
        if self.host is None:
            return self
        pack, unpack, network = self.host

        def init(*, key: types.Key) -> types.Parameters:
            return pack(self.init(key=key))

        def apply(parameters: types.Parameters, agent_state: Any) -> Output:
            return self.apply(unpack(parameters), agent_state)

        same = lambda parameters: parameters  # noqa: E731
        return Model(init, apply, Host(same, same, network))


def probabilities(logits: types.Logits, legal: types.Mask) -> Float[Array, "A"]:
    """Probabilities of the actions: π(a) = exp f(a) / Σ_b exp f(b) over legal a, b, and 0 elsewhere.

    Illegal logits have no influence and get a gradient of exactly zero. Without a legal action, as at
    the padding of a trajectory, all probabilities are 0.

    >>> probabilities(jnp.array([0.0, 0.0, 7.0]), jnp.array([True, True, False])).tolist()
    [0.5, 0.5, 0.0]
    """
    logits = jnp.asarray(logits)
    # A finite minimum: -inf would turn into NaN where no action is legal, and in gradients.
    masked = jnp.where(legal, logits, jnp.finfo(logits.dtype).min)
    shifted = masked - jax.lax.stop_gradient(jnp.max(masked, axis=-1, keepdims=True))
    weights = jnp.where(legal, jnp.exp(shifted), 0.0)
    total = jnp.sum(weights, axis=-1, keepdims=True)
    return weights / jnp.where(total > 0, total, 1.0)


@functools.partial(jax.jit, static_argnames="apply")
def table(
    apply: Apply,
    parameters: types.Parameters,
    agent_states: types.ArrayLike,
    legal: Bool[types.ArrayLike, "S A"],
) -> Float[Array, "S A"]:
    """The probabilities of a whole table of agent states, in one batched pass over the model."""
    logits = jax.vmap(lambda state: apply(parameters, state).logits)(agent_states)
    return jax.vmap(probabilities)(logits, legal)


def log_probabilities(logits: types.Logits, legal: types.Mask) -> Float[Array, "A"]:
    """Logarithms of `probabilities` at legal actions, exact where the probability underflows; 0 elsewhere."""
    logits = jnp.asarray(logits)
    masked = jnp.where(legal, logits, jnp.finfo(logits.dtype).min)
    shifted = masked - jax.lax.stop_gradient(jnp.max(masked, axis=-1, keepdims=True))
    total = jnp.sum(jnp.where(legal, jnp.exp(shifted), 0.0), axis=-1, keepdims=True)
    return jnp.where(legal, shifted - jnp.log(jnp.where(total > 0, total, 1.0)), 0.0)


def sample(probabilities: types.Probabilities, *, key: types.Key) -> Int[Array, ""]:
    """An action drawn from `probabilities`; never one of probability zero.

    By the inverse of the cumulative distribution: one uniform number whatever the number of actions.
    """
    return choose(probabilities, uniform(key))


def entropy(logits: types.Logits, legal: types.Mask) -> Float[Array, ""]:
    """Entropy of the policy in nats: -Σ_a π(a) log π(a).

    >>> round(float(entropy(jnp.zeros(4), jnp.ones(4, bool))), 4)
    1.3863
    """
    return -jnp.sum(probabilities(logits, legal) * log_probabilities(logits, legal), axis=-1)


def centred(values: Float[Array, "A"], legal: types.Mask) -> Float[Array, "A"]:
    """`values` less their mean over legal actions; 0 at illegal ones."""
    count = jnp.maximum(jnp.sum(legal, axis=-1, keepdims=True), 1).astype(values.dtype)
    kept = jnp.where(legal, values, 0.0)
    return jnp.where(legal, kept - jnp.sum(kept, axis=-1, keepdims=True) / count, 0.0)


class Fixed(NamedTuple):
    """The numbers (high + low / 2²⁴) / 2²⁴."""

    high: Int[Array, "..."]
    low: Int[Array, "..."]
    """From 0 to 2²⁴ − 1."""


def uniform(key: types.Key, shape: tuple[int, ...] = ()) -> Fixed:
    """Uniform numbers in [0, 1)."""
    return Fixed(*digits(key, (2, *shape)))


def digits(key: types.Key, shape: tuple[int, ...]) -> Int[Array, "..."]:
    """Uniform whole numbers below 2²⁴: one half of a Fixed."""
    return (jax.random.bits(key, shape, jnp.uint32) >> jnp.uint32(32 - BITS)).astype(jnp.int32)


def fixed(values: Float[types.ArrayLike, "..."]) -> Fixed:
    """Numbers from 0 to 1, rounded down to multiples of 2⁻⁴⁸, which many floats are already."""
    scaled = values * ONE
    xp = np if isinstance(values, np.ndarray) else jnp
    high = xp.floor(scaled)
    low = xp.floor((scaled - high) * ONE)
    return Fixed(jnp.asarray(high, jnp.int32), jnp.asarray(low, jnp.int32))


def thresholds(probabilities: Float[types.ArrayLike, "..."], axis: int = -1) -> Fixed:
    """Cumulative probabilities along `axis`: the first one above a uniform number tells what is drawn.

    Each interval is as long as its probability, rounded down to a multiple of 2⁻⁴⁸; one of probability 0 is
    empty. What rounding leaves open up to 1 goes to the likeliest outcome, never to a rare one.
    """
    probabilities = jnp.asarray(probabilities)
    axis %= probabilities.ndim
    summed: Fixed = jax.lax.associative_scan(_add, fixed(probabilities), axis=axis)
    total = jax.tree.map(lambda part: jax.lax.slice_in_dim(part, -1, None, axis=axis), summed)
    filled = _add(summed, Fixed(ONE - total.high, -total.low))
    likeliest = jnp.argmax(probabilities, axis=axis, keepdims=True).astype(jnp.int32)
    after = jax.lax.broadcasted_iota(jnp.int32, probabilities.shape, axis) >= likeliest
    return jax.tree.map(lambda new, old: jnp.where(after, new, old), filled, summed)


def choose(probabilities: Float[types.ArrayLike, "... A"], uniform: Fixed) -> Int[Array, "..."]:
    """The outcome that each uniform number picks; never one of probability zero."""
    number = jax.tree.map(lambda half: half[..., None], uniform)
    return jnp.sum(reached(thresholds(probabilities), number), axis=-1).astype(jnp.int32)


def reached(thresholds: Fixed, uniform: Fixed) -> Bool[Array, "..."]:
    """Whether a uniform number has reached a threshold."""
    equal = thresholds.high == uniform.high
    return (thresholds.high < uniform.high) | (equal & (thresholds.low <= uniform.low))


def _add(one: Fixed, other: Fixed) -> Fixed:
    low = one.low + other.low
    return Fixed(one.high + other.high + (low >> BITS), low & (ONE - 1))
