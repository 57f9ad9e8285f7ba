"""Self-play of n agents on a tree or a graph: play, tally, update, average, all inside one jitted scan.

Pipeline: a training loop; it feeds parameters back. Updates are `sampled`, from a batch of episodes (the
paper's Monte Carlo update), or `expected`, from exact values.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, directions, learners, policy, tally_learners, types
from pohp_neurd.finite import critic, evaluation, external, graph, rollout, sequence_form
from pohp_neurd.finite import tree as trees
from pohp_neurd.loops import NEVER as NEVER
from pohp_neurd.loops import Loop as Loop
from pohp_neurd.loops import State as State
from pohp_neurd.loops import Weights as Weights
from pohp_neurd.loops import averaged as averaged


class Arena(NamedTuple):
    """What is played on: large arrays, handed to the compiled loop rather than built into it."""

    seats: tally_learners.Seats
    board: rollout.Board
    form: sequence_form.SequenceForm | None = None
    """Of a tree with perfect recall; only such have average policies."""
    arrivals: sequence_form.Arrivals | None = None
    field: graph.Field | None = None
    """Of a graph."""
    line: critic.Lineage | None = None
    """Of a tree, for values of histories."""


def loop(
    learner: tally_learners.TallyLearner,
    *,
    num_episodes: int,
    scale: float = 1.0,
    update: str = "sampled",
    weights: str = "counterfactual",
    alternating: bool = False,
    average: Weights | None = None,
    baseline_of: str = "state",
    play_exploration: float = 0.0,
    sampling: str = "outcome",
) -> Loop:
    """Self-play of n agents.

    Args:
      learner: what learns, on the arena's seats.
      num_episodes: of one sampled update.
      scale: returns are divided by this before learners see them. With the width of a game's returns, step
        sizes and magnets carry over from game to game.
      update: "sampled", or "expected", from exact values.
      weights: expected updates on a tree weight a state with its "realization" probability, as sampled ones
        do on average, or with its "counterfactual" one, as CFR does.
      alternating: one agent learns at each update, in turn.
      average: how updates count in the average policy; None for no average.
      baseline_of: "history", for sampled returns of a tree that are less the learnt value of every history
        (`finite.critic`), or "state", for returns as they are: a baseline is then the learner's own matter.
      play_exploration: ε, with which episodes are played by (1 − ε) π + ε uniform; needs "history", by which
        that is corrected for.
      sampling: "outcome", whole episodes, or "external", on a tree: of chance and of the others only, so that
        the agent tries all of its actions (`finite.external`). No baseline is to be used then.

    Returns:
      The loop.
    """
    checks.one_of("update", update, ("sampled", "expected"))
    checks.one_of("weights", weights, ("realization", "counterfactual"))
    checks.positive("scale", scale)
    checks.at_least("num_episodes", num_episodes, 1)
    checks.one_of("baseline_of", baseline_of, checks.BASELINES)
    checks.in_unit_interval("play_exploration", play_exploration)
    checks.one_of("sampling", sampling, checks.SAMPLINGS)
    judged = baseline_of == "history"
    if sampling == "external" and (judged or update != "sampled"):
        raise ValueError("sampling=external is for update=sampled, and has no values of histories.")
    if judged and update != "sampled":
        raise ValueError("baseline_of=history is for update=sampled: expected updates have exact values.")
    if play_exploration and not judged:
        raise ValueError("play_exploration needs baseline_of=history, which corrects for it.")

    def init(arena: Arena, *, key: types.Key) -> State:
        precision = jnp.asarray(0.0, float).dtype
        if average is not None and arena.form is None:
            raise ValueError("agents that forget have no average policy: leave `average` out.")
        agents = [] if average is None or arena.form is None else arena.form.agents
        total = [jnp.zeros(agent.entry.shape, precision) for agent in agents]
        zero = jnp.zeros((), jnp.int32)
        fresh = learner.init(arena.seats, key=key)
        dtype = jax.eval_shape(learner.outputs, arena.seats, fresh).logits.dtype
        info = learners.Info(*(jnp.zeros((), dtype) for _ in learners.Info._fields))
        if judged and arena.line is None:
            raise ValueError("baseline_of=history takes a tree, but this is a graph.")
        values = critic.init(arena.line) if judged and arena.line is not None else None
        return State(fresh, total, zero, zero, jnp.asarray(NEVER, jnp.int32), info, values)

    def seen(
        arena: Arena, state: State, table: Float[Array, "S A"], key: types.Key
    ) -> tuple[directions.Tally, critic.Critic | None, evaluation.Profile | None]:
        """What there is to learn from, the next critic, and a tree's plans if they had to be made for it."""
        values = state.values
        if sampling == "external":
            if arena.line is None:
                raise ValueError("sampling=external takes a tree, but this is a graph.")
            num_agents = len(arena.seats.sizes)
            agents = [state.updates % num_agents] if alternating else range(num_agents)
            uniform = averaged(jnp.zeros_like(table), arena.seats.all.legal)
            tally = external.tally(arena.line, table, uniform, agents, num_episodes, key=key)
            return jax.tree.map(lambda sums: sums.astype(table.dtype), tally), None, None
        if update == "sampled":
            playing = table
            if play_exploration:
                uniform = averaged(jnp.zeros_like(table), arena.seats.all.legal)
                playing = (1 - play_exploration) * table + play_exploration * uniform
            episodes = rollout.play(arena.board, playing, num_episodes, key=key)
            if values is None or arena.line is None:
                tally = rollout.tally(arena.board, episodes)
            else:
                tally, values = critic.tally(arena.line, values, table, playing, episodes.end)
            return jax.tree.map(lambda sums: sums.astype(table.dtype), tally), values, None
        if arena.field is not None:
            return graph.expected_tally(arena.field, table, arena.seats.all.legal), None, None
        tally, plans = expected_tally(arena, table, weights)
        return tally, None, plans

    def one(arena: Arena, state: State, key: types.Key, last: Bool[Array, ""]) -> State:
        table = policies(arena, state)
        tally, values, acting = seen(arena, state, table, jax.random.fold_in(key, state.updates))
        steps = state.steps + jnp.sum(tally.visits).astype(jnp.int32)
        if scale != 1.0:
            tally = tally._replace(returns=tally.returns / scale)
        if alternating:
            turn = state.updates % len(arena.seats.sizes)
            mine = (jnp.asarray(arena.seats.agents) == turn)[:, None]
            tally = tally._replace(
                returns=jnp.where(mine, tally.returns, 0.0), visits=jnp.where(mine, tally.visits, 0.0)
            )
        learn = functools.partial(learner.update, arena.seats, state.learner, tally, state.updates)
        learnt, _ = learn()
        # Nobody sees the figures of the other updates, and in large games they would cost a tenth of them.
        info = jax.lax.cond(last, lambda: learn()[1], lambda: state.info)
        total = state.total
        if average is not None and arena.form is not None:
            acting = acting or evaluation.profile(arena.form, evaluation.slots(arena.form, table))
            total = [
                average.add(old, plan[1:], state.updates)
                for old, plan in zip(total, acting.plans, strict=True)
            ]
        fine = checks.all_finite(learnt) | (state.diverged != NEVER)
        diverged = jnp.where(fine, state.diverged, state.updates)
        return State(learnt, total, state.updates + 1, steps, diverged, info, values)

    @jax.jit
    def advance(arena: Arena, state: State, num_updates: Int[Array, ""], key: types.Key) -> State:
        state = state._replace(steps=jnp.zeros_like(state.steps))
        return jax.lax.fori_loop(
            0, num_updates, lambda made, state: one(arena, state, key, made == num_updates - 1), state
        )

    def policies(arena: Arena, state: State) -> Float[Array, "S A"]:
        logits = learner.outputs(arena.seats, state.learner).logits
        return jax.vmap(policy.probabilities)(logits, arena.seats.all.legal)

    def average_policy(arena: Arena, state: State) -> Float[Array, "S A"]:
        assert arena.form is not None, "there is no average without one"
        return averaged(evaluation.table(arena.form, state.total), arena.seats.all.legal)

    return Loop(init, advance, jax.jit(policies), jax.jit(average_policy))


def seats_of(
    tree: trees.Tree | graph.Graph, features: Float[np.ndarray, "S D"] | None = None
) -> tally_learners.Seats:
    """Who acts at the rows of a compiled game, and what a network sees there."""
    places = map(tree.states_of, range(tree.num_agents))
    inputs = None if features is None else np.asarray(features, np.float32)
    return tally_learners.seats(
        tally_learners.Rows(tree.legal, inputs), [each.stop - each.start for each in places]
    )


def scale_of(world: trees.Tree | graph.Graph) -> float:
    """The width of a game's returns, to divide them by."""
    bound = world.return_bound if isinstance(world, graph.Graph) else world.spec.return_bound
    return max(bound or 0.0, 1e-6)


def arena_of(
    tree: trees.Tree | graph.Graph,
    dtype: Any = jnp.float32,
    *,
    features: Float[np.ndarray, "S D"] | None = None,
) -> Arena:
    """The arena of a compiled game; its real numbers are of `dtype`. Networks need `features`."""
    seats, board = seats_of(tree, features), rollout.board(tree)
    if isinstance(tree, graph.Graph):
        return Arena(seats, board, field=graph.field(tree, dtype))

    def on_device(leaf: Any) -> Array:
        array = np.asarray(leaf)
        return jnp.asarray(array, dtype if array.dtype.kind == "f" else jnp.int32)

    form, line = sequence_form.build(tree), critic.lineage(tree)
    if form.slot is None:
        return Arena(seats, board, line=line)
    on_devices = jax.tree.map(on_device, (form, sequence_form.arrivals(tree)))
    return Arena(seats, board, on_devices[0], on_devices[1], line=line)


def expected_tally(
    arena: Arena, table: Float[Array, "S A"], weights: str
) -> tuple[directions.Tally, evaluation.Profile]:
    """What one episode has to say on average, with the exact value of every state as the baseline.

    `visits` are w(s) π(a), and `returns` w(s) π(a) (q(a) − v), with w the state's realization or
    counterfactual probability. With it come the realization plans, as average policies need them too.
    """
    # Not quite zero, so that an action whose probability underflows still has its share of the sum.
    limits = jnp.finfo(table.dtype)
    table = jnp.where(arena.seats.all.legal, jnp.maximum(table, limits.tiny / limits.eps), 0.0)
    form, arrivals = arena.form, arena.arrivals
    if form is None or arrivals is None:
        raise ValueError("expected updates need perfect recall: use sampled ones.")
    acting = evaluation.profile(form, evaluation.slots(form, table))
    action_values = evaluation.counterfactual_table(form, acting)
    advantages = action_values - jnp.sum(table * action_values, axis=1, keepdims=True)
    reach = evaluation.counterfactual_reach(arrivals, acting)[:, None]
    share = table
    if weights == "realization":
        share = evaluation.table(form, [plan[1:] for plan in acting.plans])
    tally = directions.Tally(share * advantages, share * reach, jnp.ones((), table.dtype))
    return tally, acting
