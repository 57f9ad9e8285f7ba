"""The network and optimizer of an online agent behind four functions.

Pipeline: agent state -> **logits and value**, and direction -> **parameters**. `dense` is any model with a
critic under `learners.learner`; `by_rows` has the paper's network, which computes the same, faster.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import Array
from jaxtyping import Float

from pohp_neurd import checks, learners, optimizers, policy, types


class Outputs(NamedTuple):
    """What a network says of a batch of agent states."""

    logits: Float[Array, "B A"]
    value: Float[Array, "B"]


class ActorCritic(NamedTuple):
    """A network with its optimizer."""

    init: Callable[..., Any]
    """(*, key) -> state."""
    outputs: Callable[[Any, Any], Outputs]
    """(state, agent states with a leading axis) -> logits and values with that axis."""
    update: Callable[[Any, learners.Decision], Any]
    """(state, decisions with a leading axis) -> state after one update."""
    parameters: Callable[[Any], types.Parameters]
    """The parameters in the layout of the dense network, to look at."""


class Adam(NamedTuple):
    """Settings of the optimizer; the learning rate may be traced."""

    learning_rate: types.Scalar
    decay: float = 0.999
    epsilon: float = 1e-8

    def transformation(self) -> Any:
        """The optimizer itself."""
        return optimizers.adam_without_momentum(self.learning_rate, decay=self.decay, epsilon=self.epsilon)


def dense(
    model: policy.Model,
    rule: learners.Rule,
    optimizer: Adam,
    *,
    common_mode: str = checks.COMMON_MODE,
    critic_cost: float = 1.0,
) -> ActorCritic:
    """Any model with a critic."""
    learner = learners.learner(
        model.apply, rule, optimizer.transformation(), common_mode=common_mode, critic_cost=critic_cost
    )
    return ActorCritic(
        init=lambda *, key: learner.init(model.init(key=key)),
        outputs=lambda state, states: _outputs(model.apply, state.parameters, states),
        update=lambda state, decisions: learner.update(state, decisions)[0],
        parameters=lambda state: state.parameters,
    )


def _outputs(apply: policy.Apply, parameters: types.Parameters, states: Any) -> Outputs:
    output = jax.vmap(apply, in_axes=(None, 0))(parameters, states)
    if output.value is None:
        raise ValueError("an actor-critic needs a model with a critic.")
    return Outputs(output.logits, output.value)
