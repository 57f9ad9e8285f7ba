"""Worlds to play in. Stands at the top of the repo as `games/`, and installs as `pohp_neurd.games`.

`openspiel_games` is not imported here: whoever wants catch has no need of OpenSpiel.
"""

from pohp_neurd.games import cart_pole as cart_pole
from pohp_neurd.games import catch as catch
from pohp_neurd.games import matrix_game as matrix_game
from pohp_neurd.games import two_state_mdp as two_state_mdp
