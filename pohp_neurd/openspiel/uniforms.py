"""Random numbers on the host: a stream for every seed, role and seat, and none of them alike.

A stream is a position in a list, so that a checkpoint of it is a few integers.
"""

import enum

import numpy as np

_BLOCK = 1024


class Role(enum.IntEnum):
    """What a stream is for; two streams of one seed and seat differ by it."""

    ACTING = 0
    EVALUATING = 1
    BOT = 2
    NOISE = 3


def generator(seed: int, role: Role, seat: int | None, *path: int) -> np.random.Generator:
    """The generator of `role` at `seat` (None: all seats); `path` tells further ones apart.

    >>> one, other = generator(0, Role.BOT, 0), generator(0, Role.BOT, 1)
    >>> one.random() == other.random()
    False
    """
    # A spawn key, and not a longer list of seeds, of which numpy ignores zeros at the end.
    key = (int(role), 0 if seat is None else seat + 1, *path)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


class Uniforms:
    """Uniform numbers in [0, 1), in blocks that are each seeded by the stream and the block's number."""

    def __init__(self, seed: int, role: Role, seat: int | None, count: int = 0) -> None:
        self.seed, self.role, self.seat = seed, role, seat
        self.count = count
        """How many have been drawn."""
        self._block: list[float] = []

    def draw(self) -> float:
        """The next number."""
        block, position = divmod(self.count, _BLOCK)
        if not position or not self._block:
            numbers = generator(self.seed, self.role, self.seat, block).random(_BLOCK)
            self._block = numbers.tolist()
        self.count += 1
        return self._block[position]
