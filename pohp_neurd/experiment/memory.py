"""Whether what is asked for fits into this machine: told before the work, not by a killed process."""

import itertools
import os
import pathlib

_LIMIT = pathlib.Path("/sys/fs/cgroup/memory.max")


def total() -> float:
    """Bytes of memory that this process may have: the machine's, or its container's if that is less."""
    machine = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    try:
        return min(machine, float(_LIMIT.read_text(encoding="ascii")))
    except (OSError, ValueError):  # there is no such file, or no such limit
        return machine


def check(needed: float, *, of: str) -> None:
    """Raises a ValueError if `needed` bytes, by a rough estimate from below, are more than there are.

    `of` says which settings ask for them.
    """
    if needed > total():
        raise ValueError(
            f"{of} would take at least {_shown(needed)} of memory, but this machine has {_shown(total())}."
        )


def of_layers(sizes: tuple[int, ...], *, copies: int) -> float:
    """Bytes of `copies` of the weights between layers of these `sizes`, in float32."""
    return 4.0 * copies * sum(a * b for a, b in itertools.pairwise(sizes))


def _shown(size: float) -> str:
    return f"{size / 2**30:,.1f} GiB"
