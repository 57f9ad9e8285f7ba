"""What keeps logits in bounds: a threshold on them, and a magnet that pulls the policy to a reference.

Pipeline: estimate -> direction, on the way out. The paper uses neither; self-play in games needs the second.
"""

import dataclasses

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from pohp_neurd import checks, policy, types


def thresholded(
    direction: Float[Array, "A"], logits: types.Logits, legal: types.Mask, threshold: types.Scalar
) -> Float[Array, "A"]:
    """`direction` without what pushes a centred logit further outside [−threshold, threshold].

    The logit threshold of Hennes et al. (2020), Section 3.3; the test is on the logit as it is.
    """
    position = policy.centred(jnp.asarray(logits), legal)
    outward = ((position >= threshold) & (direction > 0)) | ((position <= -threshold) & (direction < 0))
    return jnp.where(outward, 0.0, direction)


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


def magnet_pull(logits: types.Logits, magnet_logits: types.Logits, legal: types.Mask) -> Float[Array, "A"]:
    """Direction towards the reference: its logits less ours, centred, so that only the policy moves.

    It is −∂/∂π(a) KL(π ‖ reference) = log reference(a) − log π(a) − 1, up to a part that is common to
    all actions: to mirror descent, and so to NeuRD, the gradient of that divergence.
    """
    return policy.centred(jnp.asarray(magnet_logits) - jnp.asarray(logits), legal)


def proximal_step(
    logits: types.Logits,
    direction: Float[Array, "A"],
    magnet_logits: types.Logits,
    *,
    step_size: types.Scalar,
    strength: types.Scalar,
) -> Float[Array, "A"]:
    """A table row after one step with the magnet in closed form: (f + α d + α τ m) / (1 + α τ).

    The maximiser of ⟨d, π⟩ − KL(π ‖ old) / α − τ KL(π ‖ magnet), in logits (magnetic mirror descent,
    Sokota et al. 2023); stable for any strength τ, where following `magnet_pull` needs α τ < 2.
    """
    checks.non_negative("step_size", step_size)
    checks.non_negative("strength", strength)
    pull = step_size * strength
    return (logits + step_size * direction + pull * magnet_logits) / (1.0 + pull)
