"""Sweeps over a sequence form: realization plans, returns, best responses, counterfactual values.

Pure functions for jit and vmap, in whatever precision the policy comes in; `exact` is the door to them for
users. A policy has one row for every agent state of the form. Where policy and form are NumPy's arrays, NumPy
does all, which is slower and compiles nothing.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Num

from pohp_neurd.finite import sequence_form
from pohp_neurd.types import ArrayLike as Array


def _numpy(array: Array) -> Any:
    """The library of an array."""
    return np if isinstance(array, np.ndarray | np.generic) else jnp


_ONE_BY_ONE = jax.lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))


def at(array: Num[Array, "_"], places: Int[Array, "..."]) -> Any:
    """`array[places]`; no place is outside or negative, which JAX's own would look for again and again."""
    if isinstance(array, np.ndarray):
        return array[places]
    starts = jax.lax.expand_dims(places, (places.ndim,))
    mode = jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS
    return jax.lax.gather(array, starts, _ONE_BY_ONE, (1,), mode=mode)


Rectangles = list[list[Float[Array, "_ _"]]]
"""A number for each slot of an agent: level by level, and rectangle by rectangle within a level."""


class Profile(NamedTuple):
    """How all agents act, agent by agent."""

    rows: list[Rectangles]
    """The policy."""
    plans: list[Float[Array, "_"]]
    """Realization plans: the probability of the agent's own actions up to and including each sequence,
    the empty one first."""


class AgentValues(NamedTuple):
    """What an agent gets."""

    value: Float[Array, ""]
    action_values: Rectangles
    """Counterfactual: times the probability with which chance and the others let the sequence happen."""


def slots(form: sequence_form.SequenceForm, table: Float[Array, "S A"]) -> list[Float[Array, "_"]]:
    """The entries of a policy table as each agent's slots; 0 for padding."""
    flat = table.reshape(-1)
    return [_numpy(flat).where(agent.entry >= 0, flat[agent.entry], 0.0) for agent in form.agents]


def table(form: sequence_form.SequenceForm, values: list[Float[Array, "_"]]) -> Float[Array, "S A"]:
    """The inverse of `slots`: all agents' slots as a table; 0 at illegal actions."""
    if form.slot is None:
        raise ValueError("several recall states share a row of the table: this needs perfect recall.")
    numpy = _numpy(values[0])
    return numpy.where(form.slot >= 0, numpy.concatenate(values)[form.slot], 0.0)


def flat(values: Rectangles, like: Float[Array, "..."]) -> Float[Array, "_"]:
    """All rectangles of an agent in a row, as precise as `like`."""
    numpy = _numpy(like)
    pieces = [piece.reshape(-1) for level in values for piece in level]
    return numpy.concatenate([numpy.zeros(0, like.dtype), *pieces])


def rectangles(agent: sequence_form.AgentForm, values: Num[Array, "slots"]) -> list[list[Any]]:
    """An agent's slots, cut into its rectangles."""
    pieces: list[list[Any]] = []
    start = 0
    for level in agent.levels:
        pieces.append([])
        for source in level.sources:
            pieces[-1].append(values[start : start + source.size].reshape(source.shape))
            start += source.size
    return pieces


def profile(form: sequence_form.SequenceForm, policy: list[Float[Array, "_"]]) -> Profile:
    """The realization plans of a policy in slots, from every agent's first turns to its last."""
    rows = list(map(rectangles, form.agents, policy))
    return Profile(rows, list(map(realization_plan, form.agents, rows, policy)))


def realization_plan(
    agent: sequence_form.AgentForm, rows: Rectangles, like: Float[Array, "_"]
) -> Float[Array, "_"]:
    """The plan of one agent's policy, as precise as `like`."""
    numpy, dtype = _numpy(like), like.dtype
    plan = [numpy.ones(1, dtype)]
    for level, pieces in zip(agent.levels, rows, strict=True):
        above = at(plan[-1], level.parent) if len(plan) > 1 else numpy.ones(level.parent.shape, dtype)
        start, products = 0, []
        for piece in pieces:
            products.append((piece * above[start : start + len(piece), None]).reshape(-1))
            start += len(piece)
        plan.append(numpy.concatenate(products))
    return numpy.concatenate(plan)


class Rewards(NamedTuple):
    """An agent's rewards, times the probability with which chance and the others let them happen."""

    at_root: Float[Array, ""]
    """Before the agent has ever acted."""
    levels: list[Float[Array, "_"]]
    """After each sequence that any follow before the agent's next turn, level by level."""


def rewards(form: sequence_form.SequenceForm, plans: list[Float[Array, "_"]], agent: int) -> Rewards:
    """The sums over all rewards, which every other quantity of the agent starts from."""
    others = [plan for other, plan in enumerate(plans) if other != agent]
    like = plans[agent]
    at_root = _sum(form.agents[agent].at_root, others, like).sum()
    return Rewards(at_root, [_sum(level.rewards, others, like) for level in form.agents[agent].levels])


def sweep(
    form: sequence_form.SequenceForm,
    gained: Rewards,
    agent: int,
    choose: Callable[[int, int, Float[Array, "n width"]], Float[Array, "n"]],
    *,
    illegal: float,
) -> AgentValues:
    """The agent's values from its last turns back to its first.

    `choose(level, rectangle, action values)` makes the value of a rectangle's states: a maximum for a best
    response, a mean for a policy. Actions that are not legal have the value `illegal`.
    """
    dtype, numpy = gained.at_root.dtype, _numpy(gained.at_root)
    values = numpy.zeros(0, dtype)
    constants = numpy.array([0.0, illegal], dtype)  # at NOTHING and ILLEGAL
    action_values: Rectangles = []
    for depth, level in reversed(list(enumerate(form.agents[agent].levels))):
        earned = gained.levels[depth]
        children = _sum(level.children, [values], values)
        both = at(earned, level.both[0]) + at(children, level.both[1])
        found = numpy.concatenate([constants, earned, children, both])
        action_values.append([at(found, source) for source in level.sources])
        chosen = [choose(depth, piece, values) for piece, values in enumerate(action_values[-1])]
        values = numpy.concatenate(chosen)
    return AgentValues(gained.at_root + values.sum(), action_values[::-1])


def best_response(form: sequence_form.SequenceForm, gained: Rewards, agent: int) -> AgentValues:
    """The most that the agent can get."""
    return sweep(form, gained, agent, lambda _, __, values: values.max(axis=1), illegal=-jnp.inf)


def counterfactual_values(
    form: sequence_form.SequenceForm, rows: Rectangles, gained: Rewards, agent: int
) -> AgentValues:
    """What the agent gets by its own policy, which is in `rows`, at every one of its sequences."""

    def mean(depth: int, piece: int, values: Float[Array, "n width"]) -> Float[Array, "n"]:
        return jnp.sum(rows[depth][piece] * values, axis=1)

    return sweep(form, gained, agent, mean, illegal=0.0)


def counterfactual_table(form: sequence_form.SequenceForm, acting: Profile) -> Float[Array, "S A"]:
    """The counterfactual action values of all agents, as a table."""
    values = []
    for agent, plan in enumerate(acting.plans):
        gained = rewards(form, acting.plans, agent)
        found = counterfactual_values(form, acting.rows[agent], gained, agent)
        values.append(flat(found.action_values, plan))
    return table(form, values)


def expected_return(
    form: sequence_form.SequenceForm, plans: list[Float[Array, "_"]], gained: Rewards, agent: int
) -> Float[Array, ""]:
    """What the agent gets by its own policy, without a sweep: its own plan wherever there is a reward."""
    value, start = gained.at_root, 1
    for level, sums in zip(form.agents[agent].levels, gained.levels, strict=True):
        size = sum(source.size for source in level.sources)
        plan = plans[agent][start : start + size]
        value = value + (sums * plan[level.rewards_owner]).sum()
        start += size
    return value


class Outcome(NamedTuple):
    """What every agent gets, and what it could get against the others as they are."""

    expected: Float[Array, "P"]
    best: Float[Array, "P"]


def outcome(form: sequence_form.SequenceForm, policy: Float[Array, "S A"]) -> Outcome:
    """Every agent's expected return and best-response value; NashConv is the sum of their differences."""
    plans = profile(form, slots(form, policy)).plans
    expected, best = [], []
    for agent in range(len(form.agents)):
        gained = rewards(form, plans, agent)
        expected.append(expected_return(form, plans, gained, agent))
        best.append(best_response(form, gained, agent).value)
    numpy = _numpy(policy)
    return Outcome(numpy.stack(expected), numpy.stack(best))


def counterfactual_reach(arrivals: sequence_form.Arrivals, acting: Profile) -> Float[Array, "S"]:
    """The probability with which chance and the other agents let each information state happen."""
    sums = [arrival(blocks, acting.plans, agent) for agent, blocks in enumerate(arrivals.sums)]
    return jnp.concatenate(sums)[arrivals.place]


def arrival(blocks: sequence_form.Sums, plans: list[Float[Array, "_"]], agent: int) -> Float[Array, "groups"]:
    """The same of states of one agent, in the order of their sums of arrivals."""
    others = [plan for other, plan in enumerate(plans) if other != agent]
    return _sum(blocks, others, plans[agent])


def _sum(
    blocks: sequence_form.Sums, factors: Sequence[Float[Array, "_"]], like: Float[Array, "_"]
) -> Float[Array, "groups"]:
    sums = [_numpy(like).zeros(0, like.dtype)]
    for block in blocks:
        products = block.coefficient.astype(like.dtype)
        for factor, places in zip(factors, block.places, strict=True):
            products = products * at(factor, places)
        sums.append(products.sum(axis=1))
    return _numpy(like).concatenate(sums)
