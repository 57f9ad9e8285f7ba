"""The boundary to OpenSpiel: its games as trees, its policies and agents.

Names load on first use: networks take half a second, and not everybody has one.
"""

import importlib
from typing import Any

_HOMES = {
    "agent.agent": ("NeuRDCIX",),
    "compile": ("compile_game", "load_game"),
    "players": ("JointPolicy", "OraclePolicy", "bot"),
    "policies": (
        *("LivePolicy", "MemoryPolicy", "NetworkPolicy", "TablePolicy", "best_response"),
        *("nash_conv", "table_of", "to_pyspiel_policy", "to_tabular_policy"),
    ),
    "solver": ("NeuRDCIXSolver",),
}
"""The module of every public name."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    home = f"{__name__}.{_HOME_OF.get(name, name)}"
    try:
        module = importlib.import_module(home)
    except ModuleNotFoundError as error:
        # A missing dependency of the module is another matter: it keeps its own message.
        if error.name != home:
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(module, name) if name in _HOME_OF else module


def __dir__() -> list[str]:
    return __all__
