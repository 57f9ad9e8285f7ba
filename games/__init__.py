"""Worlds to play in: toy processes for tests and documents. Installed as `pohp_neurd.games`."""
