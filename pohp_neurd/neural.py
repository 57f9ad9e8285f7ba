"""Logits from a network, and a critic's value from the same torso.

The only module that imports haiku. Torso of Morrill et al. (2022), Section 5: 256 ReLUs plus a skip
connection from the input, then 256 ReLUs; actor and critic are linear heads on it.
"""

from collections.abc import Sequence
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
from jaxtyping import Float

from pohp_neurd import policy, types

PAPER_TORSO = (256, 256)


def network(
    observation_size: int,
    num_actions: int,
    *,
    torso: Sequence[int] = PAPER_TORSO,
    critic: bool = False,
) -> policy.Model:
    """A network on agent states that are feature vectors of length `observation_size`.

    Every layer but the last sees its input again beside its ReLUs (the skip connection): the
    concatenation goes on, as an input of another width than 256 cannot be added.
    """
    sizes = {"observation_size": observation_size, "num_actions": num_actions}
    for name, size in (*sizes.items(), *((f"torso layer {i}", n) for i, n in enumerate(torso))):
        if size < 1:
            raise ValueError(f"{name} must be at least 1, but is {size}.")

    def forward(features: Float[types.ArrayLike, "D"]) -> policy.Output:
        hidden = features
        for index, width in enumerate(torso):
            units = jax.nn.relu(hk.Linear(width, name=f"torso_{index}")(hidden))
            last = index == len(torso) - 1
            hidden = units if last else jnp.concatenate([units, hidden])
        logits = hk.Linear(num_actions, name="actor")(hidden)
        value = hk.Linear(1, name="critic")(hidden)[0] if critic else None
        return policy.Output(logits, value)

    pure: Any = hk.without_apply_rng(hk.transform(forward))

    def init(*, key: types.Key) -> types.Parameters:
        return pure.init(key, jnp.zeros(observation_size))

    return policy.Model(init, pure.apply)
