"""Sweeps over a sequence form: realization plans, returns, best responses, NashConv, counterfactual values.

Pure functions for jit and vmap, in whatever precision the policy comes in; `exact` is the door to them for
users. A policy has one row for every agent state of the form.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from pohp_neurd import sequence_form

Levels = list[Float[Array, "_ A"]]
"""A number for each sequence of an agent, level by level."""


class Profile(NamedTuple):
    """How all agents act, agent by agent."""

    rows: list[Levels]
    """The policy's rows."""
    plans: list[Levels]
    """Realization plans: the probability of the agent's own actions up to and including each sequence."""
    flat: list[Float[Array, "_"]]
    """The same in a row, with the empty sequence first."""


class AgentValues(NamedTuple):
    """What an agent gets."""

    value: Float[Array, ""]
    action_values: Levels
    """Counterfactual: times the probability with which chance and the others let the sequence happen."""


def profile(form: sequence_form.SequenceForm, policy: Float[Array, "S A"]) -> Profile:
    """The realization plans of `policy`, from every agent's first turns to its last."""
    if form.row is not None:
        policy = policy[form.row]
    rows: list[Levels] = []
    plans: list[Levels] = []
    flat, start = [], 0
    for agent in form.agents:
        rows.append([])
        plans.append([])
        for level in agent.levels:
            rows[-1].append(policy[start : start + level.source.shape[0]])
            start += level.source.shape[0]
            above = plans[-1][-1].reshape(-1)[level.parent][:, None] if plans[-1] else 1.0
            plans[-1].append(rows[-1][-1] * above)
        flat.append(jnp.concatenate([jnp.ones(1, policy.dtype), *[plan.reshape(-1) for plan in plans[-1]]]))
    return Profile(rows, plans, flat)


class Rewards(NamedTuple):
    """An agent's rewards, times the probability with which chance and the others let them happen."""

    at_root: Float[Array, ""]
    """Before the agent has ever acted."""
    levels: list[Float[Array, "_"]]
    """After each sequence that any follow before the agent's next turn, level by level."""


def rewards(form: sequence_form.SequenceForm, acting: Profile, agent: int) -> Rewards:
    """The sums over all rewards, which every other quantity of the agent starts from."""
    others = [plan for other, plan in enumerate(acting.flat) if other != agent]
    dtype = acting.flat[agent].dtype
    at_root = jnp.sum(_sum(form.agents[agent].at_root, others, dtype))
    return Rewards(at_root, [_sum(level.rewards, others, dtype) for level in form.agents[agent].levels])


def sweep(
    form: sequence_form.SequenceForm,
    gained: Rewards,
    agent: int,
    choose: Callable[[int, Float[Array, "n A"]], Float[Array, "n"]],
    *,
    illegal: float,
) -> AgentValues:
    """The agent's values from its last turns back to its first.

    `choose(depth, action values)` makes the value of a level's states: a maximum for a best response, a
    mean for a policy. Actions that are not legal have the value `illegal`.
    """
    dtype = gained.at_root.dtype
    values = jnp.zeros(0, dtype)
    constants = jnp.array([0.0, illegal], dtype)  # at NOTHING and ILLEGAL
    action_values = []
    for depth, level in reversed(list(enumerate(form.agents[agent].levels))):
        earned = gained.levels[depth]
        children = _sum(level.children, [values], dtype)
        both = earned[level.both[0]] + children[level.both[1]]
        sources = jnp.concatenate([constants, earned, children, both])
        action_values.append(sources[level.source])
        values = choose(depth, action_values[-1])
    return AgentValues(gained.at_root + jnp.sum(values), action_values[::-1])


def best_response(form: sequence_form.SequenceForm, gained: Rewards, agent: int) -> AgentValues:
    """The most that the agent can get."""
    return sweep(form, gained, agent, lambda _, values: jnp.max(values, axis=1), illegal=-jnp.inf)


def counterfactual_values(
    form: sequence_form.SequenceForm, acting: Profile, gained: Rewards, agent: int
) -> AgentValues:
    """What the agent gets by its own policy, at every one of its sequences."""

    def mean(depth: int, values: Float[Array, "n A"]) -> Float[Array, "n"]:
        return jnp.sum(acting.rows[agent][depth] * values, axis=1)

    return sweep(form, gained, agent, mean, illegal=0.0)


def expected_return(
    form: sequence_form.SequenceForm, acting: Profile, gained: Rewards, agent: int
) -> Float[Array, ""]:
    """What the agent gets by its own policy, without a sweep: its own plan wherever there is a reward."""
    value = gained.at_root
    for level, plan, sums in zip(form.agents[agent].levels, acting.plans[agent], gained.levels, strict=True):
        value = value + jnp.sum(sums * plan.reshape(-1)[level.rewards_owner])
    return value


class Outcome(NamedTuple):
    """What every agent gets, and what it could get against the others as they are."""

    expected: Float[Array, "P"]
    best: Float[Array, "P"]


def outcome(form: sequence_form.SequenceForm, policy: Float[Array, "S A"]) -> Outcome:
    """Every agent's expected return and best-response value."""
    acting = profile(form, policy)
    expected, best = [], []
    for agent in range(len(form.agents)):
        gained = rewards(form, acting, agent)
        expected.append(expected_return(form, acting, gained, agent))
        best.append(best_response(form, gained, agent).value)
    return Outcome(jnp.stack(expected), jnp.stack(best))


def nash_conv(form: sequence_form.SequenceForm, policy: Float[Array, "S A"]) -> Float[Array, ""]:
    """What the agents would gain by best responses, added up (Lanctot et al. 2017): 0 at an equilibrium."""
    found = outcome(form, policy)
    return jnp.sum(found.best - found.expected)


def _sum(
    blocks: sequence_form.Sums, factors: Sequence[Float[Array, "_"]], dtype: jnp.dtype
) -> Float[Array, "groups"]:
    sums = [jnp.zeros(0, dtype)]
    for block in blocks:
        products = block.coefficient.astype(dtype)
        for factor, places in zip(factors, block.places, strict=True):
            products = products * factor[places]
        sums.append(jnp.sum(products, axis=1))
    return jnp.concatenate(sums)
