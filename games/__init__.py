"""Worlds to play in. Stands at the top of the repo as `games/`, and installs as `pohp_neurd.games`."""

from pohp_neurd.games import matrix_game as matrix_game
from pohp_neurd.games import two_state_mdp as two_state_mdp
