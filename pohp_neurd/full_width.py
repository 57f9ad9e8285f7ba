"""Self-play on exact expectations: every agent state updated at once, nothing sampled.

Pipeline: a training loop; it feeds parameters back. The tabular NeuRD update of Hennes et al. (2020), with
counterfactual weights: logits add up counterfactual advantages, which makes it CFR with Hedge.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import averaging, policy, types
from pohp_neurd.finite import evaluation, sequence_form


class State(NamedTuple):
    """What must persist between iterations, in the slots of a sequence form."""

    logits: list[Float[Array, "_"]]
    total: list[Float[Array, "_"]]
    """The sum of realization plans, for the average policy."""
    iterations: Int[Array, ""]


def init(form: sequence_form.SequenceForm, dtype: jnp.dtype | type = jnp.float32) -> State:
    """The uniform policy, nothing averaged yet."""
    if form.slot is None:
        raise ValueError("full-width updates need perfect recall: use the game's own information states.")

    def zeros() -> list[Float[Array, "_"]]:
        return [jnp.zeros(agent.entry.shape, dtype) for agent in form.agents]

    # Two sets of arrays, not one twice: a loop may take over the buffers of its state.
    return State(zeros(), zeros(), jnp.zeros((), jnp.int32))


def iteration(
    form: sequence_form.SequenceForm,
    state: State,
    *,
    step_size: Callable[[Int[Array, ""]], types.Scalar],
    weight: Callable[[Int[Array, ""]], types.Scalar],
) -> State:
    """One update of all agents at all their states, and one step of the average policy.

    `step_size` and `weight` (of this iteration in the average) are schedules of the iterations so far.
    """
    dtype = state.logits[0].dtype
    size = jnp.asarray(step_size(state.iterations), dtype)
    share = jnp.asarray(weight(state.iterations), dtype)
    acting = evaluation.profile(form, _probabilities(form, state.logits))
    logits, total = [], []
    for agent, (old, plan) in enumerate(zip(state.logits, acting.plans, strict=True)):
        gained = evaluation.rewards(form, acting, agent)
        values = evaluation.counterfactual_values(form, acting, gained, agent).action_values
        advantages = [
            [piece - jnp.sum(row * piece, axis=1, keepdims=True) for row, piece in zip(*level, strict=True)]
            for level in zip(acting.rows[agent], values, strict=True)
        ]
        logits.append(old + size * evaluation.flat(advantages, dtype))
        total.append(state.total[agent] + share * plan[1:])
    return State(logits, total, state.iterations + 1)


def current_policy(form: sequence_form.SequenceForm, state: State) -> Float[Array, "S A"]:
    """The policy as a table."""
    return evaluation.table(form, _probabilities(form, state.logits))


def average_policy(
    form: sequence_form.SequenceForm, legal: Bool[Array, "S A"], state: State
) -> Float[Array, "S A"]:
    """The reach-weighted average of all policies so far as a table."""
    return averaging.average(evaluation.table(form, state.total), legal)


def _probabilities(
    form: sequence_form.SequenceForm, logits: list[Float[Array, "_"]]
) -> list[Float[Array, "_"]]:
    found = []
    for agent, mine in zip(form.agents, logits, strict=True):
        cut = evaluation.rectangles(agent, mine)
        rows = [
            [
                jax.vmap(policy.probabilities)(piece, source != sequence_form.ILLEGAL)
                for piece, source in zip(pieces, level.sources, strict=True)
            ]
            for pieces, level in zip(cut, agent.levels, strict=True)
        ]
        found.append(evaluation.flat(rows, mine.dtype))
    return found
