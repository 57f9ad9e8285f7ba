"""Finite processes as arrays: trees, graphs, what is computed on them. The door is `pohp_neurd.exact`."""
