"""Self-play with exact values in the slots of the sequence form: a learner at every information state.

Regret matching makes it CFR (Zinkevich et al. 2007), regret matching+ CFR+ (Tammelin et al. 2015), its
predictive form PCFR+ (Farina et al. 2021), a table of logits expected NeuRD-CIX. The plans that values and
averages need are made once, when a policy changes; an agent's turn computes its own half alone.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, directions, learners, loops, minimizers, policy, shaping, types
from pohp_neurd.finite import evaluation, sequence_form
from pohp_neurd.finite import tree as trees

_QUICKLY: Any = {"xla_cpu_use_fusion_emitters": False}
"""Halves the seconds of compilation. An update takes a fifth longer in a small game, no longer in a large."""

_LARGE = 10_000  # information states

_PADDING = 512
"""Takes another fifth or more of them, for nothing."""


class Arena(NamedTuple):
    """What is played on."""

    form: sequence_form.SequenceForm
    legal: Bool[Any, "S A"]
    widths: list[list["Width"]]
    """Of every agent."""


class Width(NamedTuple):
    """All states of one agent with a certain number of slots: the rectangles of that width, in a row.

    Actions come first here: what is done to all states at once then runs along the memory.
    """

    legal: Bool[Any, "width n"]
    arrivals: sequence_form.Sums
    """Over the histories of each state."""
    place: Int[Any, "n"]
    """Of the states among those sums."""


def arena_of(tree: trees.Tree, dtype: Any) -> Arena:
    """The arena of a tree; its real numbers, and all that is learnt, are of `dtype`."""
    laid_out = sequence_form.layout(tree, padding=_PADDING)
    form = sequence_form.build(tree, laid_out=laid_out)
    if form.slot is None:
        raise ValueError(
            f"{tree.name} has no perfect recall, which expected updates and average policies need."
        )
    entries = [by_width(agent, evaluation.rectangles(agent, agent.entry)) for agent in form.agents]
    states = [[entry.max(axis=0) // tree.num_actions for entry in each] for each in entries]
    arrivals = sequence_form.arrivals(tree, list(itertools.chain.from_iterable(states)), laid_out)
    sums, start = iter(arrivals.sums), 0
    widths: list[list[Width]] = []
    for agent, each in enumerate(entries):
        widths.append([])
        for entry, members in zip(each, states[agent], strict=True):
            widths[-1].append(Width(entry >= 0, next(sums), arrivals.place[members] - start))
            start += len(members)

    def cast(leaf: np.ndarray) -> np.ndarray:
        return leaf if leaf.dtype == bool else leaf.astype(dtype if leaf.dtype.kind == "f" else np.int32)

    return jax.device_put(jax.tree.map(cast, Arena(form, np.asarray(tree.legal), widths)))


def by_width(agent: sequence_form.AgentForm, pieces: list[list[Any]]) -> list[Any]:
    """An agent's rectangles, those of one width in a row: little to compile, and much done at once."""
    groups = [[pieces[depth][piece] for depth, piece in each] for each in _alike(agent)]
    numpy: Any = jnp if groups and isinstance(groups[0][0], Array) else np
    return [numpy.concatenate(group).T for group in groups]


def rectangles(agent: sequence_form.AgentForm, joined: list[Any]) -> list[list[Any]]:
    """The inverse of `by_width`."""
    pieces: list[list[Any]] = [[None] * len(level.sources) for level in agent.levels]
    for rows, places in zip(joined, _alike(agent), strict=True):
        start = 0
        for depth, piece in places:
            stop = start + len(agent.levels[depth].sources[piece])
            pieces[depth][piece] = rows[:, start:stop].T
            start = stop
    return pieces


def _alike(agent: sequence_form.AgentForm) -> list[list[tuple[int, int]]]:
    """The levels and places of all rectangles, in groups of one width."""
    groups: dict[int, list[tuple[int, int]]] = {}
    for depth, level in enumerate(agent.levels):
        for piece, source in enumerate(level.sources):
            groups.setdefault(source.shape[1], []).append((depth, piece))
    return list(groups.values())


class Evidence(NamedTuple):
    """What a turn has to say of states of one width."""

    values: Float[Array, "width n"]
    """Counterfactual, of the actions; 0 where there is none."""
    acting: Float[Array, "width n"]
    """The policy that they are of."""
    plan: Callable[[], Float[Array, "width n"]]
    """The same, times the probability that the agent's own actions lead to the state; made for who asks."""
    reach: Callable[[], Float[Array, "n"]]
    """The probability with which chance and the others do; likewise."""
    legal: Bool[Array, "width n"]
    updates: Int[Array, ""]
    """Before this one."""


class Figures(NamedTuple):
    """What there is to plot of states of one width, with the weights to join it to others."""

    info: learners.Info
    visits: Float[Array, ""]
    entries: Float[Array, ""]
    """Visits times legal actions."""


class Learner(NamedTuple):
    """What learns at the states of one width, as pure functions."""

    init: Callable[[Bool[np.ndarray, "width n"], Any], Any]
    """(legal, dtype) -> a fresh state, whose policy is uniform."""
    learn: Callable[[Any, Evidence], tuple[Any, Float[Array, "width n"]]]
    """(state, evidence) -> the next state, and its policy."""
    figures: Callable[[Any, Evidence], Figures] | None = None
    """(state, evidence) -> what is to be plotted of that update."""


def regrets(minimizer: minimizers.Minimizer) -> Learner:
    """A regret minimiser, fed with counterfactual regrets."""

    def init(legal: Bool[np.ndarray, "width n"], dtype: Any) -> Any:
        return minimizer.init(np.zeros(legal.shape, dtype))

    def learn(state: Any, seen: Evidence) -> tuple[Any, Float[Array, "width n"]]:
        received = jnp.sum(seen.acting * seen.values, axis=0)
        state = minimizer.observe(state, jnp.where(seen.legal, seen.values - received[None], 0.0))
        return state, minimizer.policy(state, seen.legal)

    return Learner(init, learn)


class Table(NamedTuple):
    """What a table remembers."""

    logits: Float[Array, "width n"]
    magnet: Float[Array, "width n"] | None


def table(
    rule: directions.Rule,
    *,
    step_size: float | types.Schedule,
    magnet: shaping.Magnet | None = None,
    threshold: float | None = None,
    entropy_cost: float = 0.0,
    average_over: str = "visits",
    scale: float = 1.0,
    weights: str = "counterfactual",
) -> Learner:
    """A table of logits: SPG, NeuRD or NeuRD-CIX in expectation, the state's exact value as the baseline.

    It is `tally_learners.table` without a baseline, on a tally with `visits` w(s) π(a) and `returns`
    w(s) π(a) (q(a) − v) / `scale`.

    Args:
      rule: see `tally_learners.table`, as for the next five.
      step_size: α.
      magnet: the pull to a reference.
      threshold: on logits.
      entropy_cost: of the pull to the uniform policy.
      average_over: "visits" or "episodes".
      scale: returns are divided by this.
      weights: w is a state's "realization" probability, as sampled updates have it on average, or the
        "counterfactual" one, as CFR has it.

    Returns:
      The learner.
    """
    checks.one_of("average_over", average_over, ("episodes", "visits"))
    checks.one_of("weights", weights, ("realization", "counterfactual"))
    checks.positive("scale", scale)
    if not callable(step_size):
        checks.non_negative("step_size", step_size)
    common_mode = "paper" if threshold is None else "dropped"
    shape = shaping.shape(common_mode=common_mode, entropy_cost=entropy_cost, threshold=threshold)
    add = jax.vmap(directions.summed_direction, in_axes=(None, 1, 1, 1, None), out_axes=1)
    shaped = jax.vmap(shape, in_axes=(1, shaping.Row(1, 1, None, None, 0)), out_axes=1)

    def init(legal: Bool[np.ndarray, "width n"], dtype: Any) -> Table:
        zeros: Any = np.zeros(legal.shape, dtype)
        return Table(zeros, None if magnet is None else zeros)

    def follow(state: Table, seen: Evidence) -> tuple[Array, Array, Array]:
        """The visits of every state, the sum of their directions, and the exploration."""
        share, reach = seen.acting, seen.reach()
        # What is hardly a number is no measure of anything: nobody comes there.
        visits = jnp.where(reach >= _least(share.dtype), reach, 0.0)
        if weights == "realization":
            share = seen.plan()
            visits = visits * jnp.sum(share, axis=0)
        received = jnp.sum(seen.acting * seen.values, axis=0)
        gains = jnp.where(seen.legal & (visits > 0)[None], seen.values - received[None], 0.0) / scale
        exploration = jnp.asarray(directions.read(rule.exploration, seen.updates), share.dtype)
        direction = add(rule, seen.acting, share * gains, seen.legal, exploration)
        row = shaping.Row(state.logits, seen.legal, None, seen.updates, visits)
        return visits, shaped(direction, row), exploration

    def learn(state: Table, seen: Evidence) -> tuple[Table, Float[Array, "width n"]]:
        visits, direction, _ = follow(state, seen)
        dtype = visits.dtype
        size = jnp.asarray(directions.read(step_size, seen.updates), dtype)
        divisor = jnp.where(visits > 0, visits, 1.0) if average_over == "visits" else jnp.ones_like(visits)
        logits, reference = state.logits + size * direction / divisor[None], state.magnet
        if magnet is not None and reference is not None:
            strength = jnp.asarray(directions.read(magnet.strength, seen.updates), dtype)
            logits = shaping.pulled(logits, reference, (size * strength * visits / divisor)[None])
        # Only differences count. A probability that underflows would leave an action no share in the sums
        # that correct for it.
        best = jnp.max(jnp.where(seen.legal, logits, jnp.finfo(dtype).min), axis=0)
        logits = jnp.where(seen.legal, jnp.maximum(logits - best[None], np.log(_least(dtype))), 0.0)
        if magnet is not None and reference is not None:
            speed = jnp.asarray(directions.read(magnet.speed, seen.updates), dtype)
            reference = reference + speed * (logits - reference)
        return Table(logits, reference), jax.vmap(policy.probabilities, 1, 1)(logits, seen.legal)

    def figures(state: Table, seen: Evidence) -> Figures:
        visits, direction, exploration = follow(state, seen)
        legal = jnp.sum(seen.legal, axis=0).astype(visits.dtype)
        entries = jnp.sum(visits * legal)
        means = direction / jnp.where(visits > 0, visits, 1.0)[None]
        square = jnp.sum(visits[None] * means**2) / jnp.where(entries > 0, entries, 1.0)
        entropy = jax.vmap(policy.entropy, 1)(state.logits, seen.legal)
        counts, chances, surprise = map(
            jnp.ravel,
            (visits[None] * seen.acting, seen.acting, jnp.broadcast_to(entropy[None], means.shape)),
        )
        info = learners.info_of(counts, chances, surprise, square, exploration)
        return Figures(info, jnp.sum(visits), entries)

    return Learner(init, learn, figures)


def _least(dtype: Any) -> Any:
    """The least probability that can be multiplied with others and corrected for."""
    return jnp.finfo(dtype).tiny / jnp.finfo(dtype).eps


class Seated(NamedTuple):
    """The learners of all agents, and how they act."""

    states: list[list[Any]]
    """Of every agent, of every width."""
    rows: list[list[Float[Array, "width n"]]]
    """The policy, likewise."""
    plans: list[Float[Array, "_"]]
    """What it comes to, as an `evaluation.Profile` has it."""


def loop(
    learner: Learner, *, average: loops.Weights, alternating: bool = True, figures: bool = False
) -> loops.Loop:
    """Self-play with exact values on a tree with perfect recall, in the precision of the arena.

    With `alternating`, an update is a turn of every agent, one after the other, against what those before
    have just become; else all move at once. Where nobody looks at `figures` they are not compiled.
    """

    def init(arena: Arena, *, key: types.Key | None = None) -> loops.State:
        del key  # nothing is drawn
        form, widths = jax.tree.map(np.asarray, (arena.form, arena.widths))
        dtype = next(leaf.dtype for leaf in jax.tree.leaves(form) if leaf.dtype.kind == "f")
        legal = [[width.legal for width in each] for each in widths]
        uniform = jax.tree.map(lambda each: (each / each.sum(axis=0)).astype(dtype), legal)
        plans = [
            evaluation.realization_plan(agent, rectangles(agent, rows), np.zeros(0, dtype))
            for agent, rows in zip(form.agents, uniform, strict=True)
        ]
        states = jax.tree.map(lambda each: learner.init(each, dtype), legal)
        total = [np.zeros(len(plan) - 1) for plan in plans]
        zero, never = np.zeros((), np.int32), np.asarray(loops.NEVER, np.int32)
        none: list[Any] = [np.zeros((), dtype) for _ in learners.Info._fields]
        info = learners.Info(*none) if figures else None
        fresh: Any = (Seated(states, uniform, plans), total, zero, zero, never, info)
        return loops.State(*jax.device_put(fresh))

    def evidence(arena: Arena, seated: Seated, agent: int, updates: Any) -> list[Evidence]:
        """What there is to learn for one agent."""
        form, rows, plans = arena.form.agents[agent], seated.rows[agent], seated.plans
        gained = evaluation.rewards(arena.form, plans, agent)
        found = evaluation.counterfactual_values(arena.form, rectangles(form, rows), gained, agent)
        values = by_width(form, found.action_values)

        def plan(place: int) -> Float[Array, "width n"]:
            return by_width(form, evaluation.rectangles(form, plans[agent][1:]))[place]

        def reach(width: Width) -> Float[Array, "n"]:
            return evaluation.at(evaluation.arrival(width.arrivals, plans, agent), width.place)

        return [
            Evidence(
                *(values[place], rows[place]),
                *(functools.partial(plan, place), functools.partial(reach, width)),
                *(width.legal, updates),
            )
            for place, width in enumerate(arena.widths[agent])
        ]

    def after(arena: Arena, seated: Seated, seen: list[Evidence], agent: int) -> Seated:
        """The agents, one of which has learnt."""
        learnt = [
            learner.learn(state, each) if len(each.legal) > 1 else (state, each.acting)  # no choice
            for state, each in zip(seated.states[agent], seen, strict=True)
        ]
        rows = [row for _, row in learnt]
        form = arena.form.agents[agent]
        plan = evaluation.realization_plan(form, rectangles(form, rows), seated.plans[agent])
        return Seated(
            _put(seated.states, agent, [state for state, _ in learnt]),
            _put(seated.rows, agent, rows),
            _put(seated.plans, agent, plan),
        )

    def iteration(arena: Arena, state: loops.State, last: Bool[Array, ""]) -> loops.State:
        before: Seated = state.learner
        seated, info = before, state.info
        total = [
            average.add(old, plan[1:], state.updates)
            for old, plan in zip(state.total, before.plans, strict=True)
        ]
        told = []
        for agent in range(len(before.plans)):
            told.append(evidence(arena, seated if alternating else before, agent, state.updates))
            seated = after(arena, seated, told[-1], agent)
        if figures:
            # Nobody sees the figures of the other updates.
            info = jax.lax.cond(last, lambda: _joined(learner, before.states, told), lambda: state.info)
        return state._replace(learner=seated, total=total, updates=state.updates + 1, info=info)

    def many(arena: Arena, state: loops.State, num_updates: Int[Array, ""]) -> loops.State:
        def body(made: Int[Array, ""], state: loops.State) -> loops.State:
            # Functions of jax.numpy are jitted one by one, and tracing each apart takes half as long again.
            with jax.disable_jit():
                return iteration(arena, state, made == num_updates - 1)

        state = jax.lax.fori_loop(0, num_updates, body, state)
        # Policies that are no numbers stay so: one look at the end is enough.
        fine = jnp.all(jnp.stack([jnp.all(jnp.isfinite(plan)) for plan in state.learner.plans]))
        fine |= state.diverged != loops.NEVER
        return state._replace(diverged=jnp.where(fine, state.diverged, state.updates - 1))

    quickly, fully = jax.jit(many, compiler_options=_QUICKLY), jax.jit(many)

    def advance(arena: Arena, state: loops.State, num_updates: Any, key: types.Key | None) -> Any:
        del key
        return (quickly if len(arena.legal) > _LARGE else fully)(arena, state, num_updates)

    return loops.Loop(init, advance, _policies, _average)


def _joined(learner: Learner, states: list[list[Any]], told: list[list[Evidence]]) -> learners.Info:
    """The figures of all agents and widths together."""
    assert learner.figures is not None, "a minimiser has none"
    pairs = [pair for each in zip(states, told, strict=True) for pair in zip(*each, strict=True)]
    found = jax.tree.map(lambda *parts: jnp.stack(parts), *(learner.figures(*pair) for pair in pairs))
    share, entries = (each / jnp.sum(each) for each in (found.visits, found.entries))
    means = jax.tree.map(lambda each: jnp.sum(share * each), found.info)
    return means._replace(
        max_weight=jnp.max(found.info.max_weight),
        advantage_scale=jnp.sqrt(jnp.sum(entries * found.info.advantage_scale**2)),
    )


# On the host: to compile this would take longer than all that a run asks for.


def _policies(arena: Arena, state: loops.State) -> Float[np.ndarray, "S A"]:
    form, seated = jax.tree.map(np.asarray, (arena.form, state.learner))
    parts = zip(form.agents, seated.rows, seated.plans, strict=True)
    return _table(arena, [evaluation.flat(rectangles(agent, rows), plan) for agent, rows, plan in parts])


def _average(arena: Arena, state: loops.State) -> Float[np.ndarray, "S A"]:
    total = _table(arena, list(map(np.asarray, state.total)))
    mass = total.sum(axis=1, keepdims=True)
    legal = np.asarray(arena.legal)
    uniform = legal / legal.sum(axis=1, keepdims=True)
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), uniform)


def _table(arena: Arena, slots: list[Float[np.ndarray, "_"]]) -> Float[np.ndarray, "S A"]:
    assert arena.form.slot is not None, "`arena_of` has asked"
    slot = np.asarray(arena.form.slot)
    return evaluation.table(arena.form._replace(slot=slot), slots)


def _put(parts: list[Any], index: int, part: Any) -> list[Any]:
    return [*parts[:index], part, *parts[index + 1 :]]
