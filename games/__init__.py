"""Worlds to play in. Stands at the top of the repo as `games/`, and installs as `pohp_neurd.games`.

`openspiel_games`, which registers ours with OpenSpiel, is not imported here: whoever wants catch has no need
of OpenSpiel.
"""

from pohp_neurd.games import cart_pole, catch, matrix_game

__all__ = ["cart_pole", "catch", "matrix_game"]
