"""The boundary to OpenSpiel: its games as trees, its policies and agents."""

from pohp_neurd.openspiel.compile import compile_game as compile_game
from pohp_neurd.openspiel.compile import load_game as load_game
