"""A partially observable history process (POHP): the world as pure functions of a history.

Pipeline: **history -> observation** -> agent state. Words of Morrill et al. (2022), Section 2.1: an agent
acts at an active history; the daimon replies, and the agent's next active history follows. On arrival
there is a reward; then the process goes on with the history's continuation probability. A terminal
history is one whose continuation probability is 0.

With several agents exactly one acts at each history. To each of them the others are part of the daimon:
`agent_view` makes that literal.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, types


@dataclasses.dataclass(frozen=True)
class Spec:
    """The sizes and bounds of a process."""

    num_agents: int
    num_actions: int
    observation_size: int
    reward_bound: float
    """R: rewards lie in [-R, 0]."""
    horizon: int | None
    """The most decisions, of all agents together, before a terminal history; None if continuing."""
    return_bound: float | None = None
    """G: returns lie in [-G, 0]; by default R times the horizon, None without a horizon."""

    def __post_init__(self) -> None:
        for name in ("num_agents", "num_actions", "observation_size"):
            checks.at_least(name, getattr(self, name))
        checks.non_negative("reward_bound", self.reward_bound)
        if self.horizon is not None and self.horizon < 0:
            raise ValueError(f"horizon must be at least 0, or None, but is {self.horizon}.")
        if self.return_bound is None and self.horizon is not None:
            object.__setattr__(self, "return_bound", self.reward_bound * self.horizon)


@runtime_checkable
class Process(Protocol):
    """What a world must answer; every function runs inside jit, vmap and scan."""

    @property
    def spec(self) -> Spec:
        """The sizes and bounds."""

    def initial(self, *, key: types.Key) -> types.History:
        """A first active history, after the daimon's opening moves."""

    def active_agent(self, history: types.History) -> Int[Array, ""]:
        """The agent whose turn it is, in [0, num_agents)."""

    def observation(self, history: types.History) -> Float[Array, "D"]:
        """What the active agent sees: ω(h)."""

    def legal_actions(self, history: types.History) -> Bool[Array, "A"]:
        """Which actions are allowed: 𝒜(h) as a mask."""

    def apply(self, history: types.History, action: types.Action, *, key: types.Key) -> types.History:
        """The next active history: h, then the agent's action, then the daimon's reply.

        A terminal history absorbs: whatever the action, it is its own successor.
        """

    def reward(self, history: types.History) -> Float[Array, "P"]:
        """Every agent's reward on arrival at this history, in [-R, 0]."""

    def continuation(self, history: types.History) -> Float[Array, ""]:
        """The probability γ(h) of going on from here: 0 terminal, 1 continuing, between a discount."""


DaimonPolicy = Callable[[types.History], Float[Array, "A"]]
"""Probabilities of the active agent's actions at a history: σ(h)."""


class ViewedHistory(NamedTuple):
    """A history as one agent lives it: the process's own, and what happened since the agent's turn."""

    inner: types.History
    reward: Float[Array, ""]
    running: Float[Array, ""]
    """The probability that the process is still running when the agent's turn comes."""


@dataclasses.dataclass(frozen=True)
class AgentView:
    """One agent's POHP: all other agents' decisions are the daimon's. Made by `agent_view`."""

    process: Process
    agent: int
    policy: DaimonPolicy
    spec: Spec

    def initial(self, *, key: types.Key) -> ViewedHistory:
        """The agent's first turn."""
        key, inner_key = jax.random.split(key)
        inner = self.process.initial(key=inner_key)
        return self._until_turn(inner, self.process.reward(inner)[self.agent], key)

    def active_agent(self, history: ViewedHistory) -> Int[Array, ""]:
        """Always the one agent there is."""
        return jnp.zeros((), jnp.int32)

    def observation(self, history: ViewedHistory) -> Float[Array, "D"]:
        """What the agent sees on its turn."""
        return self.process.observation(history.inner)

    def legal_actions(self, history: ViewedHistory) -> Bool[Array, "A"]:
        """What the agent may do on its turn."""
        return self.process.legal_actions(history.inner)

    def apply(self, history: ViewedHistory, action: types.Action, *, key: types.Key) -> ViewedHistory:
        """The agent's next turn, after its own action and everybody else's."""
        key, inner_key = jax.random.split(key)
        inner = self.process.apply(history.inner, action, key=inner_key)
        following = self._until_turn(inner, self.process.reward(inner)[self.agent], key)
        ended = self.continuation(history) == 0
        return jax.tree.map(lambda old, new: jnp.where(ended, old, new), history, following)

    def reward(self, history: ViewedHistory) -> Float[Array, "1"]:
        """The rewards collected since the agent's last action, as far as the process was running."""
        return history.reward[None]

    def continuation(self, history: ViewedHistory) -> Float[Array, ""]:
        """The probability that the process got here and goes on."""
        return history.running * self.process.continuation(history.inner)

    def _until_turn(self, inner: types.History, reward: Float[Array, ""], key: types.Key) -> ViewedHistory:
        def others_turn(carry: tuple[ViewedHistory, types.Key]) -> Bool[Array, ""]:
            history, _ = carry
            return (self.process.active_agent(history.inner) != self.agent) & (history.running > 0)

        def step(carry: tuple[ViewedHistory, types.Key]) -> tuple[ViewedHistory, types.Key]:
            history, key = carry
            key, act_key, reply_key = jax.random.split(key, 3)
            running = history.running * self.process.continuation(history.inner)
            chances = self.policy(history.inner)
            action = jax.random.choice(act_key, chances.shape[0], p=chances).astype(jnp.int32)
            inner = self.process.apply(history.inner, action, key=reply_key)
            reward = history.reward + running * self.process.reward(inner)[self.agent]
            return ViewedHistory(inner, reward, running), key

        start = ViewedHistory(inner, reward, jnp.ones_like(reward))
        return jax.lax.while_loop(others_turn, step, (start, key))[0]


def agent_view(
    process: Process, agent: int, policy: DaimonPolicy, *, reward_bound: float | None = None
) -> AgentView:
    """The one-agent POHP that `agent` lives in while the others follow `policy`.

    Rewards that arrive between two turns are added up, each weighted with the probability that the
    process was still running. `reward_bound` bounds that sum; by default it is the process's return
    bound, and a continuing process must be given one.
    """
    spec = process.spec
    checks.index("agent", agent, spec.num_agents)
    bound = spec.return_bound if reward_bound is None else reward_bound
    if bound is None:
        raise ValueError("a continuing process has no return bound: give agent_view a reward_bound.")
    viewed = dataclasses.replace(spec, num_agents=1, reward_bound=bound, return_bound=spec.return_bound)
    return AgentView(process, agent, policy, viewed)


class _Answers(NamedTuple):
    """All that a process says of one history."""

    active_agent: Array
    observation: Array
    legal: Array
    reward: Array
    continuation: Array


def check_process(process: Process, *, num_episodes: int = 16, num_steps: int = 64, seed: int = 0) -> None:
    """Plays `process` at random and raises a ValueError naming the first rule that it breaks.

    The public conformance check: a new world that passes it can be trained on. Rules: the answers have
    the shapes of the spec; legal masks are not empty where the process goes on; rewards lie in [-R, 0]
    and continuations in [0, 1]; observations are finite; the same key gives the same history; jit and
    vmap give what plain calls give; terminal histories absorb; the horizon holds.
    """
    keys = jax.random.split(jax.random.key(seed), num_episodes)
    first = process.initial(key=keys[0])
    _check_shapes(process, first)
    # Every history must fit into a scan: one structure, one shape, one dtype.
    action = jnp.zeros((), jnp.int32)
    following = jax.eval_shape(lambda: process.apply(first, action, key=keys[0]))
    layout = [jax.tree.map(lambda x: (jnp.shape(x), jnp.asarray(x).dtype), first)]
    layout.append(jax.tree.map(lambda x: (x.shape, x.dtype), following))
    _require(layout[0] == layout[1], "histories keep their structure, shapes and dtypes", layout)

    play = jax.jit(jax.vmap(lambda key: _play(process, key, num_steps)))
    histories, answers, actions = jax.tree.map(np.asarray, play(keys))
    _check_bounds(process.spec, answers)
    compiled = jax.tree.map(lambda leaf: leaf[0], (histories, answers))
    _check_plain_calls(process, keys[0], compiled, actions[0, : min(num_steps - 1, 4)])
    _check_end(process, histories, answers, num_steps)


def _answers(process: Process, history: types.History) -> _Answers:
    return _Answers(
        process.active_agent(history),
        process.observation(history),
        process.legal_actions(history),
        process.reward(history),
        process.continuation(history),
    )


def _play(process: Process, key: types.Key, num_steps: int) -> tuple[types.History, _Answers, Array]:
    def step(history: types.History, index: Array) -> tuple[types.History, tuple]:
        act_key, reply_key = jax.random.split(jax.random.fold_in(key, index))
        answers = _answers(process, history)
        chances = jnp.where(answers.legal, 0.0, -jnp.inf)
        drawn = jax.random.categorical(act_key, chances)
        action = jnp.where(jnp.any(answers.legal), drawn, 0).astype(jnp.int32)
        return process.apply(history, action, key=reply_key), (history, answers, action)

    initial = process.initial(key=key)
    return jax.lax.scan(step, initial, jnp.arange(num_steps))[1]


def _check_shapes(process: Process, history: types.History) -> None:
    spec, answers = process.spec, _answers(process, history)
    expected = {
        "active_agent": (),
        "observation": (spec.observation_size,),
        "legal": (spec.num_actions,),
        "reward": (spec.num_agents,),
        "continuation": (),
    }
    for name, shape in expected.items():
        actual = jnp.shape(getattr(answers, name))
        _require(actual == shape, f"{name} has the shape {shape} of the spec", actual)
    _require(answers.legal.dtype == bool, "legal is a mask of booleans", answers.legal.dtype)


def _check_bounds(spec: Spec, answers: _Answers) -> None:
    agents, legal, going = answers.active_agent, answers.legal, answers.continuation > 0
    _require(np.all((agents >= 0) & (agents < spec.num_agents)), "active agents are in range", agents)
    outside = (answers.continuation < 0) | (answers.continuation > 1) | np.isnan(answers.continuation)
    _require(not np.any(outside), "continuation is in [0, 1]", answers.continuation[outside][:1])
    _require(np.all(legal.any(axis=-1) | ~going), "an active history has a legal action", "")
    _require(np.all(np.isfinite(answers.observation)), "observations are finite", "")
    slack = 1e-5 * max(spec.reward_bound, 1.0)
    rewards = answers.reward
    fits = (rewards <= slack) & (rewards >= -spec.reward_bound - slack)
    bad = rewards[~fits][:1]
    _require(np.all(fits), f"rewards are in [-{spec.reward_bound:g}, 0]", bad)


def _check_plain_calls(
    process: Process, key: types.Key, compiled: tuple[types.History, _Answers], actions: np.ndarray
) -> None:
    plain = _play_plainly(process, key, actions)
    for index, again in enumerate(_play_plainly(process, key, actions[:1])):
        found = f"two at step {index}"
        _require(_same(plain[index], again), "the same key gives the same history", found)
    for index, played in enumerate(plain):
        then = jax.tree.map(lambda leaf, index=index: leaf[index], compiled)
        found = f"a difference at step {index}"
        _require(_same(played, then, 1e-5), "jit and vmap give what plain calls give", found)


def _play_plainly(process: Process, key: types.Key, actions: np.ndarray) -> list[tuple]:
    """Histories and answers of `_play` up to the one after `actions`, without jit and vmap."""
    history = process.initial(key=key)
    played = [(history, _answers(process, history))]
    for index, action in enumerate(actions):
        reply_key = jax.random.split(jax.random.fold_in(key, index))[1]
        history = process.apply(history, jnp.asarray(action), key=reply_key)
        played.append((history, _answers(process, history)))
    return played


def _check_end(process: Process, histories: types.History, answers: _Answers, num_steps: int) -> None:
    ended = answers.continuation == 0
    for leaf in jax.tree.leaves(histories):
        flags = ended[:, :-1].reshape(*ended[:, :-1].shape, *[1] * (leaf.ndim - 2))
        same = (leaf[:, :-1] == leaf[:, 1:]) | ~flags
        _require(np.all(same), "terminal histories absorb", "a terminal one with another after it")
    horizon = process.spec.horizon
    if horizon is not None and horizon < num_steps:
        late = "an episode still running after its horizon"
        _require(np.all(ended[:, horizon]), f"the horizon is {horizon} decisions", late)


def _same(left: Any, right: Any, tolerance: float = 0.0) -> bool:
    def close(one: Any, other: Any) -> bool:
        one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
        return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance))

    return all(jax.tree.leaves(jax.tree.map(close, left, right)))


def _require(holds: Any, rule: str, found: Any) -> None:
    if not holds:
        detail = f", but found {found}" if str(found) else ""
        raise ValueError(f"the process breaks the rule that {rule}{detail}.")
