"""From evidence to parameters: direction, shaping, one step; every update returns (state, info).

Pipeline: direction -> shaping -> **parameters**. Evidence has one of three shapes: a batch of decisions or a
single one, here, or a tally of many at every agent state, in `tally_learners`. A learner from decisions does
not know whether a table or a network made the logits, nor where the return came from.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import checks, estimators, policy, shaping, types
from pohp_neurd.directions import Decision as Decision
from pohp_neurd.directions import Rule as Rule
from pohp_neurd.directions import read
from pohp_neurd.directions import rule as rule


class Info(NamedTuple):
    """What a researcher plots: means over the decisions of positive weight, or over a tally's visits."""

    entropy: Float[Array, ""]
    mean_weight: Float[Array, ""]
    """Mean of the importance correction 1 / β."""
    max_weight: Float[Array, ""]
    capped: Float[Array, ""]
    """Fraction of decisions at which the cap of CIX was active."""
    advantage_scale: Float[Array, ""]
    """Root mean square of the directions' entries; of a tally, of each agent state's mean direction."""
    exploration: Float[Array, ""]


def info_of(
    counts: Float[Array, "N"],
    probability: Float[Array, "N"],
    entropy: Float[Array, "N"],
    mean_square: Float[Array, ""],
    exploration: Float[Array, ""],
) -> Info:
    """What there is to say of N kinds of decisions.

    Args:
      counts: how many there are of each.
      probability: of the action taken.
      entropy: of the policy that it was drawn from.
      mean_square: of the directions' entries.
      exploration: η.

    Returns:
      The figures.
    """
    total = jnp.sum(counts)
    total = jnp.where(total > 0, total, 1.0)
    weights = jax.vmap(estimators.cix_weight, in_axes=(0, None))(probability, exploration)
    weights = jnp.where(counts > 0, weights, 0.0)
    capped = probability + exploration >= 1
    return Info(
        entropy=jnp.sum(counts * entropy) / total,
        mean_weight=jnp.sum(counts * weights) / total,
        max_weight=jnp.max(weights),
        capped=jnp.sum(counts * capped.astype(counts.dtype)) / total,
        advantage_scale=jnp.sqrt(mean_square),
        exploration=exploration,
    )


class State(NamedTuple):
    """What must persist between updates."""

    parameters: types.Parameters
    optimizer: Any
    updates: Int[Array, ""]
    magnet: types.Parameters | None


@runtime_checkable
class Update(Protocol):
    """One update from a batch of decisions."""

    def __call__(self, state: State, decisions: Decision) -> tuple[State, Info]: ...


class Learner(NamedTuple):
    """A learning algorithm as pure functions; an update is slopes, their pullback, then a step."""

    init: Callable[[types.Parameters], State]
    update: Update
    slopes: Callable[..., tuple[policy.Output, Info]]
    """(updates, outputs, the magnet's logits or None, decisions) -> slopes, and what a researcher plots.

    Outputs, and the loss's slopes in them, are of the model at every decision. Pulled back through it, slopes
    are the gradient; those of parts of a batch add up to that of the whole."""
    step: Callable[[State, types.Parameters], State]
    """(state, gradient) -> the state after it."""


def pseudo_loss(logits: types.Logits, direction: Float[Array, "A"]) -> Float[Array, ""]:
    """A number whose gradient, downhill, is Σ_a direction(a) ∇f(s, a; θ); its value means nothing."""
    return -jnp.sum(jax.lax.stop_gradient(direction) * logits)


def learner(
    apply: policy.Apply,
    rule: Rule,
    optimizer: types.Optimizer,
    *,
    common_mode: str = checks.COMMON_MODE,
    threshold: float | None = None,
    magnet: shaping.Magnet | None = None,
    entropy_cost: float = 0.0,
    critic_cost: float = 1.0,
) -> Learner:
    """A learner from decisions: θ ← θ + α Σ_a direction(a) ∇f(s, a; θ), for any model and optimizer.

    Args:
      apply: the model, a table or a network.
      rule: the algorithm.
      optimizer: any of optax.
      common_mode: see `shaping.shape`, as for the next three.
      threshold: on logits.
      magnet: whose reference has the model's own parameters.
      entropy_cost: of the pull to the uniform policy.
      critic_cost: a model with a critic also descends ½ (target − V)² times this.

    Returns:
      The learner.
    """
    checks.non_negative("critic_cost", critic_cost)
    shape = shaping.shape(
        common_mode=common_mode, magnet=magnet, entropy_cost=entropy_cost, threshold=threshold
    )

    def init(parameters: types.Parameters) -> State:
        # A copy: a caller that donates the state's buffers to jit may not donate one of them twice.
        reference = None if magnet is None else jax.tree.map(jnp.array, parameters)
        return State(parameters, optimizer.init(parameters), jnp.zeros((), jnp.int32), reference)

    def loss_of_one(
        output: policy.Output,
        reference: types.Logits | None,
        updates: Int[Array, ""],
        exploration: Float[Array, ""],
        decision: Decision,
    ) -> tuple[Array, tuple[Array, Array]]:
        logits = jax.lax.stop_gradient(output.logits)
        checks.shape("legal", decision.legal, logits.shape)
        probabilities = policy.probabilities(logits, decision.legal)
        row = shaping.Row(logits, decision.legal, reference, updates)
        direction = shape(rule.direction(probabilities, decision, exploration), row)
        loss = pseudo_loss(output.logits, direction)
        if output.value is not None:
            loss = loss + critic_cost * 0.5 * (decision.target - output.value) ** 2
        return decision.weight * loss, (direction, policy.entropy(logits, decision.legal))

    def slopes(
        updates: Int[types.ArrayLike, ""],
        outputs: policy.Output,
        reference: Float[types.ArrayLike, "M A"] | None,
        decisions: Decision,
    ) -> tuple[policy.Output, Info]:
        decisions = _batch(decisions._replace(agent_state=None))
        exploration = jnp.asarray(read(rule.exploration, updates), decisions.probability.dtype)

        def loss_of_all(outputs: policy.Output) -> tuple[Array, tuple[Array, Array]]:
            batched = jax.vmap(loss_of_one, in_axes=(0, 0, None, None, 0))
            losses, aux = batched(outputs, reference, updates, exploration, decisions)
            return jnp.sum(losses), aux

        found, (directions, entropies) = jax.grad(loss_of_all, has_aux=True)(outputs)
        counted = (decisions.weight > 0).astype(directions.dtype)
        entries = jnp.sum(counted * jnp.sum(decisions.legal, axis=1).astype(counted.dtype))
        mean_square = jnp.sum(counted[:, None] * directions**2) / jnp.maximum(entries, 1.0)
        return found, info_of(counted, decisions.probability, entropies, mean_square, exploration)

    def step(state: State, gradient: types.Parameters) -> State:
        import optax

        with jax.numpy_dtype_promotion("standard"):
            steps, optimizer_state = optimizer.update(gradient, state.optimizer, state.parameters)
        parameters = optax.apply_updates(state.parameters, steps)
        reference = state.magnet
        if magnet is not None:
            speed = read(magnet.speed, state.updates)
            reference = optax.incremental_update(parameters, state.magnet, speed)
        return State(parameters, optimizer_state, state.updates + 1, reference)

    def update(state: State, decisions: Decision) -> tuple[State, Info]:
        every = jax.vmap(apply, in_axes=(None, 0))
        seen = decisions.agent_state
        outputs, pullback = jax.vjp(lambda parameters: every(parameters, seen), state.parameters)
        reference = None if magnet is None else every(state.magnet, seen).logits
        found, info = slopes(state.updates, outputs, reference, decisions)
        return step(state, pullback(found)[0]), info

    return Learner(init, update, slopes, step)


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
