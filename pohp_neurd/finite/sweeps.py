"""Sweeps over all nodes of a graph, inside jit: reach, values, and what one episode has to say on average.

Pipeline: probabilities -> **tally**, exactly. Section 2.1 of Morrill et al. (2022) needs no perfect recall:
an agent state's value is that of its histories, weighted by how often each comes about.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import trajectory
from pohp_neurd.finite import graph


class Level(NamedTuple):
    """The edges that leave the nodes of one level."""

    source: Int[Array, "e"]
    """The node that an edge leaves, counted within its level."""
    child: Int[Array, "e"]
    """Where it leads, counted within the next level; one past its last where the game is over."""
    pair: Int[Array, "e"]
    """Its place in a flat table [S, A]; S A at chance."""
    chance: Float[Array, "e"]
    rewards: Float[Array, "e P"] | None
    """None where no edge of the level has one."""
    size: Int[Array, ""]


class Field(NamedTuple):
    """A graph, ready for sweeps: hand it to compiled functions as an argument."""

    levels: tuple[Level, ...]
    player: Int[Array, "S"]
    nothing: Float[Array, "P"]
    """What every agent gets after the end: zeros."""


def field(world: graph.Graph, dtype: type = jnp.float32) -> Field:
    """The edges of `world` by levels."""
    levels = []
    cuts = [*world.levels.tolist(), world.num_nodes]
    for start, stop, end in zip(cuts[:-2], cuts[1:-1], cuts[2:], strict=True):
        edges = slice(world.first_edge[start], world.first_edge[stop])
        source = world.source[edges]
        acting = world.player[source] >= 0
        pair = world.agent_state[source].astype(np.int64) * world.num_actions + world.action[edges]
        child = world.child[edges]
        rewards = world.rewards[edges]
        levels.append(
            Level(
                source=jnp.asarray(source - start, jnp.int32),
                child=jnp.asarray(np.where(child >= 0, child - stop, end - stop), jnp.int32),
                pair=jnp.asarray(np.where(acting, pair, world.legal.size), jnp.int32),
                chance=jnp.asarray(world.chance[edges], dtype),
                rewards=jnp.asarray(rewards, dtype) if np.any(rewards) else None,
                size=jnp.zeros(stop - start, jnp.int8),
            )
        )
    nothing = jnp.zeros(world.num_agents, dtype)
    return Field(tuple(levels), jnp.asarray(world.state_player, jnp.int32), nothing)


def expected_tally(field: Field, table: Float[Array, "S A"], legal: Bool[Array, "S A"]) -> trajectory.Tally:
    """What one episode has to say on average, with the exact value of every agent state as the baseline.

    `visits` are P[s] π(a) and `returns` P[s] π(a) (q_s(a) − v_s), with P[s] the expected number of visits.
    """
    # Not quite zero, so that an action whose probability underflows still has its share of the sum.
    limits = jnp.finfo(table.dtype)
    table = jnp.where(legal, jnp.maximum(table, limits.tiny / limits.eps), 0.0)
    flat = jnp.append(table.reshape(-1), 1.0)
    sizes = [level.size.shape[0] for level in field.levels]
    edge = [flat[level.pair] * level.chance for level in field.levels]
    reach = [jnp.ones(1, table.dtype)]
    for level, probability, size in zip(field.levels, edge, sizes[1:], strict=False):
        moved = reach[-1][level.source] * probability
        reach.append(jax.ops.segment_sum(moved, level.child, size + 1)[:size])

    num_agents = field.nothing.shape[0]
    sums = jnp.zeros(table.size + 1, table.dtype)
    values = jnp.zeros((1, num_agents), table.dtype)
    agent_of = jnp.append(jnp.repeat(field.player, table.shape[1]), 0)
    for level, probability, here, size in reversed(list(zip(field.levels, edge, reach, sizes, strict=True))):
        worth = values[level.child]
        if level.rewards is not None:
            worth = worth + level.rewards
        own = jnp.take_along_axis(worth, agent_of[level.pair][:, None], axis=1)[:, 0]
        sums = sums.at[level.pair].add(here[level.source] * own)
        inner = jax.ops.segment_sum(probability[:, None] * worth, level.source, size, indices_are_sorted=True)
        values = jnp.concatenate([inner, jnp.zeros((1, num_agents), table.dtype)])

    visits = jnp.zeros(table.shape[0] + 1, table.dtype)
    for level, here in zip(field.levels, reach, strict=True):
        first = jnp.append(True, level.source[1:] != level.source[:-1])
        state = jnp.where(first, level.pair // table.shape[1], table.shape[0])
        visits = visits.at[state].add(here[level.source])
    weight = visits[:-1, None]
    action_values = sums[:-1].reshape(table.shape)
    value = jnp.sum(table * action_values, axis=1, keepdims=True)
    advantages = jnp.where(legal, action_values - value, 0.0)
    return trajectory.Tally(table * advantages, table * weight, jnp.ones((), table.dtype))
