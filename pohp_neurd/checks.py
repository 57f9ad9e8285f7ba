"""Checks of what users hand in, and of what training makes of it: one sentence says what is wrong.

Values are checked where they are known; inside `jax.jit` they are not, and shapes still are. So each
check is free in compiled code, and every public entry can afford it. JAX is not loaded for it, which takes
seconds: a wrong flag is told of before that. So what an option may be, and is by default, stands here too
where more than one module has it.
"""

import decimal
import sys
from typing import Any

import numpy as np

LEARNERS = ("spg", "neurd", "neurd_cix")

MINIMIZERS = {"regret_matching": 0.0, "rm_plus": 1.0, "predictive_rm_plus": 2.0, "optimistic_hedge": 1.0}
"""Regret minimisers at every information state of a tree, and the power p of t^p with which update t usually
counts in their average policies."""

STEP_SIZE = 16.0
"""Of optimistic Hedge in games, for returns that are 1 wide."""

ESTIMATORS = ("cix", "ix")
"""Of sampled regrets; at exploration 0 both are importance weights."""

SAMPLED = {
    "exploration": 0.01,
    "play_exploration": 0.25,
    "batch_size": 1024,
    "step_size": 2.0,
    "step_size_decay": 0.5,
    "decay_start": 1000,
    "magnet_strength": 0.0125,
    "magnet_decay": 0.5,
    "magnet_speed": 0.7,
    "magnet_speed_decay": 1.0,
    "average_power": 2.0,
}
"""What suits sampled updates of a table on a tree, for the solver and for runs alike, with agents that learn
in turn: such large steps need it. Nothing here knows how long a run will be: all that decays does so with the
updates made, step size and magnet alike, so that logits always have the same share of a run to settle."""

BASELINES = ("history", "state")
"""What has a value of its own that is subtracted from sampled returns."""

SAMPLINGS = ("outcome", "external")
"""Whole episodes, or chance and the others only."""

EXTERNAL_BATCH_SIZE = 32
"""Samples of one update: each is a pass over the tree."""

OPTIMIZERS = ("adam", "adam_without_momentum", "sgd")

COMMON_MODES = ("paper", "dropped")
"""Of the part of a direction that is common to all actions: kept, as in the paper, or dropped."""

COMMON_MODE = "dropped"
"""In a table both give one policy. In a network what is kept leaks through shared weights, and the findings
turn on it."""


class Diverged(FloatingPointError):
    """Training that has left the finite numbers: `what` is not finite any more, `after` some moment.

    `checkpoint` is what there is to say of the newest one before, where checkpoints are kept.
    """

    def __init__(self, what: str, *, after: str, remedy: str, checkpoint: str = "") -> None:
        event = f"Training diverged: {what} was not finite after {after}"
        self.without_checkpoint = f"{event}. Try a smaller {remedy}."
        """What is said where checkpoints are not kept."""
        super().__init__(
            f"{event}; {checkpoint}. Try a smaller {remedy}." if checkpoint else self.without_checkpoint
        )


def all_finite(tree: Any) -> Any:
    """Whether every number in a pytree is finite, traced or not.

    To be asked of parameters and optimizer together: a second moment of infinity, from one gradient above
    1.8e19 in float32, leaves its parameter finite, and where it is for ever.
    """
    import jax
    from jax import numpy as jnp

    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def known(value: Any) -> np.ndarray | None:
    """`value` as a numpy array, or None where it is being traced and has no value yet."""
    core = sys.modules.get("jax.core")  # where JAX is not loaded, nothing is traced
    return None if core is not None and isinstance(value, core.Tracer) else np.asarray(value)


def whole(value: Any) -> int:
    """The whole number that `value` is or writes, as 20000000 or 2e7; a ValueError if it is none.

    >>> whole("2e7"), whole(3.0)
    (20000000, 3)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        number = decimal.Decimal(str(value))
        # An exponent without bounds would make a number that no memory holds.
        if number.is_finite() and number.adjusted() < 30 and number == number.to_integral_value():
            return int(number)
    except decimal.InvalidOperation:
        pass
    raise ValueError(f"must be a whole number, such as 20000000 or 2e7, but is {value!r}.")


def in_unit_interval(name: str, value: Any) -> None:
    """Raises unless every entry of `value` lies in [0, 1]."""
    array = known(value)
    if array is not None and not np.all((array >= 0) & (array <= 1)):
        raise ValueError(f"{name} must lie in [0, 1], but is {_shown(array)}.")


def suited_batch_size(table_size: int) -> int:
    """Of a sampled update on a tree, which costs a pass over the table: a large one wants more episodes."""
    return max(int(SAMPLED["batch_size"]), 2 ** (table_size // 20).bit_length())


def non_negative(name: str, value: Any) -> None:
    """Raises unless every entry of `value` is a number of at least 0 that is finite in single precision."""
    array = known(value)
    if array is not None and not np.all((array >= 0) & np.isfinite(array)):
        raise ValueError(f"{name} must be a finite number of at least 0, but is {_shown(array)}.")
    _check_single(name, array)


def positive(name: str, value: Any) -> None:
    """Raises unless every entry of `value` is a number above 0 that is finite in single precision."""
    array = known(value)
    if array is not None and not np.all((array > 0) & np.isfinite(array)):
        raise ValueError(f"{name} must be a finite number above 0, but is {_shown(array)}.")
    _check_single(name, array)


def _check_single(name: str, array: np.ndarray | None) -> None:
    """Raises where a number is infinite to a learner, which computes in single precision."""
    if array is not None and not np.all(array <= np.finfo(np.float32).max):
        raise ValueError(f"{name} must be at most 3.4e+38, as single precision goes, but is {_shown(array)}.")


def at_least(name: str, value: int, least: int = 1) -> None:
    """Raises unless `value` is `least` or more."""
    if value < least:
        raise ValueError(f"{name} must be at least {least}, but is {value}.")


def count(name: str, value: int) -> None:
    """Raises unless `value` is at least 1 and fits into the 32 bits that updates and steps are counted in."""
    at_least(name, value)
    if value >= 2**31:
        raise ValueError(f"{name} must be at most 2147483647, but is {value}.")


def seed(name: str, value: int) -> None:
    """Raises unless `value` is one that a 32-bit random generator takes."""
    if not 0 <= value < 2**31:
        raise ValueError(f"{name} must be a whole number from 0 to 2147483647, but is {value}.")


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raises unless `value` is among `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, but is {value!r}.")


def distribution(name: str, probabilities: Any) -> None:
    """Raises unless `probabilities` holds one distribution over actions, or a batch of them."""
    array = known(probabilities)
    if array is None:
        return
    if not np.all(array >= 0):  # False for NaN too
        raise ValueError(f"{name} must be non-negative, but holds {array[~(array >= 0)].flat[0]}.")
    # Float32 tables of a few hundred actions stray by about 1e-5 from 1.
    total = np.sum(array, axis=-1, dtype=np.float64)
    if not np.all(np.abs(total - 1) <= 1e-4):
        worst = np.ravel(total)[np.argmax(np.abs(np.ravel(total) - 1))]
        raise ValueError(f"{name} must sum to 1, but sums to {worst:.6g}.")


def shape(name: str, value: Any, expected: tuple[int | None, ...]) -> None:
    """Raises unless `value` has the shape `expected`, in which None stands for any size."""
    actual = np.shape(value)
    fits = len(actual) == len(expected) and all(
        want is None or want == have for want, have in zip(expected, actual, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in expected)
        raise ValueError(f"{name} must have the shape ({wanted}), but has {actual}.")


def index(name: str, value: Any, size: int) -> None:
    """Raises unless every entry of `value` is one of 0 to `size` - 1."""
    array = known(value)
    if array is not None and not np.all((array >= 0) & (array < size)):
        raise ValueError(f"{name} must be one of 0 to {size - 1}, but is {_shown(array)}.")


def _shown(array: np.ndarray) -> str:
    return f"{array.item():g}" if array.size == 1 else np.array2string(array, threshold=8)
