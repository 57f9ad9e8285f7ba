"""Counterfactual regret minimisation: a minimiser at every information state, fed with exact values.

Regret matching makes it CFR (Zinkevich et al. 2007), regret matching+ CFR+ (Tammelin et al. 2015), its
predictive form PCFR+ (Farina et al. 2021). Everything stays in the slots of the sequence form. The plans that
values and averages need are made once, when a policy changes; an agent's turn computes its own half alone.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import minimizers, self_play, types
from pohp_neurd.finite import evaluation, sequence_form


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

    def init(arena: self_play.Arena, *, key: types.Key | None = None) -> self_play.State:
        del key  # nothing is drawn
        if arena.form is None:
            raise ValueError("minimisers at information states need a tree with perfect recall.")
        form: sequence_form.SequenceForm = jax.tree.map(np.asarray, arena.form)
        dtype = _precision(form)
        legal = [[[_legal(source) for source in level.sources] for level in a.levels] for a in form.agents]
        rows = jax.tree.map(lambda piece: (piece / piece.sum(axis=1, keepdims=True)).astype(dtype), legal)
        plans = [
            evaluation.realization_plan(agent, pieces, dtype, np)
            for agent, pieces in zip(form.agents, rows, strict=True)
        ]
        states = jax.tree.map(lambda piece: minimizer.init(np.zeros(piece.shape[::-1], dtype)), legal)
        total = [np.zeros(len(plan) - 1, jnp.asarray(0.0, float).dtype) for plan in plans]
        zero = np.zeros((), np.int32)
        never = np.asarray(self_play.NEVER, np.int32)
        fresh: Any = (Seated(states, evaluation.Profile(rows, plans)), total, zero, zero, never, None)
        return self_play.State(*jax.tree.map(jnp.asarray, fresh))

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
        plan = evaluation.realization_plan(form.agents[agent], rows, acting.plans[agent].dtype)
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

    @jax.jit
    def advance(
        arena: self_play.Arena, state: self_play.State, num_updates: Int[Array, ""], key: types.Key | None
    ) -> self_play.State:
        del key
        assert arena.form is not None, "init has asked"
        form = arena.form
        state = jax.lax.fori_loop(0, num_updates, lambda _, state: iteration(form, state), state)
        # Policies that are no numbers stay so: one look at the end is enough.
        fine = jnp.all(jnp.isfinite(jnp.concatenate(state.learner.acting.plans)))
        fine |= state.diverged != self_play.NEVER
        return state._replace(diverged=jnp.where(fine, state.diverged, state.updates - 1))

    @jax.jit
    def policies(arena: self_play.Arena, state: self_play.State) -> Float[Array, "S A"]:
        assert arena.form is not None, "init has asked"
        acting = state.learner.acting
        dtype = acting.plans[0].dtype
        return evaluation.table(arena.form, [evaluation.flat(rows, dtype) for rows in acting.rows])

    return self_play.Loop(init, advance, policies, self_play.average_policy)


def _legal(source: Any) -> Any:
    return source != sequence_form.ILLEGAL


def _put(parts: list[Any], index: int, part: Any) -> list[Any]:
    return [*parts[:index], part, *parts[index + 1 :]]


def _precision(form: sequence_form.SequenceForm) -> Any:
    """The dtype of the form's real numbers."""
    return next(leaf.dtype for leaf in jax.tree.leaves(form) if leaf.dtype.kind == "f")
