"""Sweeps over all histories of a tree: reach, realization, beliefs, values, advantages.

The equations of Morrill et al. (2022), Section 2.1, as they stand, for any agent states: imperfect recall and
absent-mindedness included. `exact` is the door to them for users.
"""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd.finite import tree as trees


class Quantities(NamedTuple):
    """What is true of every history and every agent state under a policy."""

    reach: Float[Array, "N"]
    """P[h]."""
    realization: Float[Array, "S"]
    """P[s]: the expected number of visits, which without absent-mindedness is a probability."""
    counterfactual_realization: Float[Array, "S"]
    """P[s] as if the state's own agent had done all it could to come here."""
    belief: Float[Array, "N"]
    """ξ_s(h) at decisions, 0 elsewhere. Where s is never reached: the belief were its agent to try, or
    uniform if even that is in vain; so all values are finite."""
    history_value: Float[Array, "N P"]
    """Every agent's expected return from each history, its own reward not included."""
    value: Float[Array, "S"]
    """v_s, of the state's own agent."""
    action_value: Float[Array, "S A"]
    """q_s(a); 0 at illegal actions, as below."""
    advantage: Float[Array, "S A"]
    """ρ_s(a) = q_s(a) − v_s."""
    shifted_action_value: Float[Array, "S A"]
    """q_s(a) of the rewards that are shifted to be never positive, which is what learners see."""


class Arrays(NamedTuple):
    """What the sweeps over histories read."""

    parent: Array
    action: Array
    player: Array
    chance: Array
    rewards: Array
    state: Array
    best_return_to_go: Array


def arrays(tree: trees.Tree, state: Int[np.ndarray, "N"]) -> Arrays:
    """The device arrays of `tree`, with `state` the policy's row at every decision."""
    return Arrays(
        parent=jnp.asarray(np.maximum(tree.parent, 0), jnp.int32),
        action=jnp.asarray(np.maximum(tree.incoming_action, 0), jnp.int32),
        player=jnp.asarray(tree.player, jnp.int32),
        chance=jnp.asarray(tree.chance),
        rewards=jnp.asarray(tree.rewards),
        state=jnp.asarray(state, jnp.int32),
        best_return_to_go=jnp.asarray(tree.best_return_to_go),
    )


@functools.partial(jax.jit, static_argnames="levels")
def quantities(arrays: Arrays, policy: Array, levels: tuple[int, ...]) -> Quantities:
    """Everything at once: one sweep down the levels for reach, one up for values, sums over agent states."""
    num_states, num_actions = policy.shape
    count, num_agents = arrays.rewards.shape
    from_agent = arrays.player[arrays.parent] >= 0
    taken = policy[arrays.state[arrays.parent], arrays.action]
    edge = jnp.where(from_agent, taken, arrays.chance)
    own = arrays.player[arrays.parent][:, None] == jnp.arange(num_agents, dtype=jnp.int32)[None]

    reach, others_reach = [jnp.ones(1)], [jnp.ones((1, num_agents))]
    for start, stop in itertools.pairwise(levels[1:]):
        above = arrays.parent[start:stop] - levels[levels.index(start) - 1]
        reach.append(reach[-1][above] * edge[start:stop])
        factor = jnp.where(own[start:stop], 1.0, edge[start:stop, None])
        others_reach.append(others_reach[-1][above] * factor)

    values = [jnp.zeros((levels[-1] - levels[-2], num_agents))]
    for depth in range(len(levels) - 3, -1, -1):
        start, stop, end = levels[depth : depth + 3]
        worth = edge[stop:end, None] * (arrays.rewards[stop:end] + values[-1])
        above = arrays.parent[stop:end] - start
        values.append(jax.ops.segment_sum(worth, above, stop - start, indices_are_sorted=True))
    history_value = jnp.concatenate(values[::-1])

    decision = arrays.player >= 0
    agent = jnp.maximum(arrays.player, 0)
    everywhere = jnp.arange(count, dtype=jnp.int32)
    reached = jnp.where(decision, jnp.concatenate(reach), 0.0)
    tried = jnp.where(decision, jnp.concatenate(others_reach)[everywhere, agent], 0.0)
    segment = jnp.where(decision, arrays.state, num_states)

    def per_state(numbers: Array) -> Array:
        return jax.ops.segment_sum(numbers, segment, num_states + 1)[:num_states]

    realization, counterfactual = per_state(reached), per_state(tried)
    state = jnp.maximum(arrays.state, 0)
    weight = jnp.where(realization[state] > 0, reached, jnp.where(counterfactual[state] > 0, tried, 1.0))
    belief = jnp.where(decision, weight / per_state(jnp.where(decision, weight, 0.0))[state], 0.0)

    # q_s(a): over all children of all histories of s by the action a.
    parent, deciding = arrays.parent, agent[arrays.parent]
    worth = (arrays.rewards + history_value)[everywhere, deciding]
    shifted = worth - arrays.best_return_to_go[parent, deciding]
    is_child = from_agent & (everywhere > 0)
    pair = jnp.where(is_child, arrays.state[parent] * num_actions + arrays.action, num_states * num_actions)

    def per_action(numbers: Array) -> Array:
        size = num_states * num_actions
        return jax.ops.segment_sum(belief[parent] * numbers, pair, size + 1)[:size].reshape(policy.shape)

    action_value, shifted_value = per_action(worth), per_action(shifted)
    legal = per_action(jnp.ones(count)) > 0
    value = jnp.sum(policy * action_value, axis=1)
    return Quantities(
        reach=jnp.concatenate(reach),
        realization=realization,
        counterfactual_realization=counterfactual,
        belief=belief,
        history_value=history_value,
        value=value,
        action_value=action_value,
        advantage=jnp.where(legal, action_value - value[:, None], 0.0),
        shifted_action_value=shifted_value,
    )
