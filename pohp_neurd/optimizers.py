"""Optimizers by name, and Adam with β1 = 0 as the paper uses it, with few slow operations per parameter.

Pipeline: shaping -> **parameters**. An online agent updates all its parameters after every step, and the
optimizer is most of that step: a square root and a division for every parameter, and little else counts.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import checks, types


def optimizer(name: str, step_size: float | types.Schedule) -> optax.GradientTransformation:
    """The optimizer that flags call `adam`, `adam_without_momentum` or `sgd`."""
    checks.one_of("optimizer", name, checks.OPTIMIZERS)
    return _BY_NAME[name](step_size)


def sgd(step_size: float | types.Schedule) -> optax.GradientTransformation:
    """Plain steps: in a table, exactly the paper's update."""
    if not callable(step_size):
        checks.non_negative("step_size", step_size)
    return optax.sgd(step_size)


class State(NamedTuple):
    """What must persist between updates of Adam without momentum."""

    updates: Int[Array, ""]
    second_moment: Any
    """ν, shaped as the parameters."""


def adam_without_momentum(
    learning_rate: types.Scalar | types.Schedule, *, decay: float = 0.999, epsilon: float = 1e-8
) -> optax.GradientTransformation:
    """θ ← θ − α g / (√ν̂ + ε) with ν ← β ν + (1 − β) g² and ν̂ = ν / (1 − βᵗ) (Kingma and Ba 2015, at β1 = 0).

    The correction is pulled out of the root, c = 1 − βᵗ: α g / (√(ν/c) + ε) = α √c g / (√ν + ε √c), which
    saves a division for every parameter. `learning_rate` may be traced, so that one compiled function
    serves many, or a schedule in optax's form.
    """
    if not callable(learning_rate):
        checks.non_negative("learning_rate", learning_rate)
    checks.in_unit_interval("decay", decay)

    def init(parameters: types.Parameters) -> State:
        return State(jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, parameters))

    def update(gradient: Any, state: State, parameters: Any = None) -> tuple[Any, State]:
        del parameters
        count = state.updates + 1
        rate = learning_rate(state.updates) if callable(learning_rate) else learning_rate
        moment = jax.tree.map(lambda v, g: decay * v + (1 - decay) * g * g, state.second_moment, gradient)
        # Nothing, but made of all gradients: no parameter can be written before the last gradient is known.
        # Without this order XLA copies the weights that backpropagation still reads, at every update.
        nothing = sum(0.0 * jnp.ravel(leaf)[0] for leaf in jax.tree.leaves(gradient))

        def step(g: Array, v: Array) -> Array:
            scale, floor = corrected(count, rate, decay, epsilon, v.dtype)
            return (nothing - scale) * g / (jnp.sqrt(v) + floor)

        return jax.tree.map(step, gradient, moment), State(count, moment)

    return optax.GradientTransformation(init, update)


def corrected(
    count: Int[Array, ""], rate: types.Scalar, decay: float, epsilon: float, dtype: Any
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """α √c and ε √c at update `count`, the first being 1: Adam's correction, for α √c g / (√ν + ε √c)."""
    root = jnp.sqrt(-jnp.expm1(count.astype(dtype) * jnp.log(jnp.asarray(decay, dtype))))
    return jnp.asarray(rate, dtype) * root, epsilon * root


_BY_NAME: dict[str, Callable[..., optax.GradientTransformation]] = {
    "adam": optax.adam,
    "adam_without_momentum": adam_without_momentum,
    "sgd": sgd,
}
