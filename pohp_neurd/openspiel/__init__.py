"""The boundary to OpenSpiel: its games as trees, its policies and agents."""

from pohp_neurd.openspiel.agent.agent import NeuRDCIX
from pohp_neurd.openspiel.compile import compile_game, load_game
from pohp_neurd.openspiel.players import JointPolicy, OraclePolicy, bot
from pohp_neurd.openspiel.policies import (
    LivePolicy,
    MemoryPolicy,
    NetworkPolicy,
    TablePolicy,
    best_response,
    nash_conv,
    table_of,
    to_pyspiel_policy,
    to_tabular_policy,
)
from pohp_neurd.openspiel.solver import NeuRDCIXSolver

__all__ = [
    "JointPolicy",
    "LivePolicy",
    "MemoryPolicy",
    "NetworkPolicy",
    "NeuRDCIX",
    "NeuRDCIXSolver",
    "OraclePolicy",
    "TablePolicy",
    "best_response",
    "bot",
    "compile_game",
    "load_game",
    "nash_conv",
    "table_of",
    "to_pyspiel_policy",
    "to_tabular_policy",
]
