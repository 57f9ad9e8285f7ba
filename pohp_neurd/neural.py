"""Logits from a network, and a critic's value from the same torso.

The only module that imports haiku. Torso of Morrill et al. (2022), Section 5: 256 ReLUs plus a skip
connection from the input, then 256 ReLUs; actor and critic are linear heads on it.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
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


class Layout:
    """Where in one array the parameters of `network` stand: each layer's weights, then its biases.

    Both heads are one layer: a sweep over one number costs as much as one over ten. Parameters may have a
    leading axis, as those of many networks; the array then has it too.
    """

    def __init__(
        self, observation_size: int, num_actions: int, torso: Sequence[int], *, critic: bool
    ) -> None:
        self.num_actions = num_actions
        self.widths = np.array([observation_size, *torso, num_actions + critic])
        """Of the agent state and of every layer."""
        seen = [observation_size, *(observation_size + sum(torso[:n]) for n in range(1, len(torso)))]
        inputs = [*seen[: len(torso)], int(self.widths[-2])]  # the heads see the last ReLUs alone
        self.shapes = list(zip(inputs, self.widths[1:].tolist(), strict=True))
        sizes = [size for inputs, width in self.shapes for size in (inputs * width, width)]
        self.places = list(itertools.pairwise([0, *itertools.accumulate(sizes)]))
        """Of weights and biases in turn."""
        self._torso = [f"torso_{index}" for index in range(len(torso))]
        self._heads = ["actor", "critic"] if critic else ["actor"]

    def pack(self, parameters: types.Parameters) -> Any:
        """All parameters in one array, of numpy if they are."""
        use: Any = np if isinstance(parameters["actor"]["b"], np.ndarray) else jnp
        heads = {p: use.concatenate([parameters[name][p] for name in self._heads], axis=-1) for p in "wb"}
        layers = [*(parameters[name] for name in self._torso), heads]
        lead = heads["b"].shape[:-1]
        return use.concatenate([layer[p].reshape(*lead, -1) for layer in layers for p in "wb"], axis=-1)

    def unpack(self, flat: Any) -> types.Parameters:
        """The inverse of `pack`: of numpy's arrays, views."""
        parts, lead = iter([flat[..., begin:end] for begin, end in self.places]), flat.shape[:-1]
        layers = [{"w": next(parts).reshape(*lead, *shape), "b": next(parts)} for shape in self.shapes]
        *torso, last = layers
        cuts = (slice(self.num_actions), slice(self.num_actions, None))
        heads = [{p: last[p][..., cut] for p in "wb"} for cut in cuts[: len(self._heads)]]
        return dict(zip((*self._torso, *self._heads), (*torso, *heads), strict=True))
