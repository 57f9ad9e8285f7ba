"""The paper's online actor-critic: agent, network, many lifetimes at once, and environments on the host.

Names load on first use: `options` is read by scripts that must not load JAX before flags are checked.
"""

import importlib
from typing import Any

_HOMES = {
    "options": ("Options",),
    "agent": ("Agent", "Info", "Moment", "with_network"),
    "lifetimes": ("Life", "Runs", "Totals", "begin", "begin_all", "live", "live_all", "paper_agent", "sight"),
    "host": ("DmEnv", "Environment", "Gymnasium", "train"),
}
"""The module of every public name."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOMES, *_HOME_OF])


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    if name in _HOMES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
