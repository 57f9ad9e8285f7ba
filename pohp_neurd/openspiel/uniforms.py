"""Random numbers on the host: a stream for every seed, role and seat, and none of them alike.

A stream is a position in a list, so that a checkpoint of it is a few integers.
"""

import enum
from collections.abc import Sequence

import numpy as np

_BLOCK = 1024
SEEDS = 2**128
"""Seeds are whole numbers from 0 to below this."""


class Role(enum.IntEnum):
    """What a stream is for; two streams of one seed and seat differ by it."""

    ACTING = 0
    EVALUATING = 1
    BOT = 2
    NOISE = 3
    PARAMETERS = 4
    COPY = 5


def generator(seed: int, role: Role, seat: int | None, *path: int) -> np.random.Generator:
    """The generator of `role` at `seat` (None: all seats); `path` tells further ones apart.

    >>> one, other = generator(0, Role.BOT, 0), generator(0, Role.BOT, 1)
    >>> one.random() == other.random()
    False
    """
    # A spawn key, and not a longer list of seeds, of which numpy ignores zeros at the end.
    key = (int(role), 0 if seat is None else seat + 1, *path)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def seed_of_copy(seed: int, seat: int | None, number: int) -> int:
    """The seed of copy `number` of an agent: of 128 bits, so that it is no user's and no other copy's.

    >>> seed_of_copy(0, None, 1) == seed_of_copy(0, None, 2)
    False
    """
    words = generator(seed, Role.COPY, seat, number).integers(2**32, size=4, dtype=np.uint32)
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


def pick(outcomes: Sequence[tuple[int, float]], uniform: float) -> int:
    """The outcome that a uniform number in [0, 1) picks; never, even by rounding, one of probability 0.

    Probabilities need not sum to 1.

    >>> pick([(3, 0.5), (5, 0.5)], 0.6)
    5
    """
    # In the sum's units: a rounding of the sum would else be all the last one's, and that may be a rare one.
    uniform *= sum([probability for _, probability in outcomes])
    last = outcomes[0][0]
    for outcome, probability in outcomes:
        if probability > 0:
            last = outcome
            uniform -= probability
            if uniform < 0:
                break
    return last


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
