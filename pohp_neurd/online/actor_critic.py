"""The network and optimizer of an online agent behind three functions, for inputs that are dense or sparse.

Pipeline: agent state -> **logits and value**, and direction -> **parameters**. `dense` is any model with a
critic under `learners.learner`. `sparse` is the paper's network where an observation is a few ones among
zeros, as in catch: it touches only the input weights of those ones, and computes the same.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from pohp_neurd import checks, learners, neural, optimizers, policy, types


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


class Sparse(NamedTuple):
    """Parameters and moments of a network on sparse inputs: those of all inputs in a table, by rows."""

    learner: learners.State
    """Of the small network that sees only the active inputs; between updates it has no input rows."""
    rows: Float[Array, "D 2 H"]
    """Weights from each input to the first layer, and past it to the second."""
    row_moments: Float[Array, "D 2 H"]
    """Their second moments at their last update."""
    row_counts: Int[Array, "D"]
    """The optimizer's count at that update."""


def sparse(
    observation_size: int,
    num_actions: int,
    rule: learners.Rule,
    optimizer: Adam,
    *,
    torso: Sequence[int] = neural.PAPER_TORSO,
    common_mode: str = checks.COMMON_MODE,
    critic_cost: float = 1.0,
) -> ActorCritic:
    """The paper's network, two layers with a skip connection, on states [1, k] that list k active inputs.

    The active inputs of one state must differ; all others are 0. The weights of an input that is 0 have
    gradients of 0, under which Adam with β1 = 0 leaves a weight alone and lets its moment decay. So each step
    loads the k rows of its state into a network of k inputs that are all 1, updates that, and stores them;
    the decay is caught up at the next load. Only one state can learn at a time.
    """
    if len(torso) != 2 or torso[0] != torso[1]:
        raise ValueError(f"the sparse network has two layers of one width, but the torso is {tuple(torso)}.")
    whole = neural.network(observation_size, num_actions, torso=torso, critic=True)
    learner = learners.learner(
        _split_apply, rule, optimizer.transformation(), common_mode=common_mode, critic_cost=critic_cost
    )

    def init(*, key: types.Key) -> Sparse:
        parameters = split(whole.init(key=key))
        rows = parameters["input"]
        moments, counts = jnp.zeros_like(rows), jnp.zeros(observation_size, jnp.int32)
        return Sparse(learner.init({**parameters, "input": rows[:0]}), rows, moments, counts)

    def outputs(state: Sparse, active: Int[Array, "1 k"]) -> Outputs:
        parameters = {**state.learner.parameters, "input": _gather(state.rows, active[0])}
        features = jnp.ones(active.shape, state.rows.dtype)
        return _outputs(_split_apply, parameters, features)

    def update(state: Sparse, decisions: learners.Decision) -> Sparse:
        active = decisions.agent_state[0]
        before = state.learner
        count = before.optimizer.updates
        idle = optimizers.idle_decay(count - state.row_counts[active], optimizer.decay, state.rows.dtype)
        loaded = before._replace(
            parameters={**before.parameters, "input": _gather(state.rows, active)},
            optimizer=optimizers.State(
                count,
                {
                    **before.optimizer.second_moment,
                    "input": _gather(state.row_moments, active) * idle[:, None, None],
                },
            ),
        )
        features = jnp.ones((1, active.shape[0]), state.rows.dtype)
        after, _ = learner.update(loaded, decisions._replace(agent_state=features))
        rows, moments = after.parameters["input"], after.optimizer.second_moment["input"]
        unloaded = after._replace(
            parameters={**after.parameters, "input": rows[:0]},
            optimizer=optimizers.State(
                after.optimizer.updates, {**after.optimizer.second_moment, "input": moments[:0]}
            ),
        )
        return Sparse(
            unloaded,
            _scatter(state.rows, active, rows),
            _scatter(state.row_moments, active, moments),
            state.row_counts.at[active].set(count + 1),
        )

    def parameters(state: Sparse) -> types.Parameters:
        return join({**state.learner.parameters, "input": state.rows})

    return ActorCritic(init, outputs, update, parameters)


def split(parameters: types.Parameters) -> dict[str, Array]:
    """The parameters of `neural.network` with all weights of an input in one row of `input` [D, 2, H]."""
    first, second = parameters["torso_0"], parameters["torso_1"]
    width = first["w"].shape[1]
    return {
        "input": jnp.stack([first["w"], second["w"][width:]], axis=1),
        "hidden": second["w"][:width],
        "bias_0": first["b"],
        "bias_1": second["b"],
        "actor": parameters["actor"]["w"],
        "actor_bias": parameters["actor"]["b"],
        "critic": parameters["critic"]["w"],
        "critic_bias": parameters["critic"]["b"],
    }


def join(parameters: dict[str, Array]) -> types.Parameters:
    """The inverse of `split`."""
    rows = parameters["input"]
    return {
        "torso_0": {"w": rows[:, 0], "b": parameters["bias_0"]},
        "torso_1": {"w": jnp.concatenate([parameters["hidden"], rows[:, 1]]), "b": parameters["bias_1"]},
        "actor": {"w": parameters["actor"], "b": parameters["actor_bias"]},
        "critic": {"w": parameters["critic"], "b": parameters["critic_bias"]},
    }


def _outputs(apply: policy.Apply, parameters: types.Parameters, states: Any) -> Outputs:
    output = jax.vmap(apply, in_axes=(None, 0))(parameters, states)
    if output.value is None:
        raise ValueError("an actor-critic needs a model with a critic.")
    return Outputs(output.logits, output.value)


def _split_apply(parameters: types.Parameters, agent_state: Float[Array, "k"]) -> policy.Output:
    """What `neural.network` computes, from split parameters."""
    features = agent_state
    hidden = jax.nn.relu(features @ parameters["input"][:, 0] + parameters["bias_0"])
    past = features @ parameters["input"][:, 1]
    units = jax.nn.relu(hidden @ parameters["hidden"] + past + parameters["bias_1"])
    logits = units @ parameters["actor"] + parameters["actor_bias"]
    value = units @ parameters["critic"] + parameters["critic_bias"]
    return policy.Output(logits, value[0])


# Row by row and not by one gather and scatter: XLA then works in place, without a copy of the table.


def _gather(table: Float[Array, "D 2 H"], rows: Int[Array, "k"]) -> Float[Array, "k 2 H"]:
    return jnp.stack([jax.lax.dynamic_index_in_dim(table, row, keepdims=False) for row in rows])


def _scatter(
    table: Float[Array, "D 2 H"], rows: Int[Array, "k"], values: Float[Array, "k 2 H"]
) -> Float[Array, "D 2 H"]:
    for row, value in zip(rows, values, strict=True):
        table = jax.lax.dynamic_update_index_in_dim(table, value, row, 0)
    return table
