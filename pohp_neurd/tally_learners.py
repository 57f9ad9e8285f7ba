"""Learners that update once from all that a batch of episodes has to say of every agent state.

Pipeline: direction -> shaping -> **parameters**, from a tally. They do what `learners.learner` does decision
by decision, on the sums of the decisions, and lose nothing: a table's update costs a pass over the table, a
network's one forward and one backward pass over the agent states, however many episodes there were.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, directions, learners, minimizers, policy, shaping, tabular, types


@functools.partial(jax.tree_util.register_dataclass, data_fields=["legal", "features"], meta_fields=[])
@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """What is known of every agent state of a finite process."""

    legal: Bool[types.ArrayLike, "S A"]
    features: Float[types.ArrayLike, "S D"] | None = None
    """What a network sees there."""


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["handed"], meta_fields=["sizes", "built_in"]
)
@dataclasses.dataclass(frozen=True, eq=False)
class Seats:
    """Who acts at which agent states; made by `seats`, and an argument of compiled functions."""

    sizes: tuple[int, ...]
    """How many rows each agent has; they stand agent by agent."""
    handed: Rows | None
    built_in: Rows | None
    """The one or the other: an argument of a compiled function, or a constant of it."""

    @property
    def all(self) -> Rows:
        """The rows of all agents."""
        found = self.handed or self.built_in
        assert found is not None, "one of the two"
        return found

    @property
    def rows(self) -> tuple[slice, ...]:
        """Where the rows of each agent stand."""
        ends = np.cumsum(self.sizes).tolist()
        return tuple(slice(end - size, end) for size, end in zip(self.sizes, ends, strict=True))

    @property
    def agents(self) -> Int[np.ndarray, "S"]:
        """The agent of every row."""
        return np.repeat(np.arange(len(self.sizes), dtype=np.int32), self.sizes)


_SMALL = 2**16


def seats(rows: Rows, sizes: Sequence[int]) -> Seats:
    """Seats of agents that have `sizes` of the `rows`, one after the other.

    XLA computes with what is built into a function as it compiles: that saves masks in small tables, and
    takes minutes in large ones, which therefore are handed over.
    """
    on_device = jax.tree.map(jnp.asarray, rows)
    small = np.size(rows.legal) <= _SMALL
    return Seats(tuple(sizes), None if small else on_device, on_device if small else None)


class TallyLearner(NamedTuple):
    """A learning algorithm on the agent states of `seats` as three pure functions."""

    init: Callable[..., Any]
    """(seats, *, key) -> a fresh state."""
    outputs: Callable[[Seats, Any], policy.Output]
    """(seats, state) -> logits [S, A] and values [S] of all agent states."""
    update: Callable[[Seats, Any, directions.Tally, Int[Array, ""]], tuple[Any, learners.Info]]
    """(seats, state, tally, number) -> the state after that update, the first of which is number 0."""


AVERAGES = ("episodes", "visits")


class TableState(NamedTuple):
    """What a tabular learner remembers."""

    table: tabular.Table
    magnet: Float[Array, "S A"]


def table(
    rule: directions.Rule,
    *,
    step_size: float | types.Schedule,
    magnet: shaping.Magnet | None = None,
    threshold: float | None = None,
    entropy_cost: float = 0.0,
    baseline_rate: float | None = 0.05,
    average_over: str = "episodes",
    dtype: Any = jnp.float32,
) -> TallyLearner:
    """Logits in a table: the paper's update, summed, then the magnet's pull in closed form.

    Logits are kept centred, which changes no policy and keeps single precision where it is needed; so the
    direction's common mode is of no account, but for a threshold, which sees it dropped.

    Args:
      rule: the algorithm of all agents.
      step_size: α.
      magnet: see `shaping.shape`, as for the next two.
      threshold: on logits.
      entropy_cost: of the pull to the uniform policy.
      baseline_rate: the baseline is a running mean of each state's returns, which moves by this with every
        visit; None for no baseline.
      average_over: a state's direction is the sum over its visits divided by the number of "episodes", or
        by that of its own "visits".
      dtype: of the table.

    Returns:
      The learner.
    """
    checks.one_of("average_over", average_over, AVERAGES)
    if not callable(step_size):
        checks.non_negative("step_size", step_size)
    common_mode = "paper" if threshold is None else "dropped"
    shape = shaping.shape(common_mode=common_mode, entropy_cost=entropy_cost, threshold=threshold)

    def init(seats: Seats, *, key: types.Key | None = None) -> TableState:
        del key  # zeros need no randomness
        zeros = jnp.zeros(seats.all.legal.shape, dtype)
        return TableState(tabular.Table(zeros, jnp.zeros(len(zeros), dtype)), jnp.array(zeros))

    def outputs(seats: Seats, state: TableState) -> Any:
        del seats
        return policy.Output(state.table.logits, state.table.values)

    def update(
        seats: Seats, state: TableState, tally: directions.Tally, updates: Int[Array, ""]
    ) -> tuple[TableState, learners.Info]:
        logits, values = state.table.logits, jnp.asarray(state.table.values)
        visits = jnp.sum(tally.visits, axis=1)
        baseline = values if baseline_rate else None
        tally = _corrected(tally, logits, seats)
        direction, info = _follow(rule, shape, seats, logits, None, baseline, tally, updates)
        size = jnp.asarray(directions.read(step_size, updates), dtype)
        divisor = _divisor(average_over, visits, tally)
        new = logits + size * direction / divisor
        reference = state.magnet
        if magnet is not None:
            strength = jnp.asarray(directions.read(magnet.strength, updates), dtype)
            new = shaping.pulled(new, reference, size * strength * visits[:, None] / divisor)
        new = jax.vmap(policy.centred)(new, seats.all.legal)
        if magnet is not None:
            reference = reference + jnp.asarray(directions.read(magnet.speed, updates), dtype) * (
                new - reference
            )
        values = _learnt(values, visits, tally, baseline_rate)
        return TableState(tabular.Table(new, values), reference), info

    return TallyLearner(init, outputs, update)


class MinimizerState(NamedTuple):
    """What the minimisers of all agent states remember."""

    minimizers: Any
    """Arms first."""
    values: Float[Array, "S"]


def minimizing(
    minimizer: minimizers.Minimizer,
    rule: directions.Rule,
    *,
    baseline_rate: float | None = None,
    average_over: str = "visits",
    dtype: Any = jnp.float32,
) -> TallyLearner:
    """A regret minimiser at every agent state, fed with sampled regrets: the paper's reduction, in games.

    The regrets ρ̂(a) = q̂(a) − Σ_b π(b) q̂(b) of a state's decisions are NeuRD-CIX's direction (or IX's, as the
    rule says), in mean. A state that was not visited is told nothing. With one state, one decision an update
    and no baseline it is `bandit.reduction`.

    A mean over visits does not weight a state by how often the others lead there, as CFR's regrets do. Those
    that forget, regret matching+ and its predictive form, come to an equilibrium all the same; those that
    never do, regret matching and optimistic Hedge, stop short of it (NashConv 0.035 in Kuhn poker).

    Args:
      minimizer: of one agent state.
      rule: how a decision's return becomes a regret for every action.
      baseline_rate: see `table`, as for the next two. Without a baseline, actions that are not taken look as
        good as the best return, 0, which keeps a minimiser from forgetting them.
      average_over: "episodes" or "visits".
      dtype: of the sums.

    Returns:
      The learner.
    """
    checks.one_of("average_over", average_over, AVERAGES)

    def init(seats: Seats, *, key: types.Key | None = None) -> MinimizerState:
        del key  # nothing is drawn
        num_states, num_actions = seats.all.legal.shape
        zeros = minimizer.init(jnp.zeros((num_actions, num_states), dtype))
        return MinimizerState(zeros, jnp.zeros(num_states, dtype))

    def outputs(seats: Seats, state: MinimizerState) -> Any:
        chosen = minimizer.policy(state.minimizers, jnp.asarray(seats.all.legal).T).T
        # Softmax makes the same policy of these; what is never chosen keeps less than any draw can hit.
        return policy.Output(jnp.log(jnp.maximum(chosen, jnp.finfo(chosen.dtype).tiny)), state.values)

    def update(
        seats: Seats, state: MinimizerState, tally: directions.Tally, updates: Int[Array, ""]
    ) -> tuple[MinimizerState, learners.Info]:
        logits, visits = outputs(seats, state).logits, jnp.sum(tally.visits, axis=1)
        baseline = state.values if baseline_rate else None
        direction, info = _follow(rule, shaping.shape(), seats, logits, None, baseline, tally, updates)
        chosen = jax.vmap(policy.probabilities)(logits, seats.all.legal)
        regrets = jnp.where(
            seats.all.legal, direction - jnp.sum(chosen * direction, axis=1, keepdims=True), 0.0
        )
        told = minimizer.observe(state.minimizers, (regrets / _divisor(average_over, visits, tally)).T)
        kept = jax.tree.map(lambda new, old: jnp.where(visits[None] > 0, new, old), told, state.minimizers)
        return MinimizerState(kept, _learnt(state.values, visits, tally, baseline_rate)), info

    return TallyLearner(init, outputs, update)


class Smoothed(NamedTuple):
    """A network's average policy, a network too: its parameters, averaged over the last part of training."""

    parameters: types.Parameters
    updates: Int[Array, ""]


def smooth(state: Smoothed, parameters: types.Parameters, rate: float) -> Smoothed:
    """The average after one more update: exponential with `rate`, and a plain mean until 1 / rate updates."""
    count = state.updates + 1
    step = jnp.maximum(rate, 1.0 / count.astype(jnp.float32))
    return Smoothed(moved(state.parameters, parameters, step), count)


def moved(old: types.Parameters, new: types.Parameters, share: types.Scalar) -> types.Parameters:
    """`old`, after that share of its way to `new`; in the precision of `old`."""
    return jax.tree.map(lambda a, b: a + jnp.asarray(share, a.dtype) * (b - a), old, new)


class NetworkState(NamedTuple):
    """What a neural learner remembers; a tuple of one for shared, of P for separate parameters."""

    parameters: tuple[types.Parameters, ...]
    optimizers: tuple[Any, ...]
    magnets: tuple[types.Parameters, ...]
    averages: tuple[Smoothed, ...]


def network(
    model: policy.Model,
    rule: directions.Rule,
    optimizers: Sequence[types.Optimizer],
    *,
    magnet: shaping.Magnet | None = None,
    common_mode: str = checks.COMMON_MODE,
    threshold: float | None = None,
    entropy_cost: float = 0.0,
    baseline: bool = True,
    critic_cost: float = 1.0,
    average_rate: float = 0.001,
    alternating: bool = False,
    dtype: Any = jnp.float32,
) -> TallyLearner:
    """One network for all seats, or one for each.

    Gradients are sums over decisions divided by the number of episodes, as if every decision had gone
    through the network on its own.

    Args:
      model: of features to logits, and to a value if it has a critic.
      rule: the algorithm of all agents.
      optimizers: one for a network that all seats share, or one for each seat's own.
      magnet: see `shaping.shape`, as for the next three.
      common_mode: "dropped" or "paper".
      threshold: on logits.
      entropy_cost: of the pull to the uniform policy.
      baseline: whether a critic's value is subtracted from returns.
      critic_cost: of ½ (target − V)².
      average_rate: at which the average of the parameters moves.
      alternating: separate networks move in turn, and each optimizer counts its own turns.
      dtype: of the parameters.

    Returns:
      The learner.
    """
    shape = shaping.shape(
        common_mode=common_mode, magnet=magnet, entropy_cost=entropy_cost, threshold=threshold
    )
    model_outputs = jax.vmap(model.apply, in_axes=(None, 0))

    def init(seats: Seats, *, key: types.Key) -> NetworkState:
        if len(optimizers) not in (1, len(seats.sizes)):
            raise ValueError(
                f"there must be one optimizer, or one for each of {len(seats.sizes)} seats, "
                f"but are {len(optimizers)}."
            )
        fresh = tuple(model.init(key=k) for k in jax.random.split(key, len(optimizers)))
        parameters = jax.tree.map(lambda leaf: leaf.astype(dtype), fresh)
        copies = tuple(jax.tree.map(jnp.array, parameters) for _ in range(2))
        smoothed = tuple(Smoothed(p, jnp.zeros((), jnp.int32)) for p in copies[1])
        fresh_states = tuple(o.init(p) for o, p in zip(optimizers, parameters, strict=True))
        return NetworkState(parameters, fresh_states, copies[0], smoothed)

    def outputs_of(seats: Seats, parameters: tuple[types.Parameters, ...]) -> Any:
        assert seats.all.features is not None, "a network sees features"
        features = jnp.asarray(seats.all.features, dtype)
        inputs = [features] if len(parameters) == 1 else [features[rows] for rows in seats.rows]
        found = [model_outputs(p, x) for p, x in zip(parameters, inputs, strict=True)]
        return jax.tree.map(lambda *parts: jnp.concatenate(parts), *found)

    def outputs(seats: Seats, state: NetworkState) -> Any:
        return outputs_of(seats, state.parameters)

    def update(
        seats: Seats, state: NetworkState, tally: directions.Tally, updates: Int[Array, ""]
    ) -> tuple[NetworkState, learners.Info]:
        found, pull_back = jax.vjp(functools.partial(outputs_of, seats), state.parameters)
        tally = _corrected(tally, found.logits, seats)
        reference = None if magnet is None else outputs_of(seats, state.magnets).logits
        values = found.value if baseline else None
        direction, info = _follow(rule, shape, seats, found.logits, reference, values, tally, updates)
        error = None
        if found.value is not None:
            visits = jnp.sum(tally.visits, axis=1)
            error = critic_cost * (visits * found.value - jnp.sum(tally.returns, axis=1)) / tally.episodes
        (gradients,) = pull_back(policy.Output(-direction / tally.episodes, error))
        return _stepped(state, gradients, updates), info

    def _stepped(state: NetworkState, gradients: Any, updates: Int[Array, ""]) -> NetworkState:
        import optax

        parts = []
        for group, old in enumerate(zip(*state, strict=True)):
            parameters, optimizer_state, reference, smoothed = old
            with jax.numpy_dtype_promotion("standard"):
                steps, optimizer_state = optimizers[group].update(
                    gradients[group], optimizer_state, parameters
                )
            parameters = optax.apply_updates(parameters, steps)
            if magnet is not None:
                reference = moved(reference, parameters, directions.read(magnet.speed, updates))
            smoothed = smooth(smoothed, parameters, average_rate)
            new = (parameters, optimizer_state, reference, smoothed)
            if alternating and len(optimizers) > 1:
                turn = updates % len(optimizers) == group
                new = jax.tree.map(lambda a, b, turn=turn: jnp.where(turn, a, b), new, old)
            parts.append(new)
        return NetworkState(*(tuple(part) for part in zip(*parts, strict=True)))

    return TallyLearner(init, outputs, update)


def _corrected(tally: directions.Tally, logits: Float[Array, "S A"], seats: Seats) -> directions.Tally:
    """As if drawn from the policy of these logits. Minimisers do without: theirs may never take an action."""
    acting = jax.vmap(policy.probabilities)(logits, seats.all.legal)
    return directions.corrected(tally, acting, jnp.asarray(seats.all.legal))


def _divisor(average_over: str, visits: Float[Array, "S"], tally: directions.Tally) -> Array:
    over_visits = average_over == "visits"
    return jnp.where(visits > 0, visits, 1.0)[:, None] if over_visits else tally.episodes


def _learnt(
    values: Float[Array, "S"], visits: Float[Array, "S"], tally: directions.Tally, rate: float | None
) -> Float[Array, "S"]:
    """Running means of the states' returns, which move by `rate` with every visit."""
    if not rate:
        return values
    mean = jnp.sum(tally.returns, axis=1) / jnp.maximum(visits, 1.0)
    return values + (1.0 - (1.0 - rate) ** visits) * (mean - values)


def averaged(state: NetworkState) -> NetworkState:
    """The state whose networks are the averages."""
    return state._replace(parameters=tuple(average.parameters for average in state.averages))


def _follow(
    rule: directions.Rule,
    shape: shaping.Shape,
    seats: Seats,
    logits: Float[Array, "S A"],
    reference: Float[Array, "S A"] | None,
    values: Float[Array, "S"] | None,
    tally: directions.Tally,
    updates: Int[Array, ""],
) -> tuple[Float[Array, "S A"], learners.Info]:
    """What a tally says of all agent states.

    Args:
      rule: the algorithm.
      shape: what its directions go through.
      seats: whose agent states they are.
      logits: of the policy that the tally was made with.
      reference: the magnet's logits, if the shape has a magnet.
      values: baselines; None for none.
      tally: the sums over the decisions at each state.
      updates: before this one.

    Returns:
      The sums of the shaped directions, and the figures of the update.
    """
    legal = jnp.asarray(seats.all.legal)
    sums = tally.returns if values is None else tally.returns - tally.visits * values[:, None]
    exploration = jnp.asarray(directions.read(rule.exploration, updates), logits.dtype)
    probabilities = tally.probabilities
    if probabilities is None:
        probabilities = jax.vmap(policy.probabilities)(logits, legal)
    add = jax.vmap(directions.summed_direction, in_axes=(None, 0, 0, 0, None))
    # Agent by agent, which is how XLA rounds as it did in the runs on record.
    parts = [add(rule, probabilities[at], sums[at], legal[at], exploration) for at in seats.rows]
    direction = jnp.concatenate(parts)
    visits = jnp.sum(tally.visits, axis=1)
    row = shaping.Row(logits, legal, reference, updates, visits)
    axes = shaping.Row(0, 0, None if reference is None else 0, None, 0)
    direction = jax.vmap(shape, in_axes=(0, axes))(direction, row)

    means = direction / jnp.where(visits > 0, visits, 1.0)[:, None]
    entries = jnp.sum(visits * jnp.sum(legal, axis=1).astype(visits.dtype))
    mean_square = jnp.sum(visits[:, None] * means**2) / jnp.where(entries > 0, entries, 1.0)
    entropy = jnp.broadcast_to(jax.vmap(policy.entropy)(logits, legal)[:, None], logits.shape)
    counts, chances, surprise = (
        jnp.ravel(each).astype(logits.dtype) for each in (tally.visits, probabilities, entropy)
    )
    return direction, learners.info_of(
        counts, chances, surprise, mean_square.astype(logits.dtype), exploration
    )
