"""From an estimate to a direction: how each logit should move, by SPG, NeuRD and NeuRD-CIX.

Pipeline: estimate -> **direction** -> shaping. A direction is a function of one decision, and linear in its
return: so it has a closed form for the sum over many decisions at one agent state.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from pohp_neurd import checks, estimators, types


class Decision(NamedTuple):
    """One decision as a learner sees it; a batch has a leading axis on every field."""

    agent_state: Any
    legal: types.Mask
    action: types.Action
    probability: types.Scalar
    """π(A) when A was drawn. NeuRD-CIX corrects for this one, so a step that is learnt from later than
    it was taken keeps it; SPG needs none, and uses the policy at the time of the update."""
    return_: types.Scalar
    """G, shifted so that it is never positive."""
    baseline: types.Scalar = 0.0
    """V, subtracted from the return; a constant to the gradient."""
    weight: types.Scalar = 1.0
    """The decision's share in the update: 0 for padding, 1 / B for a mean over B."""
    target: types.Scalar = 0.0
    """What the critic should have said; used by models with a critic only."""


class Tally(NamedTuple):
    """What a batch of episodes under one policy has to say of each agent state and action.

    Every direction is linear in the return, and an action's probability at a state is the same throughout
    the batch, so a learner that updates once from the batch loses nothing by these sums.
    """

    returns: Float[Array, "S A"]
    """The sum of the returns that followed the action."""
    visits: Float[Array, "S A"]
    """How often it was taken."""
    episodes: Float[Array, ""]
    """How many episodes the sums are over."""
    probabilities: Float[Array, "S A"] | None = None
    """What the actions were drawn from; None for the policy of whoever learns."""


Direction = Callable[[Float[Array, "A"], Decision, types.Scalar], Float[Array, "A"]]
"""(probabilities now, decision, exploration) -> how each logit should move."""


def spg_direction(
    probabilities: types.Probabilities, decision: Decision, exploration: types.Scalar = 1.0
) -> Float[Array, "A"]:
    """Softmax policy gradient: (G − V) (1{a = A} − π(a)), Morrill et al. (2022), Eq. 3.

    The importance correction 1 / π(A) and the π(A) of the softmax's gradient cancel, so `exploration`
    has no influence.

    >>> decision = Decision(None, jnp.ones(2, bool), 0, 0.25, -1.0)
    >>> spg_direction(jnp.array([0.25, 0.75]), decision).tolist()
    [-0.75, 0.75]
    """
    del exploration
    probabilities = jnp.asarray(probabilities)
    taken = jax.nn.one_hot(decision.action, probabilities.shape[0], dtype=probabilities.dtype)
    scale = jnp.asarray(decision.return_ - decision.baseline, dtype=probabilities.dtype)
    return jnp.where(decision.legal, scale * (taken - probabilities), 0.0)


def neurd_cix_direction(
    probabilities: types.Probabilities, decision: Decision, exploration: types.Scalar
) -> Float[Array, "A"]:
    """NeuRD-CIX: (G − V) / β · (1{a = A} − π(A)), Morrill et al. (2022), Eq. 9.

    NeuRD (Eq. 6) at exploration 0. At exploration 1 (Eq. 10), and with the state's value as the
    baseline, its expectation differs from SPG's only by a part that is common to all actions.

    >>> decision = Decision(None, jnp.ones(2, bool), 0, 0.25, -1.0)
    >>> neurd_cix_direction(jnp.array([0.25, 0.75]), decision, 0.25).tolist()
    [-1.5, 0.5]
    """
    del probabilities
    return estimators.sampled_advantages(
        decision.return_,
        decision.action,
        decision.probability,
        decision.legal,
        exploration,
        baseline=decision.baseline,
    )


Summed = Callable[[Float[Array, "A"], Float[Array, "A"], types.Mask, types.Scalar], Float[Array, "A"]]
"""(probabilities, Σ (G − V) after each action, legal, exploration) -> the sum of the directions."""


def spg_summed(
    probabilities: types.Probabilities,
    sums: Float[Array, "A"],
    legal: types.Mask,
    exploration: types.Scalar = 1.0,
) -> Float[Array, "A"]:
    """The sum of `spg_direction` over many decisions at one agent state, under one policy.

    >>> spg_summed(jnp.array([0.25, 0.75]), jnp.array([-1.0, 0.0]), jnp.ones(2, bool)).tolist()
    [-0.75, 0.75]
    """
    del exploration
    return jnp.where(legal, sums - jnp.sum(sums) * probabilities, 0.0)


def neurd_cix_summed(
    probabilities: types.Probabilities,
    sums: Float[Array, "A"],
    legal: types.Mask,
    exploration: types.Scalar,
) -> Float[Array, "A"]:
    """The sum of `neurd_cix_direction` over many decisions at one agent state, drawn from `probabilities`.

    >>> sums = jnp.array([-1.0, 0.0])
    >>> neurd_cix_summed(jnp.array([0.25, 0.75]), sums, jnp.ones(2, bool), 0.25).tolist()
    [-1.5, 0.5]
    """
    return _summed(estimators.cix_weight, probabilities, sums, legal, exploration)


def _summed(
    weight: Callable[..., Float[Array, ""]],
    probabilities: types.Probabilities,
    sums: Float[Array, "A"],
    legal: types.Mask,
    exploration: types.Scalar,
) -> Float[Array, "A"]:
    estimates = sums * jax.vmap(weight, in_axes=(0, None))(probabilities, exploration)
    return jnp.where(legal, estimates - jnp.sum(probabilities * estimates), 0.0)


@dataclasses.dataclass(frozen=True)
class Rule:
    """An algorithm's direction, with its exploration over time."""

    direction: Direction
    exploration: types.Schedule
    summed: Summed | None = None
    """The closed form of `summed_direction`, where there is one."""


def spg() -> Rule:
    """Softmax policy gradient (REINFORCE; Williams 1992)."""
    return Rule(spg_direction, constant(1.0), spg_summed)


def neurd() -> Rule:
    """Neural replicator dynamics (Hennes et al. 2020), sampled: NeuRD-CIX without exploration."""
    return Rule(neurd_cix_direction, constant(0.0), neurd_cix_summed)


def neurd_cix(exploration: float | types.Schedule) -> Rule:
    """NeuRD with capped implicit exploration, constant or by any schedule in optax's form."""
    schedule = exploration if callable(exploration) else constant(exploration)
    return Rule(neurd_cix_direction, schedule, neurd_cix_summed)


def neurd_ix(exploration: float | types.Schedule) -> Rule:
    """NeuRD with implicit exploration that is not capped: returns are divided by π(A) + η."""

    def direction(
        probabilities: types.Probabilities, decision: Decision, exploration: types.Scalar
    ) -> Float[Array, "A"]:
        del probabilities
        return estimators.sampled_advantages(
            *(decision.return_, decision.action, decision.probability, decision.legal, exploration),
            baseline=decision.baseline,
            weight=estimators.ix_weight,
        )

    schedule = exploration if callable(exploration) else constant(exploration)
    return Rule(direction, schedule, functools.partial(_summed, estimators.ix_weight))


def summed_direction(
    rule: Rule,
    probabilities: types.Probabilities,
    sums: Float[Array, "A"],
    legal: types.Mask,
    exploration: types.Scalar,
) -> Float[Array, "A"]:
    """The sum of a rule's directions over many decisions at one agent state.

    Args:
      rule: the algorithm; linear in G − V, so that nothing but the sums is needed of the decisions.
      probabilities: of the actions, which the decisions were drawn from.
      sums: Σ (G − V) after each action.
      legal: which actions are.
      exploration: η.

    Returns:
      How each logit should move, for all the decisions together.
    """
    if rule.summed is not None:
        return rule.summed(probabilities, sums, legal, exploration)

    def of_one_action(action: Array) -> Float[Array, "A"]:
        decision = Decision(None, legal, action, probabilities[action], sums[action])
        return rule.direction(jnp.asarray(probabilities), decision, exploration)

    return jnp.sum(jax.vmap(of_one_action)(jnp.arange(sums.shape[0])), axis=0)


def corrected(tally: Tally, acting: Float[Array, "S A"], legal: Bool[types.ArrayLike, "S A"]) -> Tally:
    """The tally as if its actions had been drawn from `acting`, π: returns count π(a) / μ(a).

    NeuRD-CIX then divides by β of π. So an action that π hardly ever takes moves its logit little, however
    often play tries it, and the current policy settles; with β of μ it does not.
    """
    if tally.probabilities is None:
        return tally
    # Not quite zero, so that an action whose probability underflows still has its share of the sum.
    limits = jnp.finfo(acting.dtype)
    acting = jnp.where(legal, jnp.maximum(acting, limits.tiny / limits.eps), 0.0)
    drawn = tally.probabilities
    ratio = acting / jnp.where(drawn > 0, drawn, 1.0)
    return tally._replace(returns=tally.returns * ratio, probabilities=acting)


def regrets(estimator: str, exploration: float | types.Schedule) -> Rule:
    """What a regret minimiser is told: that which NeuRD would add to its logits, by "cix" or "ix" weights."""
    checks.one_of("estimator", estimator, checks.ESTIMATORS)
    return neurd_ix(exploration) if estimator == "ix" else neurd_cix(exploration)


def rule(name: str, exploration: float | types.Schedule) -> Rule:
    """The rule that flags call `spg`, `neurd` or `neurd_cix`; only the last looks at `exploration`."""
    checks.one_of("learner", name, checks.LEARNERS)
    if name == "neurd_cix":
        return neurd_cix(exploration)
    return spg() if name == "spg" else neurd()


def read(value: float | types.Schedule, count: Any) -> Any:
    """`value` at update `count`, where it is a schedule; optax multiplies whole numbers with reals."""
    with jax.numpy_dtype_promotion("standard"):
        return value(count) if callable(value) else value


def decaying(value: types.Scalar, *, power: float, start: float) -> types.Schedule:
    """`value` / (1 + t / start)^power at update t = 0, 1, …: constant at power 0; as precise as `value`.

    >>> float(decaying(2.0, power=0.5, start=10.0)(30))
    1.0
    """
    checks.non_negative("power", power)
    checks.positive("start", start)
    kind = getattr(value, "dtype", jnp.float32)
    return lambda count: value * (1.0 + jnp.asarray(count, kind) / start) ** -power


def constant(value: float) -> types.Schedule:
    """The same exploration at every update."""
    checks.in_unit_interval("exploration", value)
    return lambda count: value


def theorem1_exploration(xi: float, num_actions: int) -> types.Schedule:
    """The schedule of Theorem 1: η_t = ξ / √(|A| t) at update t = 1, 2, …, and never above 1.

    >>> float(theorem1_exploration(1.0, 4)(15))
    0.125
    """
    checks.positive("xi", xi)
    if num_actions < 1:
        raise ValueError(f"num_actions must be at least 1, but is {num_actions}.")
    return lambda count: jnp.minimum(1.0, xi / jnp.sqrt(num_actions * (jnp.asarray(count, float) + 1.0)))
