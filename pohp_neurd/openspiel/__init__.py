"""The boundary to OpenSpiel: its games as trees, its policies and agents."""

from pohp_neurd.openspiel.agent.agent import NeuRDCIX as NeuRDCIX
from pohp_neurd.openspiel.bot import bot as bot
from pohp_neurd.openspiel.compile import compile_game as compile_game
from pohp_neurd.openspiel.compile import load_game as load_game
from pohp_neurd.openspiel.joint_policy import JointPolicy as JointPolicy
from pohp_neurd.openspiel.nash_conv import nash_conv as nash_conv
from pohp_neurd.openspiel.oracle_policy import OraclePolicy as OraclePolicy
from pohp_neurd.openspiel.policies import MemoryPolicy as MemoryPolicy
from pohp_neurd.openspiel.policies import NetworkPolicy as NetworkPolicy
from pohp_neurd.openspiel.policies import TablePolicy as TablePolicy
from pohp_neurd.openspiel.policies import table_of as table_of
from pohp_neurd.openspiel.policies import to_pyspiel_policy as to_pyspiel_policy
from pohp_neurd.openspiel.policies import to_tabular_policy as to_tabular_policy
from pohp_neurd.openspiel.solver import NeuRDCIXSolver as NeuRDCIXSolver
