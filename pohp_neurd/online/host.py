"""The online agent in worlds that live on the host: Gymnasium and dm_env environments, stepped from Python.

Pipeline: a training loop around `online`'s agent for worlds that cannot enter jit. One compiled call per step
acts and learns; the environment steps between two of them. Neither library is imported: whoever has an
environment has it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from pohp_neurd import checks, neural
from pohp_neurd.online import agent as online
from pohp_neurd.online import lifetimes


class Arrival(NamedTuple):
    """What an environment answers to an action, or to a reset."""

    observation: np.ndarray
    """Flat, float32. After the end of an episode it is already the first of the next."""
    reward: float
    continuation: float
    """0 where an episode has just ended."""


@runtime_checkable
class Environment(Protocol):
    """A world on the host."""

    num_actions: int
    observation_size: int

    def reset(self) -> Arrival: ...

    def step(self, action: int) -> Arrival: ...


def _unchanged(reward: float) -> float:
    return reward


class Gymnasium:
    """A Gymnasium environment with discrete actions and an array to observe.

    `reward` maps the environment's rewards, which must come out at 0 or below. With `continuing` a return
    goes on past the end of an episode, as in the paper; without, termination and truncation both end it.
    """

    def __init__(
        self,
        environment: Any,
        *,
        seed: int,
        reward: Callable[[float], float] = _unchanged,
        continuing: bool = False,
    ):
        space = environment.action_space
        if not hasattr(space, "n"):
            raise ValueError(f"the agent needs a Discrete action space, but the environment has {space}.")
        self.num_actions = int(space.n)
        self.observation_size = _size(environment.observation_space.shape)
        self._first_action = int(getattr(space, "start", 0))
        self._environment, self._seed = environment, seed
        self._reward, self._continuing = reward, continuing

    def reset(self) -> Arrival:
        """A first episode, drawn from the seed."""
        observation, _ = self._environment.reset(seed=self._seed)
        return Arrival(_flat(observation), 0.0, 1.0)

    def step(self, action: int) -> Arrival:
        """The answer to `action`; where the episode is over, the next one has begun."""
        observation, reward, terminated, truncated, _ = self._environment.step(self._first_action + action)
        ended = terminated or truncated
        if ended:
            observation, _ = self._environment.reset()
        return _arrival(observation, self._reward(float(reward)), float(not ended or self._continuing))


class DmEnv:
    """A dm_env environment with discrete actions and an array to observe.

    `reward` maps the environment's rewards, which must come out at 0 or below. With `continuing` a return
    goes on past the end of an episode, as in the paper; without, the environment's own discounts hold.
    """

    def __init__(
        self, environment: Any, *, reward: Callable[[float], float] = _unchanged, continuing: bool = False
    ):
        actions = environment.action_spec()
        if not hasattr(actions, "num_values"):
            raise ValueError(
                f"the agent needs a DiscreteArray of actions, but the environment has {actions}."
            )
        self.num_actions = int(actions.num_values)
        self.observation_size = _size(getattr(environment.observation_spec(), "shape", None))
        self._environment, self._reward, self._continuing = environment, reward, continuing

    def reset(self) -> Arrival:
        """A first episode."""
        return Arrival(_flat(self._environment.reset().observation), 0.0, 1.0)

    def step(self, action: int) -> Arrival:
        """The answer to `action`; where the episode is over, the next one has begun."""
        moment = self._environment.step(action)
        observation = self._environment.reset().observation if moment.last() else moment.observation
        continuation = 1.0 if self._continuing else float(moment.discount)
        return _arrival(observation, self._reward(float(moment.reward)), continuation)


_LOOK_EVERY = 1_000


class Played(NamedTuple):
    """What is left of a training on the host."""

    agent: online.State
    rewards: np.ndarray
    """Of every step."""
    actions: np.ndarray


def train(
    environment: Environment,
    options: online.Options,
    num_steps: int,
    *,
    learning_rate: float,
    exploration: float = 1.0,
    seed: int = 0,
    torso: Sequence[int] = neural.PAPER_TORSO,
) -> Played:
    """The paper's agent, acting and learning for `num_steps` steps in `environment`.

    Raises `checks.Diverged` if its parameters or its optimizer leave the finite numbers.
    """
    checks.count("num_steps", num_steps)
    checks.non_negative("learning_rate", learning_rate)
    agent = online.with_network(
        environment.observation_size,
        environment.num_actions,
        options,
        learning_rate=learning_rate,
        exploration=exploration,
        torso=torso,
    )
    legal = jnp.ones(environment.num_actions, bool)
    key = jax.random.key(seed)

    def moment(arrival: Arrival) -> online.Moment:
        return online.Moment(
            arrival.observation, legal, jnp.float32(arrival.reward), jnp.float32(arrival.continuation)
        )

    def step(state: online.State, moment: online.Moment) -> tuple[online.State, jax.Array]:
        state, action = agent.act(state, moment, key=lifetimes.step_keys(key, state.time)[0])
        return agent.learn(state)[0], action

    compiled, finite = jax.jit(step, donate_argnums=0), jax.jit(checks.all_finite)
    arrival = environment.reset()
    state = jax.jit(agent.init)(moment(arrival), key=lifetimes.birth_keys(key)[0])
    rewards, actions = np.zeros(num_steps, np.float32), np.zeros(num_steps, np.int32)
    for index in range(num_steps):
        state, action = compiled(state, moment(arrival))
        actions[index] = action
        arrival = environment.step(int(action))
        rewards[index] = arrival.reward
        # Not at every step: a look at all parameters takes as long as a step.
        if ((index + 1) % _LOOK_EVERY == 0 or index + 1 == num_steps) and not finite(state.body):
            raise checks.Diverged(
                "a parameter or the optimizer's state", after=f"{index + 1:,} steps", remedy="learning_rate"
            )
    return Played(state, rewards, actions)


def _arrival(observation: Any, reward: float, continuation: float) -> Arrival:
    if reward > 0:
        raise ValueError(
            f"rewards must not be positive, but the environment gave {reward:g}: map them with `reward`."
        )
    return Arrival(_flat(observation), reward, continuation)


def _flat(observation: Any) -> np.ndarray:
    return np.asarray(observation, np.float32).ravel()


def _size(shape: Any) -> int:
    if shape is None:
        raise ValueError("the agent observes one array, but the environment's observation has no shape.")
    return int(np.prod(shape))
