"""Array aliases and the one axis alphabet of the package.

| letter | axis |
|---|---|
| T | steps of a trajectory |
| B | batch |
| A | actions |
| S | agent states |
| D | features of an observation |
| P | agents (players) |
| N | histories |

Functions are written for one decision or one trajectory; batch axes come from `jax.vmap`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from jax import Array
from jaxtyping import Bool, Float, Int, UInt32

if TYPE_CHECKING:
    # The union of all that jax takes for an array supports no operator in a type checker's eyes.
    ArrayLike = Any
else:
    from jax.typing import ArrayLike

History: TypeAlias = Any
"""A history of a process: a pytree of arrays, which only the process looks into."""

Parameters: TypeAlias = Any
"""Parameters of a model: a pytree of arrays, which only the model and the optimizer look into."""

Optimizer: TypeAlias = Any
"""One of optax, whose import takes half a second: only what steps loads it."""

Key: TypeAlias = UInt32[Array, "2"] | Array
"""A JAX random key, old style or new."""

Scalar: TypeAlias = Float[ArrayLike, ""]
"""One real number: a Python float, or an array without axes."""

Action: TypeAlias = Int[ArrayLike, ""]
"""The index of an action."""

Logits: TypeAlias = Float[ArrayLike, "A"]
Probabilities: TypeAlias = Float[ArrayLike, "A"]
Mask: TypeAlias = Bool[ArrayLike, "A"]

Schedule: TypeAlias = Callable[[Any], Any]
"""A number as a function of how many updates have been made, as in optax: 0 before the first."""
