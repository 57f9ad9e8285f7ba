"""A stream of random numbers that is a position in a list: a checkpoint of it is three integers."""

import numpy as np

_BLOCK = 1024


class Uniforms:
    """Uniform numbers in [0, 1), drawn in blocks that are each seeded by the seed and the block's number."""

    def __init__(self, seed: int, count: int = 0) -> None:
        self.seed = seed
        self.count = count
        """How many have been drawn."""
        self._block: list[float] = []

    def draw(self) -> float:
        """The next number."""
        block, position = divmod(self.count, _BLOCK)
        if not position or not self._block:
            self._block = np.random.default_rng([self.seed, 0, block]).random(_BLOCK).tolist()
        self.count += 1
        return self._block[position]
