"""External sampling: chance and the other agents are drawn, the agent that learns tries every action.

Pipeline: tree -> **sums per agent state**, without importance weights (after Lanctot et al. 2009). In a
sample every history of chance and of the others leads on to one child, drawn by its probability. Of what can
be reached so, whatever the agent itself does, all actions have a value at once: q(h, a) − v(h) of the sample
has the advantage as its expectation, at each history that the others lead to.

A sample is a pass over the tree, which `critic` makes for a whole batch of episodes.
"""

import functools
import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import directions, types
from pohp_neurd.finite import critic


def tally(
    line: critic.Lineage,
    acting: Float[Array, "S A"],
    trying: Float[Array, "S A"],
    agents: Sequence[int | Int[Array, ""]],
    num_samples: int,
    *,
    key: types.Key,
) -> directions.Tally:
    """The sums over samples for each of `agents`, as if its actions had been drawn from `trying`, μ.

    `visits` are μ(a) and `returns` μ(a) (q(h, a) − v(h)), at all histories of the agent that a sample meets.
    A μ that is nowhere 0 tells of actions that π, which is `acting`, never takes.
    """
    keys = jax.random.split(key, num_samples)
    sums = jnp.zeros((*acting.shape, 2), line.returns.dtype)
    for agent in agents:
        one = functools.partial(_sample, line, acting, trying, agent)
        sums += jnp.sum(jax.vmap(one)(keys), axis=0)
    return directions.Tally(sums[..., 0], sums[..., 1], jnp.asarray(num_samples, sums.dtype), trying)


def _sample(
    line: critic.Lineage,
    acting: Float[Array, "S A"],
    trying: Float[Array, "S A"],
    agent: int | Int[Array, ""],
    key: types.Key,
) -> Float[Array, "S A 2"]:
    dtype = line.returns.dtype
    table = acting.astype(dtype)
    before = jnp.cumsum(table, axis=1) - table
    tables = (table, before, trying.astype(dtype))
    own, low, tried = (jnp.append(each.reshape(-1), 0.0)[line.entry] for each in tables)
    chosen, mine = line.agent >= 0, line.agent == agent
    share, low = jnp.where(chosen, own, line.chance), jnp.where(chosen, low, line.before)
    number = jax.random.uniform(key, line.parent.shape, dtype)[line.parent]
    drawn = ((number >= low) & (number < low + share)).astype(dtype)
    spans = [slice(*span) for span in itertools.pairwise(line.levels)]

    goal = jnp.where(line.terminal, line.returns[:, agent], 0.0)
    weight = jnp.where(mine, share, drawn)
    values = [goal[spans[-1]]]
    for level, below in reversed(list(itertools.pairwise(spans))):
        parent, size = line.parent[below] - level.start, level.stop - level.start
        later = jax.ops.segment_sum(weight[below] * values[-1], parent, size, indices_are_sorted=True)
        values.append(goal[level] + later)
    value = jnp.concatenate(values[::-1])

    reach = [jnp.ones(1, dtype)]
    for above, level in itertools.pairwise(spans):
        reach.append(reach[-1][line.parent[level] - above.start] * jnp.where(mine, 1.0, drawn)[level])
    met = jnp.where(mine, tried * jnp.concatenate(reach)[line.parent], 0.0)
    columns = jnp.stack([met * (value - value[line.parent]), met], axis=1)
    return critic.to_table(columns, line, acting.shape)
