"""Self-play with exact values in the slots of the sequence form: a learner at every information state.

Regret matching makes it CFR (Zinkevich et al. 2007), regret matching+ CFR+ (Tammelin et al. 2015), its
predictive form PCFR+ (Farina et al. 2021), a table of logits expected NeuRD-CIX. The plans that values and
averages need are made once, when a policy changes; an agent's turn computes its own half alone.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, directions, learners, loops, minimizers, policy, tally_learners, types
from pohp_neurd.finite import evaluation, sequence_form
from pohp_neurd.finite import tree as trees

_QUICKLY: Any = {"xla_cpu_use_fusion_emitters": False}
"""Halves the seconds of compilation, for at most a quarter on an update."""

_PADDING = 512
"""Takes another fifth or more of them, for nothing."""


class Arena(NamedTuple):
    """What is played on."""

    form: sequence_form.SequenceForm
    legal: Bool[np.ndarray, "S A"]
    arrivals: tuple[sequence_form.Sums, ...]
    """Agent by agent, over the histories of each of its states."""
    places: list[list[list[Int[Any, "n"]]]]
    """Of the states of every rectangle among those sums."""


def arena_of(tree: trees.Tree, dtype: Any) -> Arena:
    """The arena of a tree; its real numbers, and all that is learnt, are of `dtype`."""
    form = sequence_form.build(tree, padding=_PADDING)
    if form.slot is None:
        raise ValueError(
            f"{tree.name} has no perfect recall, which expected updates and average policies need."
        )
    arrivals = sequence_form.arrivals(tree, padding=_PADDING)
    places, start = [], 0
    for agent, blocks in zip(form.agents, arrivals.sums, strict=True):
        entries = evaluation.rectangles(agent, agent.entry)
        rows = jax.tree.map(lambda entry: entry.max(axis=1) // tree.num_actions, entries)
        places.append(jax.tree.map(lambda row, start=start: arrivals.place[row] - start, rows))
        start += sum(len(block.coefficient) for block in blocks)

    def cast(leaf: np.ndarray) -> np.ndarray:
        return leaf.astype(dtype if leaf.dtype.kind == "f" else np.int32)

    on_device = jax.device_put(jax.tree.map(cast, (form, arrivals.sums, places)))
    return Arena(on_device[0], np.asarray(tree.legal), *on_device[1:])


class Evidence(NamedTuple):
    """What a turn has to say of the states of one rectangle."""

    values: Float[Array, "n width"]
    """Counterfactual, of the actions; 0 where there is none."""
    acting: Float[Array, "n width"]
    """The policy that they are of."""
    plan: Float[Array, "n width"]
    """The same, times the probability that the agent's own actions lead to the state."""
    reach: Float[Array, "n"]
    """The probability with which chance and the others do."""
    legal: Bool[Array, "n width"]
    updates: Int[Array, ""]
    """Before this one."""


class Figures(NamedTuple):
    """What there is to plot of one rectangle, with the weights to join it to others."""

    info: learners.Info
    visits: Float[Array, ""]
    entries: Float[Array, ""]
    """Visits times legal actions."""


class Learner(NamedTuple):
    """What learns at the states of a rectangle, as pure functions."""

    init: Callable[[Bool[np.ndarray, "n width"], Any], Any]
    """(legal, dtype) -> a fresh state, whose policy is uniform."""
    learn: Callable[[Any, Evidence], tuple[Any, Float[Array, "n width"]]]
    """(state, evidence) -> the next state, and its policy."""
    figures: Callable[[Any, Evidence], Figures] | None = None
    """(state, evidence) -> what is to be plotted of that update."""


def regrets(minimizer: minimizers.Minimizer) -> Learner:
    """A regret minimiser, fed with counterfactual regrets."""

    def init(legal: Bool[np.ndarray, "n width"], dtype: Any) -> Any:
        return minimizer.init(np.zeros(legal.shape[::-1], dtype))

    def learn(state: Any, seen: Evidence) -> tuple[Any, Float[Array, "n width"]]:
        received = jnp.sum(seen.acting * seen.values, axis=1, keepdims=True)
        state = minimizer.observe(state, jnp.where(seen.legal, seen.values - received, 0.0).T)
        return state, minimizer.policy(state, seen.legal.T).T

    return Learner(init, learn)


def table(
    learner: tally_learners.TallyLearner, *, scale: float = 1.0, weights: str = "counterfactual"
) -> Learner:
    """A table of logits: SPG, NeuRD or NeuRD-CIX in expectation, the state's exact value as the baseline.

    The tally of a rectangle has `visits` w(s) π(a), and `returns` w(s) π(a) (q(a) − v) / `scale`, with w the
    states' "realization" probability, as sampled updates have it on average, or the "counterfactual" one.
    """
    checks.one_of("weights", weights, ("realization", "counterfactual"))
    checks.positive("scale", scale)

    def seats(legal: Any) -> tally_learners.Seats:
        return tally_learners.Seats((len(legal),), tally_learners.Rows(legal), None)

    def init(legal: Bool[np.ndarray, "n width"], dtype: Any) -> Any:
        fresh = jax.eval_shape(functools.partial(learner.init, key=None), seats(legal))
        kinds = {leaf.dtype for leaf in jax.tree.leaves(fresh)}
        if kinds != {np.dtype(dtype)}:
            raise ValueError(f"the table must be of the arena's {np.dtype(dtype)}, but is of {kinds}.")
        return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), fresh)

    def tally(seen: Evidence) -> directions.Tally:
        # Not quite zero, so that an action whose probability underflows still has its share of the sum.
        limits = jnp.finfo(seen.acting.dtype)
        acting = jnp.where(seen.legal, jnp.maximum(seen.acting, limits.tiny / limits.eps), 0.0)
        share = acting if weights == "counterfactual" else seen.plan
        received = jnp.sum(acting * seen.values, axis=1, keepdims=True)
        gains = jnp.where(seen.legal, seen.values - received, 0.0) / scale
        return directions.Tally(share * gains, share * seen.reach[:, None], jnp.ones((), seen.acting.dtype))

    def learn(state: Any, seen: Evidence) -> tuple[Any, Float[Array, "n width"]]:
        state, _ = learner.update(seats(seen.legal), state, tally(seen), seen.updates)
        logits = learner.outputs(seats(seen.legal), state).logits
        return state, jax.vmap(policy.probabilities)(logits, seen.legal)

    def figures(state: Any, seen: Evidence) -> Figures:
        found = tally(seen)
        _, info = learner.update(seats(seen.legal), state, found, seen.updates)
        visits = jnp.sum(found.visits, axis=1)
        legal = jnp.sum(seen.legal, axis=1).astype(visits.dtype)
        return Figures(info, jnp.sum(visits), jnp.sum(visits * legal))

    return Learner(init, learn, figures)


class Seated(NamedTuple):
    """The learners of all agents, and how they act."""

    states: list[list[list[Any]]]
    """Of every rectangle of every level of every agent."""
    acting: evaluation.Profile


def loop(
    learner: Learner, *, average: loops.Weights, alternating: bool = True, figures: bool = False
) -> loops.Loop:
    """Self-play with exact values on a tree with perfect recall, in the precision of the arena.

    With `alternating`, an update is a turn of every agent, one after the other, against what those before
    have just become; else all move at once. Where nobody looks at `figures` they are not compiled.
    """

    def init(arena: Arena, *, key: types.Key | None = None) -> loops.State:
        del key  # nothing is drawn
        form: sequence_form.SequenceForm = jax.tree.map(np.asarray, arena.form)
        dtype = next(leaf.dtype for leaf in jax.tree.leaves(form) if leaf.dtype.kind == "f")
        legal = [[[_legal(source) for source in level.sources] for level in a.levels] for a in form.agents]
        rows = jax.tree.map(lambda piece: (piece / piece.sum(axis=1, keepdims=True)).astype(dtype), legal)
        plans = [
            evaluation.realization_plan(agent, pieces, np.zeros(0, dtype))
            for agent, pieces in zip(form.agents, rows, strict=True)
        ]
        states = jax.tree.map(lambda piece: learner.init(piece, dtype), legal)
        total = [np.zeros(len(plan) - 1) for plan in plans]
        zero, never = np.zeros((), np.int32), np.asarray(loops.NEVER, np.int32)
        info = learners.Info(*(np.zeros((), dtype) for _ in learners.Info._fields)) if figures else None
        fresh: Any = (Seated(states, evaluation.Profile(rows, plans)), total, zero, zero, never, info)
        return loops.State(*jax.device_put(fresh))

    def evidence(arena: Arena, seated: Seated, agent: int, updates: Int[Array, ""]) -> list[list[Evidence]]:
        """What there is to learn for one agent."""
        form, acting = arena.form.agents[agent], seated.acting
        gained = evaluation.rewards(arena.form, acting, agent)
        found = evaluation.counterfactual_values(arena.form, acting, gained, agent).action_values
        plan = evaluation.rectangles(form, acting.plans[agent][1:])
        # Learners that do not look at it leave it to the compiler to drop.
        reach = evaluation.arrival(arena.arrivals[agent], acting, agent)
        return [
            [
                Evidence(
                    found[depth][piece],
                    acting.rows[agent][depth][piece],
                    plan[depth][piece],
                    reach[arena.places[agent][depth][piece]],
                    _legal(source),
                    updates,
                )
                for piece, source in enumerate(level.sources)
            ]
            for depth, level in enumerate(form.levels)
        ]

    def after(arena: Arena, seated: Seated, seen: list[list[Evidence]], agent: int) -> Seated:
        """The agents, one of which has learnt."""
        learnt = [
            [learner.learn(*pair) for pair in zip(*level, strict=True)]
            for level in zip(seated.states[agent], seen, strict=True)
        ]
        states = [[state for state, _ in level] for level in learnt]
        rows = [[row for _, row in level] for level in learnt]
        acting = seated.acting
        plan = evaluation.realization_plan(arena.form.agents[agent], rows, acting.plans[agent])
        return Seated(
            _put(seated.states, agent, states),
            evaluation.Profile(_put(acting.rows, agent, rows), _put(acting.plans, agent, plan)),
        )

    def iteration(arena: Arena, state: loops.State, last: Bool[Array, ""]) -> loops.State:
        before: Seated = state.learner
        seated, info = before, state.info
        total = [
            average.add(old, plan[1:], state.updates)
            for old, plan in zip(state.total, before.acting.plans, strict=True)
        ]
        told = []
        for agent in range(len(before.acting.plans)):
            told.append(evidence(arena, seated if alternating else before, agent, state.updates))
            seated = after(arena, seated, told[-1], agent)
        if figures:
            # Nobody sees the figures of the other updates.
            info = jax.lax.cond(last, lambda: _joined(learner, before.states, told), lambda: state.info)
        return state._replace(learner=seated, total=total, updates=state.updates + 1, info=info)

    @functools.partial(jax.jit, compiler_options=_QUICKLY)
    def many(arena: Arena, state: loops.State, num_updates: Int[Array, ""]) -> loops.State:
        state = jax.lax.fori_loop(
            0, num_updates, lambda made, state: iteration(arena, state, made == num_updates - 1), state
        )
        # Policies that are no numbers stay so: one look at the end is enough.
        fine = jnp.all(jnp.stack([jnp.all(jnp.isfinite(plan)) for plan in state.learner.acting.plans]))
        fine |= state.diverged != loops.NEVER
        return state._replace(diverged=jnp.where(fine, state.diverged, state.updates - 1))

    def advance(arena: Arena, state: loops.State, num_updates: Any, key: types.Key | None) -> Any:
        del key
        return many(arena._replace(legal=None), state, num_updates)

    return loops.Loop(init, advance, _policies, _average)


def _joined(learner: Learner, states: Any, told: list[list[list[Evidence]]]) -> learners.Info:
    """The figures of all rectangles together."""
    assert learner.figures is not None, "a minimiser has none"
    seen, treedef = jax.tree.flatten(told, is_leaf=lambda leaf: isinstance(leaf, Evidence))
    found = jax.tree.map(
        lambda *parts: jnp.stack(parts), *map(learner.figures, treedef.flatten_up_to(states), seen)
    )
    share, entries = (each / jnp.sum(each) for each in (found.visits, found.entries))
    means = jax.tree.map(lambda each: jnp.sum(share * each), found.info)
    return means._replace(
        max_weight=jnp.max(found.info.max_weight),
        advantage_scale=jnp.sqrt(jnp.sum(entries * found.info.advantage_scale**2)),
    )


# On the host: to compile this would take longer than all that a run asks for.


def _policies(arena: Arena, state: loops.State) -> Float[np.ndarray, "S A"]:
    rows, plans = jax.tree.map(np.asarray, state.learner.acting)
    return _table(arena, [evaluation.flat(*pair) for pair in zip(rows, plans, strict=True)])


def _average(arena: Arena, state: loops.State) -> Float[np.ndarray, "S A"]:
    total = _table(arena, list(map(np.asarray, state.total)))
    mass = total.sum(axis=1, keepdims=True)
    uniform = arena.legal / arena.legal.sum(axis=1, keepdims=True)
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), uniform)


def _table(arena: Arena, slots: list[Float[np.ndarray, "_"]]) -> Float[np.ndarray, "S A"]:
    assert arena.form.slot is not None, "`arena_of` has asked"
    slot = np.asarray(arena.form.slot)
    return evaluation.table(arena.form._replace(slot=slot), slots)


def _legal(source: Any) -> Any:
    return source != sequence_form.ILLEGAL


def _put(parts: list[Any], index: int, part: Any) -> list[Any]:
    return [*parts[:index], part, *parts[index + 1 :]]
