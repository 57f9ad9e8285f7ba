"""Counterfactual regret minimisation: a minimiser at every information state, fed with exact values.

Regret matching makes it CFR (Zinkevich et al. 2007), regret matching+ CFR+ (Tammelin et al. 2015), its
predictive form PCFR+ (Farina et al. 2021). Everything stays in the slots of the sequence form. The plans that
values and averages need are made once, when a policy changes; an agent's turn computes its own half alone.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import minimizers, self_play, types
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


def arena_of(tree: trees.Tree, dtype: Any) -> Arena:
    """The arena of a tree; its real numbers, and all that is learnt, are of `dtype`."""
    form = sequence_form.build(tree, padding=_PADDING)
    if form.slot is None:
        raise ValueError(f"{tree.name} has no perfect recall, which minimisers at information states need.")

    def cast(leaf: np.ndarray) -> np.ndarray:
        return leaf.astype(dtype if leaf.dtype.kind == "f" else np.int32)

    return Arena(jax.device_put(jax.tree.map(cast, form)), np.asarray(tree.legal))


class Seated(NamedTuple):
    """The minimisers of all agents, and how they act."""

    states: list[list[list[Any]]]
    """Of every rectangle of every level of every agent, arms first."""
    acting: evaluation.Profile


def loop(
    minimizer: minimizers.Minimizer, *, average: self_play.Weights, alternating: bool = True
) -> self_play.Loop:
    """Self-play of minimisers on a tree with perfect recall, in the precision of the arena.

    With `alternating`, an update is a turn of every agent, one after the other, against what those before
    have just become; else all move at once.
    """

    def init(arena: Arena, *, key: types.Key | None = None) -> self_play.State:
        del key  # nothing is drawn
        form: sequence_form.SequenceForm = jax.tree.map(np.asarray, arena.form)
        dtype = next(leaf.dtype for leaf in jax.tree.leaves(form) if leaf.dtype.kind == "f")
        legal = [[[_legal(source) for source in level.sources] for level in a.levels] for a in form.agents]
        rows = jax.tree.map(lambda piece: (piece / piece.sum(axis=1, keepdims=True)).astype(dtype), legal)
        plans = [
            evaluation.realization_plan(agent, pieces, np.zeros(0, dtype))
            for agent, pieces in zip(form.agents, rows, strict=True)
        ]
        states = jax.tree.map(lambda piece: minimizer.init(np.zeros(piece.shape[::-1], dtype)), legal)
        total = [np.zeros(len(plan) - 1) for plan in plans]
        zero, never = np.zeros((), np.int32), np.asarray(self_play.NEVER, np.int32)
        fresh: Any = (Seated(states, evaluation.Profile(rows, plans)), total, zero, zero, never, None)
        return self_play.State(*jax.device_put(fresh))

    def one(form: sequence_form.SequenceForm, seated: Seated, agent: int) -> Seated:
        """After a turn of one agent."""
        acting = seated.acting
        gained = evaluation.rewards(form, acting, agent)
        found = evaluation.counterfactual_values(form, acting, gained, agent).action_values
        states: list[list[Any]] = []
        rows: evaluation.Rectangles = []
        for depth, level in enumerate(form.agents[agent].levels):
            states.append([])
            rows.append([])
            for piece, source in enumerate(level.sources):
                legal, values = _legal(source), found[depth][piece]
                received = jnp.sum(acting.rows[agent][depth][piece] * values, axis=1)
                regrets = jnp.where(legal, values - received[:, None], 0.0)
                states[-1].append(minimizer.observe(seated.states[agent][depth][piece], regrets.T))
                rows[-1].append(minimizer.policy(states[-1][-1], legal.T).T)
        plan = evaluation.realization_plan(form.agents[agent], rows, acting.plans[agent])
        return Seated(
            _put(seated.states, agent, states),
            evaluation.Profile(_put(acting.rows, agent, rows), _put(acting.plans, agent, plan)),
        )

    def iteration(form: sequence_form.SequenceForm, state: self_play.State) -> self_play.State:
        seated: Seated = state.learner
        before, agents = seated, range(len(form.agents))
        total = [
            average.add(old, plan[1:], state.updates)
            for old, plan in zip(state.total, before.acting.plans, strict=True)
        ]
        if alternating:
            for agent in agents:
                seated = one(form, seated, agent)
        else:
            turns = [one(form, before, agent) for agent in agents]
            seated = Seated(
                [turn.states[agent] for agent, turn in enumerate(turns)],
                evaluation.Profile(
                    [turn.acting.rows[agent] for agent, turn in enumerate(turns)],
                    [turn.acting.plans[agent] for agent, turn in enumerate(turns)],
                ),
            )
        return state._replace(learner=seated, total=total, updates=state.updates + 1)

    @functools.partial(jax.jit, compiler_options=_QUICKLY)
    def many(
        form: sequence_form.SequenceForm, state: self_play.State, num_updates: Int[Array, ""]
    ) -> self_play.State:
        state = jax.lax.fori_loop(0, num_updates, lambda _, state: iteration(form, state), state)
        # Policies that are no numbers stay so: one look at the end is enough.
        fine = jnp.all(jnp.stack([jnp.all(jnp.isfinite(plan)) for plan in state.learner.acting.plans]))
        fine |= state.diverged != self_play.NEVER
        return state._replace(diverged=jnp.where(fine, state.diverged, state.updates - 1))

    def advance(arena: Arena, state: self_play.State, num_updates: Any, key: types.Key | None) -> Any:
        del key
        return many(arena.form, state, num_updates)

    return self_play.Loop(init, advance, _policies, _average)


# On the host: to compile this would take longer than all that a run asks for.


def _policies(arena: Arena, state: self_play.State) -> Float[np.ndarray, "S A"]:
    rows, plans = jax.tree.map(np.asarray, state.learner.acting)
    return _table(arena, [evaluation.flat(*pair) for pair in zip(rows, plans, strict=True)])


def _average(arena: Arena, state: self_play.State) -> Float[np.ndarray, "S A"]:
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
