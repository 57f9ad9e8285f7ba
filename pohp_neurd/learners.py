"""From an estimate to parameters: the directions of SPG, NeuRD and NeuRD-CIX, and one optax update.

Pipeline: estimate -> **direction -> parameters**. A direction says, for one decision, how each logit should
move; the parameters follow through one pseudo-loss, θ ← θ + α Σ_a direction(a) ∇f(s, a; θ). The learner
does not know whether a table or a network made the logits, nor where the return came from.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import checks, estimators, policy, regularisation, types


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
    estimates = sums * jax.vmap(estimators.cix_weight, in_axes=(0, None))(probabilities, exploration)
    return jnp.where(legal, estimates - jnp.sum(probabilities * estimates), 0.0)


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


def summed_direction(
    rule: Rule,
    probabilities: types.Probabilities,
    sums: Float[Array, "A"],
    legal: types.Mask,
    exploration: types.Scalar,
) -> Float[Array, "A"]:
    """The sum of a rule's directions over many decisions at one agent state, drawn from `probabilities`.

    `sums` are Σ (G − V) after each action. Every direction is linear in G − V, so nothing but these sums
    is needed of the decisions.
    """
    if rule.summed is not None:
        return rule.summed(probabilities, sums, legal, exploration)

    def of_one_action(action: Array) -> Float[Array, "A"]:
        decision = Decision(None, legal, action, probabilities[action], sums[action])
        return rule.direction(jnp.asarray(probabilities), decision, exploration)

    return jnp.sum(jax.vmap(of_one_action)(jnp.arange(sums.shape[0])), axis=0)


def rule(name: str, exploration: float | types.Schedule) -> Rule:
    """The rule that flags call `spg`, `neurd` or `neurd_cix`; only the last looks at `exploration`."""
    checks.one_of("learner", name, ("spg", "neurd", "neurd_cix"))
    if name == "neurd_cix":
        return neurd_cix(exploration)
    return spg() if name == "spg" else neurd()


def sgd(step_size: float | types.Schedule) -> optax.GradientTransformation:
    """Plain steps: in a table, exactly the paper's update."""
    if not callable(step_size):
        checks.non_negative("step_size", step_size)
    return optax.sgd(step_size)


class State(NamedTuple):
    """What must persist between updates."""

    parameters: types.Parameters
    optimizer: optax.OptState
    updates: Int[Array, ""]
    magnet: types.Parameters | None


class Info(NamedTuple):
    """What a researcher plots; means are over the decisions of positive weight."""

    entropy: Float[Array, ""]
    mean_weight: Float[Array, ""]
    """Mean of the importance correction 1 / β."""
    max_weight: Float[Array, ""]
    capped: Float[Array, ""]
    """Fraction of decisions at which the cap of CIX was active."""
    advantage_scale: Float[Array, ""]
    """Root mean square of the directions' entries."""
    exploration: Float[Array, ""]


@runtime_checkable
class Update(Protocol):
    """One update from a batch of decisions."""

    def __call__(self, state: State, decisions: Decision) -> tuple[State, Info]: ...


class Learner(NamedTuple):
    """A learning algorithm as two pure functions."""

    init: Callable[[types.Parameters], State]
    update: Update


def pseudo_loss(logits: types.Logits, direction: Float[Array, "A"]) -> Float[Array, ""]:
    """A number whose gradient, downhill, is Σ_a direction(a) ∇f(s, a; θ); its value means nothing."""
    return -jnp.sum(jax.lax.stop_gradient(direction) * logits)


def learner(
    apply: policy.Apply,
    rule: Rule,
    optimizer: optax.GradientTransformation,
    *,
    common_mode: str = "paper",
    threshold: float | None = None,
    magnet: regularisation.Magnet | None = None,
    critic_cost: float = 1.0,
) -> Learner:
    """A learner for the model `apply`, with the algorithm `rule` and any optax optimizer.

    `common_mode="dropped"` centres every direction over the legal actions. In a table that changes no
    policy; in a network it keeps a move that is common to all actions from leaking through shared
    weights. A model with a critic also descends ½ (target − V)² times `critic_cost`.
    """
    checks.one_of("common_mode", common_mode, ("paper", "dropped"))
    checks.non_negative("critic_cost", critic_cost)
    if threshold is not None:
        checks.positive("threshold", threshold)

    def init(parameters: types.Parameters) -> State:
        # A copy: a caller that donates the state's buffers to jit may not donate one of them twice.
        reference = None if magnet is None else jax.tree.map(jnp.array, parameters)
        return State(parameters, optimizer.init(parameters), jnp.zeros((), jnp.int32), reference)

    def loss_of_one(
        parameters: types.Parameters, reference: types.Parameters, settings: _Settings, decision: Decision
    ) -> tuple[Array, tuple[Array, Array]]:
        output = apply(parameters, decision.agent_state)
        logits = jax.lax.stop_gradient(output.logits)
        checks.shape("legal", decision.legal, logits.shape)
        probabilities = policy.probabilities(logits, decision.legal)
        direction = rule.direction(probabilities, decision, settings.exploration)
        if common_mode == "dropped":
            direction = policy.centred(direction, decision.legal)
        if magnet is not None:
            magnet_logits = apply(reference, decision.agent_state).logits
            pull = regularisation.magnet_pull(logits, magnet_logits, decision.legal)
            direction = direction + settings.magnet_strength * pull
        if threshold is not None:
            direction = regularisation.thresholded(direction, logits, decision.legal, threshold)
        loss = pseudo_loss(output.logits, direction)
        if output.value is not None:
            loss = loss + critic_cost * 0.5 * (decision.target - output.value) ** 2
        return decision.weight * loss, (direction, policy.entropy(logits, decision.legal))

    def loss_of_all(
        parameters: types.Parameters, reference: types.Parameters, settings: _Settings, decisions: Decision
    ) -> tuple[Array, tuple[Array, Array]]:
        batched = jax.vmap(loss_of_one, in_axes=(None, None, None, 0))
        losses, aux = batched(parameters, reference, settings, decisions)
        return jnp.sum(losses), aux

    def update(state: State, decisions: Decision) -> tuple[State, Info]:
        decisions = _batch(decisions)
        dtype = decisions.probability.dtype
        # optax counts updates in whole numbers and multiplies them with reals.
        with jax.numpy_dtype_promotion("standard"):
            strength = 0.0 if magnet is None else _read(magnet.strength, state.updates)
            settings = _Settings(
                jnp.asarray(rule.exploration(state.updates), dtype), jnp.asarray(strength, dtype)
            )
        gradient, (directions, entropies) = jax.grad(loss_of_all, has_aux=True)(
            state.parameters, state.magnet, settings, decisions
        )
        with jax.numpy_dtype_promotion("standard"):
            steps, optimizer_state = optimizer.update(gradient, state.optimizer, state.parameters)
        parameters = optax.apply_updates(state.parameters, steps)
        reference = state.magnet
        if magnet is not None:
            with jax.numpy_dtype_promotion("standard"):
                speed = _read(magnet.speed, state.updates)
            reference = optax.incremental_update(parameters, state.magnet, speed)
        info = _info(decisions, directions, entropies, settings.exploration)
        return State(parameters, optimizer_state, state.updates + 1, reference), info

    return Learner(init, update)


class _Settings(NamedTuple):
    """What the schedules say at one update."""

    exploration: Float[Array, ""]
    magnet_strength: Float[Array, ""]


def _read(value: float | types.Schedule, count: Int[Array, ""]) -> Any:
    return value(count) if callable(value) else value


def _batch(decisions: Decision) -> Decision:
    """`decisions` as arrays, scalar defaults spread over the batch, shapes checked."""
    legal = jnp.asarray(decisions.legal)
    checks.shape("legal", legal, (None, None))
    size = legal.shape[0]
    probability = jnp.asarray(decisions.probability)
    fields = {}
    for name in ("action", "probability", "return_"):
        checks.shape(name, getattr(decisions, name), (size,))
    for name in ("return_", "baseline", "weight", "target"):
        value = jnp.asarray(getattr(decisions, name), probability.dtype)
        checks.shape(name, value, (size,) if value.ndim else ())
        fields[name] = jnp.broadcast_to(value, (size,))
    action = jnp.asarray(decisions.action)
    return decisions._replace(legal=legal, action=action, probability=probability, **fields)


def _info(decisions: Decision, directions: Array, entropies: Array, exploration: Array) -> Info:
    counted = (decisions.weight > 0).astype(directions.dtype)
    total = jnp.maximum(jnp.sum(counted), 1.0)
    weights = jax.vmap(estimators.cix_weight, in_axes=(0, None))(decisions.probability, exploration)
    weights = jnp.where(counted > 0, weights, 0.0)
    capped = decisions.probability + exploration >= 1
    entries = jnp.maximum(jnp.sum(counted * jnp.sum(decisions.legal, axis=1).astype(total.dtype)), 1.0)
    squares = jnp.sum(counted[:, None] * directions**2)
    return Info(
        entropy=jnp.sum(counted * entropies) / total,
        mean_weight=jnp.sum(weights) / total,
        max_weight=jnp.max(weights),
        capped=jnp.sum(counted * capped.astype(counted.dtype)) / total,
        advantage_scale=jnp.sqrt(squares / entries),
        exploration=exploration,
    )
