"""A finite process as arrays: every history a row, depth by depth, children side by side.

Pipeline: this is a Process too, so rollouts run on it inside jit, and it is what `exact` sweeps over. Here
the daimon's moves (chance) are histories of their own, so that their probabilities can be summed over.
"""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from pohp_neurd import process, types

CHANCE = -1
TERMINAL = -2


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
    """A finite process. Host arrays; what runs inside jit works on their `device` copies."""

    num_agents: int
    num_actions: int
    levels: tuple[int, ...]
    """Histories of depth d are rows levels[d] to levels[d + 1]."""
    parent: Int[np.ndarray, "N"]
    """-1 at the root."""
    first_child: Int[np.ndarray, "N"]
    num_children: Int[np.ndarray, "N"]
    incoming_action: Int[np.ndarray, "N"]
    """The action, or the chance outcome, that leads here from the parent; -1 at the root."""
    player: Int[np.ndarray, "N"]
    """The agent that acts here, CHANCE or TERMINAL."""
    chance: Float[np.ndarray, "N"]
    """The probability of the chance outcome that leads here; 1 after an agent's action."""
    rewards: Float[np.ndarray, "N P"]
    """Every agent's reward on arrival, as the game counts it: not shifted."""
    information_state: Int[np.ndarray, "N"]
    """The acting agent's information state; -1 where no agent acts."""
    state_player: Int[np.ndarray, "S"]
    """The agent that each information state belongs to: agent by agent, and own turn by own turn."""
    legal: Bool[np.ndarray, "S A"]
    features: Float[np.ndarray, "S D"]
    """Information-state tensors: what a network sees."""
    information_state_strings: tuple[str, ...]
    name: str = "process"

    @property
    def num_histories(self) -> int:
        """N: histories of every kind, chance and terminal ones included."""
        return len(self.parent)

    @property
    def num_information_states(self) -> int:
        """S: information states of all agents."""
        return len(self.legal)

    def states_of(self, agent: int) -> slice:
        """The rows of the information states of `agent`."""
        start, stop = np.searchsorted(self.state_player, [agent, agent + 1])
        return slice(int(start), int(stop))

    def along_paths(self, values: np.ndarray, combine: np.ufunc = np.add) -> np.ndarray:
        """`values` [N, ...] combined over all histories on the way to each, itself included."""
        return along_paths(values, self.parent, self.levels, combine)

    @functools.cached_property
    def turns(self) -> Int[np.ndarray, "N P"]:
        """How many actions each agent has taken before each history."""
        return self.along_paths(acted(self.parent, self.player, self.num_agents).astype(np.int32))

    @functools.cached_property
    def _after_decision(self) -> Int[np.ndarray, "N P"]:
        """The history right after each agent's last decision before each history; -1 if it has made none."""
        moved = acted(self.parent, self.player, self.num_agents)
        rows = np.arange(self.num_histories, dtype=np.int32)[:, None]
        return self.along_paths(np.where(moved, rows, np.int32(-1)), np.maximum)  # later ones stand below

    @functools.cached_property
    def previous_decision(self) -> Int[np.ndarray, "N P"]:
        """Each agent's last decision strictly above each history; -1 where it has made none."""
        after = self._after_decision
        return np.where(after >= 0, self.parent[after], np.int32(-1))

    @functools.cached_property
    def previous_action(self) -> Int[np.ndarray, "N P"]:
        """The action that each agent took at its `previous_decision`; -1 where it has made none."""
        after = self._after_decision
        return np.where(after >= 0, self.incoming_action[after], np.int32(-1))

    @functools.cached_property
    def chance_reach(self) -> Float[np.ndarray, "N"]:
        """The probability of all chance outcomes on the way to each history."""
        return self.along_paths(self.chance, np.multiply)

    @functools.cached_property
    def final_returns(self) -> Float[np.ndarray, "Z P"]:
        """What every agent gets by the end, for each terminal history."""
        return self.along_paths(self.rewards)[self.player == TERMINAL]

    @functools.cached_property
    def best_return_to_go(self) -> Float[np.ndarray, "N P"]:
        """The largest return that can still follow each history, agent by agent.

        Where rewards come at terminal histories alone it is the game's largest return everywhere.
        """
        terminal = self.player == TERMINAL
        bounds = np.zeros((self.num_histories, self.num_agents))
        if not np.any(self.rewards[~terminal]):
            bounds[~terminal] = self.rewards[terminal].max(axis=0)
            return bounds
        for depth in range(len(self.levels) - 3, -1, -1):
            start, stop, end = self.levels[depth : depth + 3]
            inner = start + np.flatnonzero(~terminal[start:stop])
            through = self.rewards[stop:end] + bounds[stop:end]
            offsets = self.first_child[inner] - stop
            bounds[inner] = np.maximum.reduceat(through, offsets, axis=0)
        return bounds

    @functools.cached_property
    def shifted_rewards(self) -> Float[np.ndarray, "N P"]:
        """Rewards shifted to be never positive, without changing any decision.

        Each is r + best(h') − best(h), with the best return-to-go of both ends. Along every trajectory
        the sum is the return less its largest possible value: a constant, so advantages are unchanged.
        For terminal rewards it is the utility less its maximum.
        """
        best = self.best_return_to_go
        shifted = self.rewards + best
        shifted[1:] -= best[self.parent[1:]]
        shifted[0] = 0.0
        return np.minimum(shifted, 0.0)  # rounding

    @functools.cached_property
    def shifted_returns(self) -> Float[np.ndarray, "N P"]:
        """The sum of shifted rewards up to each history."""
        return self.along_paths(self.shifted_rewards)

    @functools.cached_property
    def return_shift(self) -> Float[np.ndarray, "P"]:
        """What must be added to a shifted return to get the game's own."""
        return self.best_return_to_go[0] + self.rewards[0]

    @functools.cached_property
    def spec(self) -> process.Spec:
        """The sizes and bounds, as a Process."""
        arrivals = self.shifted_rewards.copy()
        for start, stop in itertools.pairwise(self.levels[1:]):
            # Rewards at chance histories are received with the next active one.
            above = self.parent[start:stop]
            arrivals[start:stop] += np.where((self.player[above] == CHANCE)[:, None], arrivals[above], 0.0)
        return process.Spec(
            num_agents=self.num_agents,
            num_actions=self.num_actions,
            observation_size=self.features.shape[1],
            reward_bound=float(-arrivals.min()),
            horizon=int(self.turns.sum(axis=1).max()),
            return_bound=float(-self.shifted_returns.min()),
        )

    @functools.cached_property
    def device(self) -> "DeviceTree":
        """The arrays that playing needs, float32, ready for jit."""
        return _device_tree(self)

    def initial(self, *, key: types.Key) -> "TreeHistory":
        """The root, after the daimon's opening moves."""
        root = jnp.zeros((), jnp.int32)
        return _reply(self.device, root, jnp.zeros(self.num_agents, jnp.float32), key)

    def active_agent(self, history: "TreeHistory") -> Int[Array, ""]:
        """Whose turn it is; at a terminal history, agent 0 for want of any."""
        return jnp.maximum(self.device.player[history.row], 0)

    def observation(self, history: "TreeHistory") -> Float[Array, "D"]:
        """The information-state tensor; zeros at a terminal history."""
        state = self.information_state_of(history)
        return jnp.where(state >= 0, self.device.features[state], 0.0)

    def information_state_of(self, history: "TreeHistory") -> Int[Array, ""]:
        """The row of the active agent's information state; -1 at a terminal history."""
        return self.device.information_state[history.row]

    def legal_actions(self, history: "TreeHistory") -> Bool[Array, "A"]:
        """The legal actions of the information state."""
        state = self.information_state_of(history)
        return self.device.legal[state] & (state >= 0)

    def apply(self, history: "TreeHistory", action: types.Action, *, key: types.Key) -> "TreeHistory":
        """The child that `action` leads to, and then chance until an agent is to act."""
        state = self.information_state_of(history)
        row = self.device.first_child[history.row] + self.device.action_rank[state, action]
        following = _reply(self.device, row, self.device.rewards[row], key)
        ended = self.continuation(history) == 0
        return jax.tree.map(lambda old, new: jnp.where(ended, old, new), history, following)

    def reward(self, history: "TreeHistory") -> Float[Array, "P"]:
        """Shifted rewards since the last decision, those of chance histories included."""
        return history.reward

    def continuation(self, history: "TreeHistory") -> Float[Array, ""]:
        """0 at terminal histories, 1 elsewhere."""
        return (self.device.player[history.row] != TERMINAL).astype(jnp.float32)


def acted(
    parent: Int[np.ndarray, "N"], player: Int[np.ndarray, "N"], num_agents: int
) -> Bool[np.ndarray, "N P"]:
    """Whether it was each agent's action that led to each history."""
    return (player[parent][:, None] == np.arange(num_agents)) & (parent >= 0)[:, None]


def along_paths(
    values: np.ndarray, parent: Int[np.ndarray, "N"], levels: Sequence[int], combine: np.ufunc = np.add
) -> np.ndarray:
    """`values` [N, ...] combined over all histories on the way to each, itself included."""
    found = values.copy()
    for start, stop in itertools.pairwise(levels[1:]):
        found[start:stop] = combine(found[parent[start:stop]], found[start:stop])
    return found


def at_turn(values: np.ndarray, player: Int[np.ndarray, "N"]) -> np.ndarray:
    """Of `values` [N, P], those of the agent that acts at each history; agent 0's where none acts."""
    return np.take_along_axis(values, np.maximum(player, 0)[:, None], axis=1)[:, 0]


class TreeHistory(NamedTuple):
    """A history of a tree while it is being played."""

    row: Int[Array, ""]
    reward: Float[Array, "P"]


class DeviceTree(NamedTuple):
    """What playing on a tree reads, as device arrays."""

    first_child: Int[Array, "N"]
    num_children: Int[Array, "N"]
    player: Int[Array, "N"]
    rewards: Float[Array, "N P"]
    information_state: Int[Array, "N"]
    action_rank: Int[Array, "S A"]
    """The place of each legal action among the children."""
    legal: Bool[Array, "S A"]
    features: Float[Array, "S D"]
    alias_threshold: Float[Array, "N"]
    alias: Int[Array, "N"]


@jax.jit
def _reply(device: DeviceTree, row: Array, reward: Array, key: types.Key) -> TreeHistory:
    """The history at `row`, or where it is the daimon's turn there, the next at which it is not."""

    def is_chance(carry: tuple[Array, Array, types.Key]) -> Bool[Array, ""]:
        return device.player[carry[0]] == CHANCE

    def draw(carry: tuple[Array, Array, types.Key]) -> tuple[Array, Array, types.Key]:
        row, reward, key = carry
        key, here = jax.random.split(key)
        # Walker's alias method: one uniform number and two look-ups for any number of outcomes.
        uniform = jax.random.uniform(here, dtype=jnp.float32)
        scaled = uniform * device.num_children[row].astype(jnp.float32)
        column = jnp.minimum(scaled.astype(jnp.int32), device.num_children[row] - 1)
        child = device.first_child[row] + column
        kept = scaled - column.astype(jnp.float32) < device.alias_threshold[child]
        child = jnp.where(kept, child, device.alias[child])
        return child, reward + device.rewards[child], key

    row, reward, _ = jax.lax.while_loop(is_chance, draw, (row, reward, key))
    return TreeHistory(row, reward)


def _device_tree(tree: Tree) -> DeviceTree:
    threshold, alias = _alias_tables(tree)
    rank = np.cumsum(tree.legal, axis=1) - 1
    with jax.ensure_compile_time_eval():
        return DeviceTree(
            first_child=jnp.asarray(tree.first_child, jnp.int32),
            num_children=jnp.asarray(tree.num_children, jnp.int32),
            player=jnp.asarray(tree.player, jnp.int32),
            rewards=jnp.asarray(tree.shifted_rewards, jnp.float32),
            information_state=jnp.asarray(tree.information_state, jnp.int32),
            action_rank=jnp.asarray(np.maximum(rank, 0), jnp.int32),
            legal=jnp.asarray(tree.legal),
            features=jnp.asarray(tree.features, jnp.float32),
            alias_threshold=jnp.asarray(threshold, jnp.float32),
            alias=jnp.asarray(alias, jnp.int32),
        )


def _alias_tables(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Walker's tables for the children of every chance history; 1 and oneself elsewhere."""
    threshold = np.ones(tree.num_histories)
    alias = np.arange(tree.num_histories)
    for row in np.flatnonzero(tree.player == CHANCE):
        first, count = int(tree.first_child[row]), int(tree.num_children[row])
        block = slice(first, first + count)
        threshold[block], other = alias_table(tree.chance[block])
        alias[block] = first + other
    return threshold, alias


def alias_table(
    probabilities: Float[np.ndarray, "k"],
) -> tuple[Float[np.ndarray, "k"], Int[np.ndarray, "k"]]:
    """Walker's alias method: one uniform number and two look-ups draw from any distribution.

    A column is drawn uniformly; it is kept with the probability `threshold`, and else is its `alias`. All
    thresholds are 1 where the distribution is uniform.
    """
    count = len(probabilities)
    threshold, alias = np.ones(count), np.arange(count)
    scaled = probabilities * count
    if np.allclose(scaled, 1.0, rtol=0, atol=1e-12):
        return threshold, alias
    small = [i for i in range(count) if scaled[i] < 1]
    large = [i for i in range(count) if scaled[i] >= 1]
    while small and large:
        little, much = small.pop(), large[-1]
        threshold[little], alias[little] = scaled[little], much
        scaled[much] -= 1 - scaled[little]
        if scaled[much] < 1:
            small.append(large.pop())
    return threshold, alias
