"""Self-play of n agents on a tree or a graph: play, tally, update, average, all inside one jitted scan.

Pipeline: a training loop; it feeds parameters back. Updates are `sampled`, from a batch of episodes (the
paper's Monte Carlo update), or `expected`, from exact values.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import averaging, checks, policy, tally_learners, trajectory, types
from pohp_neurd.finite import evaluation, graph, rollout, sequence_form, sweeps
from pohp_neurd.finite import tree as trees

NEVER = -1


class Arena(NamedTuple):
    """What is played on: large arrays, handed to the compiled loop rather than built into it."""

    board: rollout.Board
    form: sequence_form.SequenceForm | None
    """Of a tree; a graph has a field instead, and no average policy."""
    arrivals: sequence_form.Arrivals | None
    field: sweeps.Field | None = None


class State(NamedTuple):
    """What must persist between updates."""

    learner: Any
    total: list[Float[Array, "_"]]
    """The weighted sum of realization plans, for the average policy: float64 where that is enabled."""
    updates: Int[Array, ""]
    steps: Int[Array, ""]
    """Decisions sampled since the last call of `advance` began."""
    diverged: Int[Array, ""]
    """The number of the first update after which the learner's state was not finite; NEVER if none."""


class Loop(NamedTuple):
    """Self-play as pure functions."""

    init: Callable[..., State]
    """A fresh state, from an arena and a `key`."""
    advance: Callable[..., State]
    """advance(arena, state, num_updates, key=key): the state after that many more updates, jitted. The
    randomness of an update is a function of `key` and its number: where calls are cut makes no difference."""
    policies: Callable[[State], Float[Array, "S A"]]
    """The current policy of all agents as a table."""
    average: Callable[[Arena, State], Float[Array, "S A"]]
    """The reach-weighted average policy of all agents as a table."""


def loop(
    seats: tally_learners.Seats,
    learner: tally_learners.TallyLearner,
    *,
    num_episodes: int,
    scale: float = 1.0,
    update: str = "sampled",
    weights: str = "counterfactual",
    alternating: bool = False,
    average: averaging.Weights | None = None,
) -> Loop:
    """Self-play in which every update is from `num_episodes` episodes, or `expected`, from exact values.

    Expected updates weight a state with its `realization` probability, as sampled ones do on average, or
    with its `counterfactual` one, as CFR does. Returns are divided by `scale` before learners see them: with
    the width of a game's returns, step sizes and magnets carry over from game to game. `alternating` updates
    one agent at a time. `average` weighs the updates in the average policy; None for no average.
    """
    checks.one_of("update", update, ("sampled", "expected"))
    checks.one_of("weights", weights, ("realization", "counterfactual"))
    checks.positive("scale", scale)
    if num_episodes < 1:
        raise ValueError(f"num_episodes must be at least 1, but is {num_episodes}.")
    legal = jnp.asarray(seats.legal)
    agents = jnp.asarray(seats.agents)
    probabilities = jax.vmap(policy.probabilities)

    def init(arena: Arena, *, key: types.Key) -> State:
        precision = jnp.asarray(0.0, float).dtype
        if average is not None and arena.form is None:
            raise ValueError("agents that forget have no average policy: leave `average` out.")
        agents_ = [] if average is None or arena.form is None else arena.form.agents
        total = [jnp.zeros(agent.entry.shape, precision) for agent in agents_]
        zero = jnp.zeros((), jnp.int32)
        return State(learner.init(key=key), total, zero, zero, jnp.asarray(NEVER, jnp.int32))

    def tally_of(arena: Arena, table: Float[Array, "S A"], key: types.Key) -> trajectory.Tally:
        if update == "expected" and arena.field is not None:
            return sweeps.expected_tally(arena.field, table, legal)
        if update == "expected":
            return expected_tally(arena, table, legal, weights)
        return rollout.tally(arena.board, rollout.play(arena.board, table, num_episodes, key=key))

    def one(arena: Arena, state: State, key: types.Key) -> State:
        table = probabilities(learner.outputs(state.learner).logits, legal)
        tally = tally_of(arena, table, jax.random.fold_in(key, state.updates))
        steps = state.steps + jnp.sum(tally.visits).astype(jnp.int32)
        if scale != 1.0:
            tally = tally._replace(returns=tally.returns / scale)
        if alternating:
            mine = (agents == state.updates % len(seats.rows))[:, None]
            tally = tally._replace(
                returns=jnp.where(mine, tally.returns, 0.0), visits=jnp.where(mine, tally.visits, 0.0)
            )
        learnt = learner.update(state.learner, tally, state.updates)
        total = state.total
        if average is not None and arena.form is not None:
            plans = evaluation.profile(arena.form, evaluation.slots(arena.form, table)).plans
            total = [
                average.add(old, plan[1:], state.updates) for old, plan in zip(total, plans, strict=True)
            ]
        fine = checks.all_finite(learnt) | (state.diverged != NEVER)
        diverged = jnp.where(fine, state.diverged, state.updates)
        return State(learnt, total, state.updates + 1, steps, diverged)

    @jax.jit
    def advance(arena: Arena, state: State, num_updates: Int[Array, ""], key: types.Key) -> State:
        state = state._replace(steps=jnp.zeros_like(state.steps))
        return jax.lax.fori_loop(0, num_updates, lambda _, state: one(arena, state, key), state)

    def policies(state: State) -> Float[Array, "S A"]:
        return probabilities(learner.outputs(state.learner).logits, legal)

    def average_policy(arena: Arena, state: State) -> Float[Array, "S A"]:
        assert arena.form is not None, "there is no average without one"
        return averaging.average(evaluation.table(arena.form, state.total), legal)

    return Loop(init, advance, jax.jit(policies), jax.jit(average_policy))


def arena_of(tree: trees.Tree | graph.Graph, dtype: Any = jnp.float32) -> Arena:
    """The arena of a compiled game; its real numbers are of `dtype`."""
    if isinstance(tree, graph.Graph):
        return Arena(rollout.board(tree), None, None, sweeps.field(tree, dtype))

    def on_device(leaf: Any) -> Array:
        array = np.asarray(leaf)
        return jnp.asarray(array, dtype if array.dtype.kind == "f" else jnp.int32)

    form, arrivals = sequence_form.build(tree), sequence_form.arrivals(tree)
    if form.slot is None:
        raise ValueError(f"{tree.name} has no perfect recall, which average policies need.")
    return Arena(rollout.board(tree), *jax.tree.map(on_device, (form, arrivals)))


def expected_tally(
    arena: Arena, table: Float[Array, "S A"], legal: Bool[Array, "S A"], weights: str
) -> trajectory.Tally:
    """What one episode has to say on average, with the exact value of every state as the baseline.

    `visits` are w(s) π(a), and `returns` w(s) π(a) (q(a) − v), with w the state's realization or
    counterfactual probability.
    """
    # Not quite zero, so that an action whose probability underflows still has its share of the sum.
    limits = jnp.finfo(table.dtype)
    table = jnp.where(legal, jnp.maximum(table, limits.tiny / limits.eps), 0.0)
    form, arrivals = arena.form, arena.arrivals
    assert form is not None, "of a tree"
    assert arrivals is not None, "of a tree"
    acting = evaluation.profile(form, evaluation.slots(form, table))
    action_values = evaluation.counterfactual_table(form, acting)
    advantages = action_values - jnp.sum(table * action_values, axis=1, keepdims=True)
    reach = evaluation.counterfactual_reach(arrivals, acting)[:, None]
    share = table
    if weights == "realization":
        share = evaluation.table(form, [plan[1:] for plan in acting.plans])
    return trajectory.Tally(share * advantages, share * reach, jnp.ones((), table.dtype))
