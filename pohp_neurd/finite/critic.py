"""A value for every history of a tree, learnt from the episodes alone: a control variate for their returns.

Pipeline: trajectory -> **sums per agent state**, with less noise, and from a policy μ that may explore more
than the agents' own policy π. Let b(h, a) be the value after action a at history h, V(h) = Σ_a π(a) b(h, a),
and e(h) = V(h) − b(h) the error of a value against those that follow, chance's moves among them; at the end
of an episode e is its return less the value. Then

    x(a) = 1{a = A} δ(h, A) + μ(a) (b(h, a) − V(h)),    δ(h) = e(h) + π(A) / μ(A) δ(h, A)

has the expectation μ(a) (q(h, a) − V(h)) of 1{a = A} (G − V(h)), whatever b is: times π(a) / μ(a)
(`directions.corrected`) and divided by CIX's β, it says on average what the paper's estimator says of π
(after Schmid et al. 2019). A visit of h counts π(B) / μ(B) for each action B that others took on the way,
over the mean of that at its agent state: others are met as they are, not as they explore.

What is known without the episode, the second part, is not taken at the history that it came to, but in the
mean over all that the agent cannot tell from it, as likely as chance and π lead others there: in self-play
these are known. So it has no noise from what others hold, and what is left is that of the values.

Nothing is needed of an episode but where it ends: all else is sums over the tree.
"""

import dataclasses
import functools
import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import directions
from pohp_neurd.finite import tree as trees

RATE = 0.05
"""By which a value moves with every visit; its first visits count in equal parts."""


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["parent", "entry", "agent", "chance", "before", "terminal", "returns"],
    meta_fields=["levels"],
)
@dataclasses.dataclass(frozen=True, eq=False)
class Lineage:
    """Whence every history comes, as device arrays. Made by `lineage`."""

    parent: Int[Array, "N"]
    """The root's is itself."""
    entry: Int[Array, "N"]
    """Where the action that leads here stands in the table of agent states and actions, row by row; one past
    its end at the root and after chance."""
    agent: Int[Array, "N"]
    """Whose action it was; −1 where nobody's."""
    chance: Float[Array, "N"]
    """0 at the root, which nothing leads to."""
    before: Float[Array, "N"]
    """Of the outcomes of the same event that come earlier, together."""
    terminal: Bool[Array, "N"]
    returns: Float[Array, "N P"]
    """Shifted rewards from the root up to each history."""
    levels: tuple[int, ...]
    """Histories of depth d are rows levels[d] to levels[d + 1]."""


class Critic(NamedTuple):
    """What is remembered of earlier batches."""

    values: Float[Array, "N P"]
    """Of each history: the whole return, with what came before it."""
    visits: Float[Array, "N"]


def lineage(tree: trees.Tree) -> Lineage:
    """A tree, ready for `tally`."""
    parent = np.maximum(tree.parent, 0)
    agent = np.where(tree.parent >= 0, tree.player[parent], trees.CHANCE)
    entry = tree.information_state[parent] * tree.num_actions + tree.incoming_action
    return Lineage(
        parent=jnp.asarray(parent, jnp.int32),
        entry=jnp.asarray(np.where(agent >= 0, entry, tree.legal.size), jnp.int32),
        agent=jnp.asarray(agent, jnp.int32),
        chance=jnp.asarray(np.where(tree.parent >= 0, tree.chance, 0.0), jnp.float32),
        before=jnp.asarray(_before(tree), jnp.float32),
        terminal=jnp.asarray(tree.player == trees.TERMINAL),
        returns=jnp.asarray(tree.shifted_returns, jnp.float32),
        levels=tuple(map(int, tree.levels)),
    )


def _before(tree: trees.Tree) -> Float[np.ndarray, "N"]:
    together = np.cumsum(tree.chance)
    first = tree.first_child[np.maximum(tree.parent, 0)]
    return np.where(tree.parent >= 0, together - tree.chance - (together - tree.chance)[first], 0.0)


def init(line: Lineage) -> Critic:
    """Before the first episode, no history is worth less than the best return, which is 0."""
    return Critic(jnp.zeros_like(line.returns), jnp.zeros(line.parent.shape, line.returns.dtype))


def tally(
    line: Lineage,
    critic: Critic,
    acting: Float[Array, "S A"],
    playing: Float[Array, "S A"],
    ends: Int[Array, "B"],
) -> tuple[directions.Tally, Critic]:
    """The sums over episodes that ended at `ends`, and the next critic.

    Args:
      line: the tree.
      critic: its values so far.
      acting: π, the agents' policy, which values are of.
      playing: μ, what the episodes were played by; nowhere 0 where π is not.
      ends: the terminal history of each.

    Returns:
      The tally of the x(a) above, as if drawn from μ, and the critic after it. V(h) has been subtracted: no
      other baseline is to be.
    """
    values, dtype = critic.values, critic.values.dtype
    own, drawn = (jnp.append(table.reshape(-1).astype(dtype), 0.0)[line.entry] for table in (acting, playing))
    chosen = line.agent >= 0
    share = jnp.where(chosen, own, line.chance)
    ratio = jnp.where(drawn > 0, own / jnp.where(drawn > 0, drawn, 1.0), 1.0)
    expected = _to_parents(share[:, None] * values, line.parent, len(values))
    errors = jnp.where(line.terminal[:, None], line.returns, expected) - values
    spans = [slice(*span) for span in itertools.pairwise(line.levels)]

    ended = jnp.zeros((len(values), 1), dtype).at[ends].add(1.0)
    counts, surprise = [ended[spans[-1]]], [ended[spans[-1]] * errors[spans[-1]]]  # Σ 1 and Σ δ
    for level, below in reversed(list(itertools.pairwise(spans))):
        parent, size = line.parent[below] - level.start, level.stop - level.start
        counts.append(ended[level] + _to_parents(counts[-1], parent, size))
        later = _to_parents(ratio[below, None] * surprise[-1], parent, size)
        surprise.append(counts[-1] * errors[level] + later)
    arrived, told = jnp.concatenate(counts[::-1]), jnp.concatenate(surprise[::-1])

    mine = jnp.arange(values.shape[1], dtype=jnp.int32)[None] == line.agent[:, None]
    factor = jnp.where(chosen[:, None] & ~mine, ratio[:, None], 1.0)
    factors = jnp.concatenate([factor, jnp.where(chosen, drawn, line.chance)[:, None]], axis=1)
    reach = [jnp.ones((1, factors.shape[1]), dtype)]  # of each agent's others, π to μ; and all of μ's
    for above, level in itertools.pairwise(spans):
        reach.append(reach[-1][line.parent[level] - above.start] * factors[level])
    before = jnp.concatenate(reach)[line.parent]
    met, likely = _of_mover(mine, before[:, :-1]), before[:, -1:]
    weighed = met * likely
    gain = _of_mover(mine, values - expected[line.parent])
    sums = to_table(jnp.concatenate([met * _of_mover(mine, told), arrived], axis=1), line, acting.shape)
    means = to_table(jnp.concatenate([weighed * gain, weighed], axis=1), line, acting.shape)
    # A state's visits weigh 1 on average, however rarely others come there when they do not explore. Where
    # they never do, nothing is said.
    limits = jnp.finfo(dtype)
    visits, mass = sums[..., 1], jnp.where(means[..., 1] > limits.tiny / limits.eps, means[..., 1], jnp.inf)
    rarity = to_table(likely, line, acting.shape)[..., 0] / mass
    weight = playing.astype(dtype) * jnp.sum(visits, axis=1, keepdims=True)
    said = rarity * sums[..., 0] + weight * means[..., 0] / mass

    seen = critic.visits + arrived[:, 0]
    moved = -jnp.expm1(arrived[:, 0] * math.log1p(-RATE))  # 1 − (1 − RATE)^n, far quicker than a power
    step = jnp.maximum(moved, arrived[:, 0] / jnp.maximum(seen, 1.0))
    learnt = values + step[:, None] * told / jnp.maximum(arrived, 1.0)
    return directions.Tally(said, visits, jnp.asarray(ends.size, dtype), playing), Critic(learnt, seen)


def _of_mover(mine: Bool[Array, "N P"], columns: Float[Array, "N P"]) -> Float[Array, "N 1"]:
    """The column of whoever made the move that leads to each history; 0 after chance."""
    return jnp.sum(jnp.where(mine, columns, 0.0), axis=1, keepdims=True)


def to_table(columns: Float[Array, "N k"], line: Lineage, shape: tuple[int, ...]) -> Float[Array, "S A k"]:
    """Sums over the histories that each action of an agent state leads to."""
    sums = jax.ops.segment_sum(columns, line.entry, math.prod(shape) + 1)
    return sums[:-1].reshape(*shape, columns.shape[1])


def _to_parents(values: Float[Array, "n k"], parent: Int[Array, "n"], size: int) -> Float[Array, "m k"]:
    # Two columns at a time: XLA takes five times as long for three.
    pairs = [values[:, at : at + 2] for at in range(0, values.shape[1], 2)]
    sums = [jax.ops.segment_sum(pair, parent, size, indices_are_sorted=True) for pair in pairs]
    return sums[0] if len(sums) == 1 else jnp.concatenate(sums, axis=1)
