"""Worlds to play in. Stands at the top of the repo as `games/`, and installs as `pohp_neurd.games`.

Importing this package registers `python_pohp_catch` and `python_pohp_cart_pole` with OpenSpiel.
"""

from pohp_neurd.games import cart_pole as cart_pole
from pohp_neurd.games import catch as catch
from pohp_neurd.games import matrix_game as matrix_game
from pohp_neurd.games import openspiel_games as openspiel_games
from pohp_neurd.games import two_state_mdp as two_state_mdp
