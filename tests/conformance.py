"""Does a world keep the rules of a Process? Every game's tests ask."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pohp_neurd import types
from pohp_neurd.process import Process, Spec


class _Answers(NamedTuple):
    """All that a process says of one history."""

    active_agent: Array
    observation: Array
    legal: Array
    reward: Array
    continuation: Array


def check_process(process: Process, *, num_episodes: int = 16, num_steps: int = 64, seed: int = 0) -> None:
    """Plays `process` at random and raises a ValueError naming the first rule that it breaks.

    A new world that passes it can be trained on. Rules: the answers have
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
