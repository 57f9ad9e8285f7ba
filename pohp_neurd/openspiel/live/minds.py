"""What players do at the states of a block: every agent state is looked at once, whoever meets it how often.

In lock step most episodes of a block see what others have seen, all of them at the first move. The network is
called for what is new, and everything else is read from a table of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from jaxtyping import Bool, Float, Int

from pohp_neurd import policy
from pohp_neurd.openspiel import uniforms


def seer(observer: Any, num_seats: int) -> Callable[[Any, int], bytes]:
    """(state, seat) -> what is seen, as bytes: the game's tensor, the seat, and which actions are legal."""
    set_from, tensor = observer
    tails = [row.tobytes() for row in np.eye(num_seats, dtype=np.float32)]

    def see(state: Any, seat: int) -> bytes:
        set_from(state, seat)
        # With the mask: nothing promises that a tensor tells what is legal.
        return b"".join((tensor, tails[seat], bytes(state.legal_actions_mask())))

    return see


class Minds:
    """The agent states that a block has met, numbered, and what each of `players` does there.

    `players` are as in `play.play`; their parameters must not change meanwhile.
    """

    def __init__(self, world: Any, players: Sequence[Any]) -> None:
        from pohp_neurd.openspiel.live import forward  # numba takes a second to load

        self._host, self._world, self._players = forward, world, players
        networks = [hasattr(player, "parameters") for player in players]
        self.hosted = [hosted(p) if net else None for p, net in zip(players, networks, strict=True)]
        """The networks among the players; None for others."""
        self._outputs: list[list[tuple[np.ndarray, np.ndarray | None]]] = [[] for _ in players]
        self._asked = [i for i, p in enumerate(players) if p is not None and not networks[i]]
        self._known: dict[bytes, int] = {}
        self._fresh: list[bytes] = []
        none = np.zeros((0, world.num_features), np.float32), np.zeros((0, world.num_actions), bool)
        self._pieces = [none]
        self._see = seer(world.observer, world.num_seats)
        # For every player, of every agent state: where actions end in [0, 1), their probabilities, a value.
        shape = (len(players), 256, world.num_actions)
        self._ends, self._chances, self._values = np.empty(shape), np.empty(shape), np.empty(shape[:2])

    def look(self, nodes: Sequence[Any], states: Sequence[Any], seats: Sequence[int]) -> Int[np.ndarray, "N"]:
        """The numbers of the agent states that `seats` are in; those that are new are thought about.

        `nodes` are of `openings`, which know what is seen; None for a state that is new.
        """
        known, fresh, see = self._known, self._fresh, self._see
        rows = []
        for node, state, seat in zip(nodes, states, seats, strict=True):
            seen = see(state, seat) if node is None else node.seen
            row = known.get(seen)
            if row is None:
                row = known[seen] = len(known)
                fresh.append(seen)
            rows.append(row)
        if fresh:
            self._think()
        return np.array(rows, np.int32)

    def _think(self) -> None:
        size, num_actions = 4 * self._world.num_features, self._world.num_actions
        table = np.frombuffer(b"".join(self._fresh), np.uint8).reshape(-1, size + num_actions)
        seen = np.ascontiguousarray(table[:, :size]).view(np.float32)
        legal = np.ascontiguousarray(table[:, size:]).view(bool)
        self._pieces.append((seen, legal))
        first, last = len(self._known) - len(seen), len(self._known)
        while last > self._ends.shape[1]:
            self._ends, self._chances = (np.concatenate([a, a], axis=1) for a in (self._ends, self._chances))
            self._values = np.concatenate([self._values, self._values], axis=1)
        for player, think in enumerate(self.hosted):
            logits, values = (np.zeros(legal.shape, np.float32), None) if think is None else think(seen)
            self._outputs[player].append((logits, values))
            tables = self._chances[player, first:last], self._ends[player, first:last]
            self._host.policies(logits, legal, *tables)
            self._values[player, first:last] = 0.0 if values is None else values
        self._fresh.clear()

    def decide(
        self,
        rows: Int[np.ndarray, "N"],
        owner: Int[np.ndarray, "N"],
        uniform: Float[np.ndarray, "N"],
        states: Sequence[Any],
        seats: Sequence[int],
    ) -> tuple[Int[np.ndarray, "N"], Float[np.ndarray, "N"], Float[np.ndarray, "N"]]:
        """The actions of the players `owner` in `rows`, their probabilities, and the states' values.

        An OpenSpiel policy is asked at the state itself.
        """
        tables = self._ends, self._chances, self._values
        actions, likely, values = self._host.draw(*tables, owner, rows, uniform)
        for place in np.flatnonzero(np.isin(owner, self._asked)).tolist() if self._asked else ():
            player, state = self._players[owner[place]], states[place]
            # C++ asks the state for the player.
            args = (state,) if isinstance(player, pyspiel.Policy) else (state, seats[place])
            told = dict(player.action_probabilities(*args))
            action = uniforms.pick(list(told.items()), float(uniform[place]))
            actions[place], likely[place] = action, told[action]
        return actions, likely, values

    def thought(self, player: int) -> tuple[Float[np.ndarray, "U A"], Float[np.ndarray, "U"] | None]:
        """The logits of a player at all agent states so far, and the values if it has a critic."""
        logits, values = zip(*self._outputs[player], strict=True)
        return np.concatenate(logits), None if values[0] is None else np.concatenate(values)

    def seen(self) -> tuple[Float[np.ndarray, "U D"], Bool[np.ndarray, "U A"]]:
        """The features of all agent states so far, and the actions that are legal there."""
        features, legal = zip(*self._pieces, strict=True)
        return np.concatenate(features), np.concatenate(legal)


def hosted(player: Any) -> policy.Hosted:
    """A network at many agent states, on the host or by JAX."""
    model = player.model
    if model.host is None:
        return _Jax(model.apply, jax.device_get(player.parameters))
    return model.host.network(np.asarray(model.host.pack(player.parameters)))


def summed(
    parts: Float[np.ndarray, "M K"], rows: Int[np.ndarray, "M"], count: int
) -> Float[np.ndarray, "U K"]:
    """The sums of the parts that belong to each of `count` agent states."""
    from pohp_neurd.openspiel.live import forward

    found = np.zeros((count, parts.shape[1]), np.float32)
    forward.gather(parts, rows, found)
    return found


_ROWS = 64


class _Jax:
    """In blocks of one size, so that nothing is compiled twice."""

    def __init__(self, apply: policy.Apply, parameters: Any) -> None:
        self._apply, self._parameters = apply, parameters
        self._blocks: list[np.ndarray] = []
        self._places, self._critic = np.zeros(0, np.int64), False

    def __call__(self, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        count = -(-len(seen) // _ROWS)
        padded = np.zeros((count, _ROWS, seen.shape[1]), np.float32)
        padded.reshape(-1, seen.shape[1])[: len(seen)] = seen
        self._places = np.concatenate([self._places, len(self._blocks) * _ROWS + np.arange(len(seen))])
        self._blocks.extend(padded)
        found = [jax.device_get(_outputs(self._apply, self._parameters, part)) for part in padded]
        logits = np.concatenate([output.logits for output in found])[: len(seen)]
        self._critic = found[0].value is not None
        if not self._critic:
            return logits, None
        return logits, np.concatenate([output.value for output in found])[: len(seen)]

    def pullback(self, slopes: np.ndarray) -> Any:
        spread = np.zeros((len(self._blocks) * _ROWS, slopes.shape[1]), np.float32)
        spread[self._places] = slopes
        total = jax.tree.map(np.zeros_like, self._parameters)
        for block, part in zip(self._blocks, spread.reshape(len(self._blocks), _ROWS, -1), strict=True):
            one: Any = (part[:, :-1], part[:, -1]) if self._critic else (part, None)
            found = jax.device_get(_pulled(self._apply, self._parameters, block, one))
            total = jax.tree.map(np.add, total, found)
        return total


def _many(apply: Any, parameters: Any, seen: Any) -> Any:
    return jax.vmap(apply, in_axes=(None, 0))(parameters, jnp.asarray(seen))


def _back(apply: Any, parameters: Any, seen: Any, slopes: Any) -> Any:
    return jax.vjp(lambda weights: _many(apply, weights, seen), parameters)[1](policy.Output(*slopes))[0]


# One thread: more of them would change the last bits.
_outputs, _pulled = (
    jax.jit(function, static_argnums=0, compiler_options={"xla_cpu_multi_thread_eigen": False})
    for function in (_many, _back)
)
