"""NeuRD, softmax policy gradient and NeuRD-CIX between them, for POHPs on OpenSpiel.

Each module is one step of the pipeline; WORKSPACE.md draws it. Modules load on first use, so that
`import pohp_neurd` costs nothing and `pohp_neurd.estimators.cix_weight` needs no second import.
"""

import importlib
from typing import Any

__version__ = "0.13.0"

__all__ = [
    "agent_state",
    "bandit",
    "checkpoint",
    "directions",
    "estimators",
    "exact",
    "experiment",
    "finite",
    "games",
    "learners",
    "neural",
    "online",
    "openspiel",
    "policy",
    "process",
    "returns",
    "self_play",
    "shaping",
    "tabular",
]
"""The paper's nouns, one module each, and the rooms around them."""


def __getattr__(name: str) -> Any:
    qualified = f"{__name__}.{name}"
    try:
        return importlib.import_module(qualified)
    except ModuleNotFoundError as error:
        # A missing dependency of the module is another matter: it keeps its own message.
        if error.name != qualified:
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return ["__version__", *__all__]
