"""The paper's online actor-critic: agent, network, many lifetimes at once, and environments on the host.

Nothing is imported here: `options` is read by scripts that must not load JAX before flags are checked.
"""
