"""Learners that update once from all that a batch of episodes has to say of every agent state.

Pipeline: tally -> direction -> **parameters**. They do what `learners.learner` does decision by decision, on
the sums of the decisions: a table's update costs a pass over the table, a network's one forward and one
backward pass over the agent states, however many episodes there were.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import averaging, checks, learners, policy, regularisation, tabular, trajectory, types


@dataclasses.dataclass(frozen=True, eq=False)
class Seats:
    """The agent states of a finite process, and who acts there: agent i at rows[i]."""

    legal: Bool[np.ndarray, "S A"]
    rows: tuple[slice, ...]

    @property
    def agents(self) -> Int[np.ndarray, "S"]:
        """The agent of every row."""
        return np.repeat(np.arange(len(self.rows)), [rows.stop - rows.start for rows in self.rows])


class TallyLearner(NamedTuple):
    """A learning algorithm as three pure functions."""

    init: Callable[..., Any]
    """A fresh state, from a `key`."""
    outputs: Callable[[Any], policy.Output]
    """Logits [S, A] and values [S] of all agent states."""
    update: Callable[[Any, trajectory.Tally, Int[Array, ""]], Any]
    """The state after one update, the first of which has the number 0."""


class TableState(NamedTuple):
    """What a tabular learner remembers."""

    table: tabular.Table
    magnet: Float[Array, "S A"]


def table(
    seats: Seats,
    rules: Sequence[learners.Rule],
    *,
    step_size: float | types.Schedule,
    magnet: regularisation.Magnet | None = None,
    baseline_rate: float | None = 0.05,
    average_over: str = "episodes",
    dtype: Any = jnp.float32,
) -> TallyLearner:
    """Logits in a table: the paper's update, summed, then the magnet's pull in closed form.

    The baseline is a running mean of each state's returns, which moves by `baseline_rate` with every visit;
    None for no baseline. The direction at a state is the sum over its visits divided by the number of
    episodes, or, with `average_over="visits"`, by the number of its own visits. Logits are kept centred,
    which changes no policy and keeps single precision where it is needed.
    """
    checks.one_of("average_over", average_over, ("episodes", "visits"))
    _check_rules(rules, seats)
    if not callable(step_size):
        checks.non_negative("step_size", step_size)
    legal, over_visits = jnp.asarray(seats.legal), average_over == "visits"

    def init(*, key: types.Key | None = None) -> TableState:
        del key  # zeros need no randomness
        num_states, num_actions = seats.legal.shape
        zeros = jnp.zeros((num_states, num_actions), dtype)
        return TableState(tabular.Table(zeros, jnp.zeros(num_states, dtype)), jnp.array(zeros))

    def outputs(state: TableState) -> Any:
        return policy.Output(state.table.logits, state.table.values)

    def update(state: TableState, tally: trajectory.Tally, updates: Int[Array, ""]) -> TableState:
        logits, values = state.table.logits, jnp.asarray(state.table.values)
        visits = jnp.sum(tally.visits, axis=1)
        direction = _directions(rules, seats, logits, tally, values if baseline_rate else None, updates)
        size = jnp.asarray(_read(step_size, updates), dtype)
        divisor = jnp.where(visits > 0, visits, 1.0)[:, None] if over_visits else tally.episodes
        new = logits + size * direction / divisor
        reference = state.magnet
        if magnet is not None:
            strength = jnp.asarray(_read(magnet.strength, updates), dtype)
            pull = size * strength * visits[:, None] / divisor
            new = (new + pull * reference) / (1.0 + pull)
        new = jax.vmap(policy.centred)(new, legal)
        if magnet is not None:
            reference = reference + jnp.asarray(_read(magnet.speed, updates), dtype) * (new - reference)
        if baseline_rate:
            mean = jnp.sum(tally.returns, axis=1) / jnp.maximum(visits, 1.0)
            values = values + (1.0 - (1.0 - baseline_rate) ** visits) * (mean - values)
        return TableState(tabular.Table(new, values), reference)

    return TallyLearner(init, outputs, update)


class NetworkState(NamedTuple):
    """What a neural learner remembers; a tuple of one for shared, of P for separate parameters."""

    parameters: tuple[types.Parameters, ...]
    optimizers: tuple[optax.OptState, ...]
    magnets: tuple[types.Parameters, ...]
    averages: tuple[averaging.Smoothed, ...]


def network(
    seats: Seats,
    features: Float[np.ndarray, "S D"],
    model: policy.Model,
    rules: Sequence[learners.Rule],
    optimizers: Sequence[optax.GradientTransformation],
    *,
    shared: bool = True,
    magnet: regularisation.Magnet | None = None,
    common_mode: str = "dropped",
    baseline: bool = True,
    critic_cost: float = 1.0,
    average_rate: float = 0.001,
    alternating: bool = False,
    dtype: Any = jnp.float32,
) -> TallyLearner:
    """One network for all seats, or one for each; a model with a critic has its value as the baseline.

    Gradients are sums over decisions divided by the number of episodes, as if every decision had gone
    through the network on its own. Each network has its own of the `optimizers`; with `alternating`, separate
    ones move in turn, and each optimizer counts its own turns.
    """
    checks.one_of("common_mode", common_mode, ("paper", "dropped"))
    _check_rules(rules, seats)
    groups = (slice(0, len(seats.legal)),) if shared else seats.rows
    if len(optimizers) != len(groups):
        raise ValueError(
            f"there must be an optimizer for each of {len(groups)} networks, but are {len(optimizers)}."
        )
    inputs = [jnp.asarray(features[rows], dtype) for rows in groups]
    legal = jnp.asarray(seats.legal)
    model_outputs = jax.vmap(model.apply, in_axes=(None, 0))

    def init(*, key: types.Key) -> NetworkState:
        fresh = tuple(model.init(key=k) for k in jax.random.split(key, len(groups)))
        parameters = jax.tree.map(lambda leaf: leaf.astype(dtype), fresh)
        copies = tuple(jax.tree.map(jnp.array, parameters) for _ in range(2))
        smoothed = tuple(averaging.Smoothed(p, jnp.zeros((), jnp.int32)) for p in copies[1])
        fresh_states = tuple(o.init(p) for o, p in zip(optimizers, parameters, strict=True))
        return NetworkState(parameters, fresh_states, copies[0], smoothed)

    def outputs_of(parameters: tuple[types.Parameters, ...]) -> Any:
        found = [model_outputs(p, x) for p, x in zip(parameters, inputs, strict=True)]
        return jax.tree.map(lambda *parts: jnp.concatenate(parts), *found)

    def outputs(state: NetworkState) -> Any:
        return outputs_of(state.parameters)

    def update(state: NetworkState, tally: trajectory.Tally, updates: Int[Array, ""]) -> NetworkState:
        found, pull_back = jax.vjp(outputs_of, state.parameters)
        visits = jnp.sum(tally.visits, axis=1)
        direction = _directions(rules, seats, found.logits, tally, found.value if baseline else None, updates)
        if common_mode == "dropped":
            direction = jax.vmap(policy.centred)(direction, legal)
        if magnet is not None:
            strength = jnp.asarray(_read(magnet.strength, updates), direction.dtype)
            pull = jax.vmap(regularisation.magnet_pull)(found.logits, outputs_of(state.magnets).logits, legal)
            direction = direction + strength * visits[:, None] * pull
        error = None
        if found.value is not None:
            error = critic_cost * (visits * found.value - jnp.sum(tally.returns, axis=1)) / tally.episodes
        (gradients,) = pull_back(policy.Output(-direction / tally.episodes, error))
        return _stepped(state, gradients, updates)

    def _stepped(state: NetworkState, gradients: Any, updates: Int[Array, ""]) -> NetworkState:
        parts = []
        for group, old in enumerate(zip(*state, strict=True)):
            parameters, optimizer_state, reference, smoothed = old
            with jax.numpy_dtype_promotion("standard"):
                steps, optimizer_state = optimizers[group].update(
                    gradients[group], optimizer_state, parameters
                )
            parameters = optax.apply_updates(parameters, steps)
            if magnet is not None:
                speed = _read(magnet.speed, updates)
                reference = averaging.moved(reference, parameters, speed)
            smoothed = averaging.smooth(smoothed, parameters, average_rate)
            new = (parameters, optimizer_state, reference, smoothed)
            if alternating and not shared:
                turn = updates % len(groups) == group
                new = jax.tree.map(lambda a, b, turn=turn: jnp.where(turn, a, b), new, old)
            parts.append(new)
        return NetworkState(*(tuple(part) for part in zip(*parts, strict=True)))

    return TallyLearner(init, outputs, update)


def averaged(state: NetworkState) -> NetworkState:
    """The state whose networks are the averages."""
    return state._replace(parameters=tuple(average.parameters for average in state.averages))


def _directions(
    rules: Sequence[learners.Rule],
    seats: Seats,
    logits: Float[Array, "S A"],
    tally: trajectory.Tally,
    values: Float[Array, "S"] | None,
    updates: Int[Array, ""],
) -> Float[Array, "S A"]:
    """The sum of every agent's directions by its own rule."""
    sums = tally.returns if values is None else tally.returns - tally.visits * values[:, None]
    legal = jnp.asarray(seats.legal)
    parts = []
    for rule, rows in zip(rules, seats.rows, strict=True):
        with jax.numpy_dtype_promotion("standard"):
            exploration = jnp.asarray(rule.exploration(updates), logits.dtype)
        probabilities = jax.vmap(policy.probabilities)(logits[rows], legal[rows])
        add = jax.vmap(learners.summed_direction, in_axes=(None, 0, 0, 0, None))
        parts.append(add(rule, probabilities, sums[rows], legal[rows], exploration))
    return jnp.concatenate(parts)


def _read(value: float | types.Schedule, count: Int[Array, ""]) -> Any:
    with jax.numpy_dtype_promotion("standard"):
        return value(count) if callable(value) else value


def _check_rules(rules: Sequence[learners.Rule], seats: Seats) -> None:
    if len(rules) != len(seats.rows):
        raise ValueError(f"there are {len(seats.rows)} agents, but {len(rules)} rules.")
