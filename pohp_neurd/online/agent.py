"""The paper's single-agent actor-critic: one update after every step.

Pipeline: all of it, for one step. Morrill et al. (2022), Section 5: actor and critic are
linear heads on one torso; the critic's target is the 32-step TD(0.9) return with a bootstrap factor of 0.9;
the actor follows any direction of `learners`; the optimizer is Adam with β1 = 0.

At step t the agent sees x_t, computes π(·|x_t) and V(x_t), draws its action, and then learns from decision
t − 32, whose target has just been completed by V(x_t). `Options` names what the paper leaves open.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, directions, learners, neural, policy, returns, types
from pohp_neurd.online import actor_critic
from pohp_neurd.online.options import Options as Options


class Window(NamedTuple):
    """The last W + 1 decisions and what followed all but the newest; the newest stand last."""

    agent_state: Any
    legal: Bool[Array, "W+1 A"]
    action: Int[Array, "W+1"]
    probability: Float[Array, "W+1"]
    """At the time of acting."""
    reward: Float[Array, "W"]
    continuation: Float[Array, "W"]
    next_value: Float[Array, "W"]
    """The critic's value of the next state, as it was when that state was met."""


class State(NamedTuple):
    """What must persist between steps."""

    body: Any
    """Parameters and optimizer, as the actor-critic keeps them."""
    window: Window
    time: Int[Array, ""]
    """Decisions so far."""


class Moment(NamedTuple):
    """What the world tells the agent before a decision."""

    agent_state: Any
    legal: Bool[Array, "A"]
    reward: Float[Array, ""]
    """Of the arrival here, so of the decision before."""
    continuation: Float[Array, ""]
    """0 if the arrival was at a terminal history and this moment is the beginning of another life."""


class Info(NamedTuple):
    """What a researcher plots of one step."""

    entropy: Float[Array, ""]
    """Of the policy at the oldest state in the window that learns; 0 where none does, as the error."""
    critic_error: Float[Array, ""]
    """Target less value at that state."""


class Agent(NamedTuple):
    """An online agent as pure functions; a step is `act`, then `learn`."""

    init: Callable[..., State]
    """(moment, *, key) -> state; of the moment only its shapes count."""
    act: Callable[..., tuple[State, Int[Array, ""]]]
    """(state, moment, *, key) -> state with the decision in its window, and the action."""
    learn: Callable[[State], tuple[State, Info]]
    """One update from the window; none before the window holds a complete target, or between rollouts."""
    parameters: Callable[[State], types.Parameters]
    """The network's parameters, in the layout of `neural.network`, to look at."""


def agent(body: actor_critic.ActorCritic, options: Options) -> Agent:
    """The online agent around a network with its optimizer."""
    size = options.window
    learning = 1 if options.updated == "oldest" else size

    def init(moment: Moment, *, key: types.Key) -> State:
        def empty(leaf: Array) -> Array:
            return jnp.zeros((size + 1, *jnp.shape(leaf)), jnp.asarray(leaf).dtype)

        def zeros(length: int) -> Array:
            # Fresh ones for every field: a buffer that stands twice in a state cannot be donated.
            return jnp.zeros(length, jnp.asarray(moment.reward).dtype)

        window = Window(
            agent_state=jax.tree.map(empty, moment.agent_state),
            legal=empty(moment.legal),
            action=jnp.zeros(size + 1, jnp.int32),
            probability=zeros(size + 1),
            reward=zeros(size),
            continuation=zeros(size),
            next_value=zeros(size),
        )
        return State(body.init(key=key), window, jnp.zeros((), jnp.int32))

    def act(state: State, moment: Moment, *, key: types.Key) -> tuple[State, Int[Array, ""]]:
        alone = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], moment.agent_state)
        output = body.outputs(state.body, alone)
        probabilities = policy.probabilities(output.logits[0], moment.legal)
        action = policy.sample(probabilities, key=key)
        newest = Window(
            moment.agent_state,
            moment.legal,
            action,
            probabilities[action],
            moment.reward,
            moment.continuation,
            output.value[0],
        )
        window = jax.tree.map(lambda old, new: jnp.concatenate([old[1:], new[None]]), state.window, newest)
        return State(state.body, window, state.time + 1), action

    def learn(state: State) -> tuple[State, Info]:
        # The window fills from its new end; what lies before the first decision has no weight. Without any
        # complete decision the update is skipped: one without a gradient would still advance Adam's clock.
        complete = jnp.arange(learning, dtype=jnp.int32) > size - state.time
        now = jnp.any(complete)
        if options.updated == "rollout":
            # Only the newest decision has been followed by nothing yet: those before it are all new.
            now &= state.time % size == 1 % size
        learnt, info = jax.lax.cond(now, learn_from_window, skip, state.body, state.window, complete)
        return State(learnt, state.window, state.time), info

    def skip(before: Any, window: Window, complete: Bool[Array, "n"]) -> tuple[Any, Info]:
        zero = jnp.zeros((), window.reward.dtype)
        return before, Info(zero, zero)

    def learn_from_window(before: Any, window: Window, complete: Bool[Array, "n"]) -> tuple[Any, Info]:
        targets = returns.lambda_returns(
            window.reward,
            window.continuation,
            window.next_value,
            lambda_=options.lambda_,
            bootstrap=_factors(options, window.next_value.dtype),
        )[:learning]
        states = jax.tree.map(lambda leaf: leaf[:learning], window.agent_state)
        legal, action = window.legal[:learning], window.action[:learning]
        now = body.outputs(before, states)
        probability = window.probability[:learning]
        if options.probability == "update":
            at = jax.vmap(lambda logits, mask, taken: policy.probabilities(logits, mask)[taken])
            probability = at(now.logits, legal, action)
        decisions = learners.Decision(
            agent_state=states,
            legal=legal,
            action=action,
            probability=probability,
            return_=targets,
            baseline=now.value if options.baseline == "critic" else 0.0,
            weight=complete.astype(targets.dtype) / learning,
            target=targets,
        )
        after = body.update(before, decisions)
        oldest = jnp.argmax(complete)  # what stands before it, while the window fills, is no state
        error = targets[oldest] - now.value[oldest]
        return after, Info(policy.entropy(now.logits[oldest], legal[oldest]), error)

    return Agent(init, act, learn, lambda state: body.parameters(state.body))


def with_network(
    observation_size: int,
    num_actions: int,
    options: Options,
    *,
    learning_rate: types.Scalar,
    exploration: types.Scalar = 1.0,
    torso: Sequence[int] = neural.PAPER_TORSO,
) -> Agent:
    """The paper's agent, with its network and optimizer.

    Args:
      observation_size: How many numbers the agent sees.
      num_actions: How many actions it has.
      options: What is chosen once for many runs.
      learning_rate: Of Adam. It and the exploration may be traced: one compiled function then serves many.
      exploration: η at the first update.
      torso: The widths of the network's hidden layers.

    Returns:
      The agent.
    """
    checks.in_unit_interval("exploration", exploration)
    rule = learners.rule(options.learner, _over_time(exploration, options))
    adam = actor_critic.Adam(learning_rate, options.decay, options.epsilon)
    costs: Any = {"common_mode": options.common_mode, "critic_cost": options.critic_cost}
    if goes_by_rows(options, torso):
        from pohp_neurd.online import by_rows  # numba takes a second to load

        body = by_rows.paper_network(observation_size, num_actions, rule, adam, torso=torso, **costs)
    else:
        model = neural.network(observation_size, num_actions, torso=torso, critic=True)
        body = actor_critic.dense(model, rule, adam, **costs)
    return agent(body, options)


def goes_by_rows(options: Options, torso: Sequence[int] = neural.PAPER_TORSO) -> bool:
    """Whether `with_network` keeps its parameters in rows; states may then list the inputs that are 1."""
    two = len(torso) == 2 and torso[0] == torso[1]
    # With many states at once nearly every row has a gradient: skipping the others was hardly faster.
    return two and options.updated == "oldest" and jax.default_backend() == "cpu"


def _over_time(exploration: types.Scalar, options: Options) -> types.Schedule:
    """The exploration at every update: constant, or decaying as the options say."""
    if not options.exploration_decay:
        return lambda count: exploration
    return directions.decaying(exploration, power=options.exploration_decay, start=float(options.decay_start))


def _factors(options: Options, dtype: Any) -> Float[Array, "W"]:
    factors = jnp.full(options.window, options.bootstrap, dtype)
    if options.bootstrapped == "every":
        return factors
    return jnp.where(jnp.arange(options.window) < options.window - 1, 1.0, factors)
