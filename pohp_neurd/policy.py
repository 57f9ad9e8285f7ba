"""From logits to an action: the masked softmax, sampling, entropy.

Pipeline: agent state -> logits -> **probabilities -> action** (Morrill et al. 2022, Section 3).
All that is compiled comes through here. Where OpenSpiel asks for one action at a time, a copy in numpy acts
without a call of JAX: `openspiel.agent.acting`, held to this one by a test.
"""

import functools
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import draws, types


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


class Model(NamedTuple):
    """A parameterised policy, table or network, as two pure functions."""

    init: Init
    apply: Apply


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
    return draws.choose(probabilities, draws.uniform(key))


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
