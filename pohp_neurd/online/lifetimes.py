"""Online agents in their worlds: the loop of acting and learning, in one scan, for one run or many.

Pipeline: a training loop; it feeds parameters back to the left. A life is an agent in its world; runs differ
in seed, learning rate and exploration, and each is the same to the bit whatever runs beside it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, neural, process, types
from pohp_neurd.online import agent as online

Sight = Callable[[types.History], Any]
"""From a history to what the agent sees of it: its agent state."""


def paper_agent(
    world: process.Process,
    options: online.Options,
    *,
    learning_rate: types.Scalar,
    exploration: types.Scalar = 1.0,
    torso: Sequence[int] = neural.PAPER_TORSO,
) -> online.Agent:
    """The paper's agent for `world`, with its network.

    `learning_rate` and `exploration` may be traced: one compiled function then serves many of them.
    """
    return online.with_network(
        world.spec.observation_size,
        world.spec.num_actions,
        options,
        learning_rate=learning_rate,
        exploration=exploration,
        torso=torso,
    )


def sight(world: Any, options: online.Options, torso: Sequence[int] = neural.PAPER_TORSO) -> Sight:
    """What the paper's agent sees of a history of `world`: its agent state.

    Where the network goes by rows and few inputs are not 0, that is which they are.
    """
    listed = hasattr(world, "active_features") and online.goes_by_rows(options, torso)
    return world.active_features if listed else world.observation


class Life(NamedTuple):
    """An agent in its world."""

    agent: online.State
    history: types.History
    reward: Float[Array, ""]
    """Of the last arrival."""
    continuation: Float[Array, ""]


class Totals(NamedTuple):
    """Sums over some steps of one life."""

    reward: Float[Array, ""]
    episodes: Int[Array, ""]
    """Lives that ended: 0 in a continuing world."""
    entropy: Float[Array, ""]
    squared_error: Float[Array, ""]
    diverged: Bool[Array, ""]
    """Whether a parameter or the optimizer's state is not finite after them."""


def birth_keys(key: types.Key) -> types.Key:
    """The keys from which a life's network and its first history are drawn."""
    # Of the last time that the clock could show: no step draws from it.
    return jax.random.split(jax.random.fold_in(key, jnp.iinfo(jnp.int32).max))


def step_keys(key: types.Key, time: types.Action) -> types.Key:
    """The keys of the step at `time`: of the action, of the world's reply, and of a new beginning."""
    return jax.random.split(jax.random.fold_in(key, time), 3)


def begin(world: process.Process, agent: online.Agent, see: Sight, *, key: types.Key) -> Life:
    """A new agent before its first decision in `world`."""
    model_key, world_key = birth_keys(key)
    history = world.initial(key=world_key)
    reward = jnp.zeros_like(world.reward(history)[0])
    continuation = world.continuation(history)
    moment = online.Moment(see(history), world.legal_actions(history), reward, continuation)
    return Life(agent.init(moment, key=model_key), history, reward, continuation)


def live(
    world: process.Process, agent: online.Agent, see: Sight, life: Life, num_steps: int, *, key: types.Key
) -> tuple[Life, Totals]:
    """`num_steps` steps of acting and learning, in one scan.

    Step t draws from `fold_in(key, t)`, so that a life is the same however it is cut into calls.
    """
    # All keys of the scan at once: drawn one by one, they would cost as much as acting does.
    times = life.agent.time + jnp.arange(num_steps, dtype=jnp.int32)
    keys = jax.vmap(lambda time: step_keys(key, time))(times)

    def step(life: Life, keys: types.Key) -> tuple[Life, Totals]:
        moment = online.Moment(
            see(life.history), world.legal_actions(life.history), life.reward, life.continuation
        )
        state, action = agent.act(life.agent, moment, key=keys[0])
        state, info = agent.learn(state)
        arrived = world.apply(life.history, action, key=keys[1])
        reward, continuation = world.reward(arrived)[0], world.continuation(arrived)
        ended = continuation == 0
        if world.spec.horizon is not None:
            fresh = world.initial(key=keys[2])
            arrived = jax.tree.map(lambda new, old: jnp.where(ended, new, old), fresh, arrived)
        unknown = jnp.zeros((), bool)  # a look at all parameters at every step would take as long as the step
        totals = Totals(reward, ended.astype(jnp.int32), info.entropy, info.critic_error**2, unknown)
        return Life(state, arrived, reward, continuation), totals

    life, totals = jax.lax.scan(step, life, keys)
    totals = jax.tree.map(lambda each: jnp.sum(each), totals)
    return life, totals._replace(diverged=~checks.all_finite(life.agent.body))


class Runs(NamedTuple):
    """What may differ between the runs of one call; each field has an axis of runs."""

    seed: Int[types.ArrayLike, "R"]
    learning_rate: Float[types.ArrayLike, "R"]
    exploration: Float[types.ArrayLike, "R"]


def begin_all(
    world: process.Process, options: online.Options, runs: Runs, *, torso: Sequence[int] = neural.PAPER_TORSO
) -> Life:
    """A new life for every run, along a leading axis."""
    see = sight(world, options, torso)

    def one(run: Runs) -> Life:
        return begin(world, _agent_of(world, options, run, torso), see, key=jax.random.key(run.seed))

    return jax.lax.map(one, runs)


def live_all(
    world: process.Process,
    options: online.Options,
    runs: Runs,
    lives: Life,
    num_steps: int,
    *,
    torso: Sequence[int] = neural.PAPER_TORSO,
) -> tuple[Life, Totals]:
    """`num_steps` more steps of every run, one run after the other, so that each is what it would be alone.

    A batch over runs would be no faster on a core: each run reads its own weights, and those are the work.
    """
    see = sight(world, options, torso)

    def one(pair: tuple[Runs, Life]) -> tuple[Life, Totals]:
        run, life = pair
        body = _agent_of(world, options, run, torso)
        return live(world, body, see, life, num_steps, key=jax.random.key(run.seed))

    return jax.lax.map(one, (runs, lives))


def _agent_of(
    world: process.Process, options: online.Options, run: Runs, torso: Sequence[int]
) -> online.Agent:
    return paper_agent(
        world, options, learning_rate=run.learning_rate, exploration=run.exploration, torso=torso
    )
