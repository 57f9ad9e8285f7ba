"""What becomes of a direction before it moves logits: common mode, magnet, entropy, threshold.

Pipeline: direction -> **shaping** -> parameters. A shape is a function of a direction and of the row of
logits that it moves; shapes compose. One decision and the sum over many at one agent state are shaped alike:
the second with as much pull as it has decisions. The paper has only the first, as an option; self-play in
games needs the magnet.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from pohp_neurd import checks, directions, policy, types


class Row(NamedTuple):
    """What a shape looks at beside the direction: one agent state, at one update."""

    logits: types.Logits
    legal: types.Mask
    reference: types.Logits | None
    """The magnet's logits; None without a magnet."""
    updates: Any
    """Before this one."""
    decisions: types.Scalar = 1.0
    """How many the direction is the sum of."""


Shape = Callable[[Float[Array, "A"], Row], Float[Array, "A"]]
"""(direction, row) -> direction."""


@dataclasses.dataclass(frozen=True)
class Magnet:
    """A pull of the policy towards a reference policy (Sokota et al. 2023), fixed or slowly moving.

    With the uniform policy as the reference and speed 0, the pull is entropy regularisation.
    """

    strength: float | types.Schedule
    speed: float | types.Schedule = 0.0
    """How far the reference's parameters move to the current ones in one update."""

    def __post_init__(self) -> None:
        if not callable(self.strength):
            checks.non_negative("magnet strength", self.strength)
        if not callable(self.speed):
            checks.in_unit_interval("magnet speed", self.speed)


def shape(
    *,
    common_mode: str = checks.COMMON_MODE,
    magnet: Magnet | None = None,
    entropy_cost: float = 0.0,
    threshold: float | None = None,
) -> Shape:
    """All that a direction goes through, in order.

    Args:
      common_mode: "dropped" centres the direction over legal actions, "paper" leaves it as it is. In a table
        that changes no policy; in a network it keeps a move that is common to all actions from leaking
        through shared weights.
      magnet: pulls towards a reference; None for none.
      entropy_cost: of the pull towards the uniform policy.
      threshold: beyond which no centred logit is pushed; None for none.

    Returns:
      The composed shape.
    """
    checks.one_of("common_mode", common_mode, checks.COMMON_MODES)
    checks.non_negative("entropy_cost", entropy_cost)
    parts: list[Shape] = []
    if entropy_cost:
        parts.append(lambda d, row: d + entropy_cost * row.decisions * entropy_pull(row.logits, row.legal))
    if common_mode == "dropped":
        parts.append(lambda d, row: policy.centred(d, row.legal))
    if magnet is not None:
        parts.append(functools.partial(_magnetised, magnet))
    if threshold is not None:
        checks.positive("threshold", threshold)
        parts.append(lambda d, row: thresholded(d, row.logits, row.legal, threshold))
    return functools.partial(_composed, tuple(parts))


def _composed(parts: tuple[Shape, ...], direction: Float[Array, "A"], row: Row) -> Float[Array, "A"]:
    return functools.reduce(lambda shaped, part: part(shaped, row), parts, direction)


def _magnetised(magnet: Magnet, direction: Float[Array, "A"], row: Row) -> Float[Array, "A"]:
    assert row.reference is not None, "a magnet has a reference"
    strength = jnp.asarray(directions.read(magnet.strength, row.updates), direction.dtype)
    pull = magnet_pull(row.logits, row.reference, row.legal)
    return direction + strength * row.decisions * pull


def magnet_pull(logits: types.Logits, magnet_logits: types.Logits, legal: types.Mask) -> Float[Array, "A"]:
    """Direction towards the reference: its logits minus ours, centred, so that only the policy moves.

    It is −∂/∂π(a) KL(π ‖ reference) = log reference(a) − log π(a) − 1, up to a part that is common to
    all actions: to mirror descent, and so to NeuRD, the gradient of that divergence.
    """
    return policy.centred(jnp.asarray(magnet_logits) - jnp.asarray(logits), legal)


def entropy_pull(logits: types.Logits, legal: types.Mask) -> Float[Array, "A"]:
    """Direction towards the uniform policy: the gradient of the entropy, in mirror descent's terms.

    >>> [round(float(x), 4) for x in entropy_pull(jnp.log(jnp.array([0.25, 1.0])), jnp.ones(2, bool))]
    [0.6931, -0.6931]
    """
    probabilities = policy.probabilities(logits, legal)
    surprise = -jnp.log(jnp.maximum(probabilities, jnp.finfo(probabilities.dtype).tiny))
    return policy.centred(surprise, legal)


def thresholded(
    direction: Float[Array, "A"], logits: types.Logits, legal: types.Mask, threshold: types.Scalar
) -> Float[Array, "A"]:
    """`direction` without what pushes a centred logit further outside [−threshold, threshold].

    The logit threshold of Hennes et al. (2020), Section 3.3; the test is on the logit as it is.
    """
    position = policy.centred(jnp.asarray(logits), legal)
    outward = ((position >= threshold) & (direction > 0)) | ((position <= -threshold) & (direction < 0))
    return jnp.where(outward, 0.0, direction)


def pulled(
    moved: Float[types.ArrayLike, "*B A"],
    magnet_logits: Float[types.ArrayLike, "*B A"],
    pull: Float[types.ArrayLike, "..."],
) -> Float[Array, "*B A"]:
    """Logits f + α d, which have followed their direction, after the pull α τ: (f + α d + α τ m) / (1 + α τ).

    With that the step is the maximiser of ⟨d, π⟩ − KL(π ‖ old) / α − τ KL(π ‖ magnet), in logits (magnetic
    mirror descent, Sokota et al. 2023); stable for any strength τ, where `magnet_pull` needs α τ < 2.
    """
    return (moved + pull * magnet_logits) / (1.0 + pull)
