"""What players do at the states of a block: every agent state is looked at once, whoever meets it how often.

In lock step most episodes of a block see what others have seen, all of them at the first move. The network is
called for what is new, and everything else is read from a table of it.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from jaxtyping import Bool, Float, Int

from pohp_neurd.openspiel import uniforms


class Minds:
    """The agent states that a block has met, numbered, and what each of `players` does there.

    `players` are as in `play.play`; their parameters must not change meanwhile.
    """

    def __init__(self, world: Any, players: Sequence[Any]) -> None:
        from pohp_neurd.openspiel.live import forward  # numba takes a second to load

        self._host, self._world, self._players = forward, world, players
        networks = [hasattr(player, "parameters") for player in players]
        self._thought = [_forward(p) if net else None for p, net in zip(players, networks, strict=True)]
        self._asked = [i for i, p in enumerate(players) if p is not None and not networks[i]]
        self._known: dict[bytes, int] = {}
        self._fresh: list[bytes] = []
        self._seats = [row.tobytes() for row in np.eye(world.num_seats, dtype=np.float32)]
        self._pieces: list[np.ndarray] = []
        # For every player, of every agent state: where actions end in [0, 1), their probabilities, a value.
        shape = (len(players), 256, world.num_actions)
        self._ends, self._chances, self._values = np.zeros(shape), np.zeros(shape), np.zeros(shape[:2])

    def look(self, states: list[Any], seats: list[int]) -> Int[np.ndarray, "N"]:
        """The numbers of the agent states that `seats` are in; those that are new are thought about."""
        known, fresh, tails = self._known, self._fresh, self._seats
        set_from, tensor = self._world.observer.set_from, self._world.observer.tensor
        rows = []
        for state, seat in zip(states, seats, strict=True):
            set_from(state, seat)
            # With the mask: nothing promises that a tensor tells what is legal.
            seen = tensor.tobytes() + tails[seat] + bytes(state.legal_actions_mask())
            row = known.get(seen)
            if row is None:
                row = known[seen] = len(known)
                fresh.append(seen)
            rows.append(row)
        if fresh:
            self._think()
        return np.array(rows, np.int32)

    def _think(self) -> None:
        seen, legal = self._read(np.frombuffer(b"".join(self._fresh), np.uint8))
        first, last = len(self._known) - len(seen), len(self._known)
        while last > self._ends.shape[1]:
            self._ends, self._chances = (np.concatenate([a, a], axis=1) for a in (self._ends, self._chances))
            self._values = np.concatenate([self._values, self._values], axis=1)
        for player, think in enumerate(self._thought):
            logits, values = (np.zeros(legal.shape, np.float32), None) if think is None else think(seen)
            self._chances[player, first:last], self._ends[player, first:last] = self._host.policies(
                logits, legal
            )
            self._values[player, first:last] = 0.0 if values is None else values
        self._fresh.clear()

    def decide(
        self,
        rows: Int[np.ndarray, "N"],
        owner: Int[np.ndarray, "N"],
        uniform: Float[np.ndarray, "N"],
        states: list[Any],
        seats: list[int],
    ) -> tuple[Int[np.ndarray, "N"], Float[np.ndarray, "N"], Float[np.ndarray, "N"]]:
        """The actions of the players `owner` in `rows`, their probabilities, and the states' values.

        An OpenSpiel policy is asked at the state itself.
        """
        actions = self._host.draw(self._ends, owner, rows, uniform)
        likely = self._chances[owner, rows, actions].astype(np.float32)
        for place in np.flatnonzero(np.isin(owner, self._asked)).tolist() if self._asked else ():
            player, state = self._players[owner[place]], states[place]
            # C++ asks the state for the player.
            args = (state,) if isinstance(player, pyspiel.Policy) else (state, seats[place])
            told = dict(player.action_probabilities(*args))
            action = uniforms.pick(list(told.items()), float(uniform[place]))
            actions[place], likely[place] = action, told[action]
        return actions, likely, self._values[owner, rows].astype(np.float32)

    def seen(self) -> tuple[Float[np.ndarray, "U D"], Bool[np.ndarray, "U A"]]:
        """The features of all agent states so far, and the actions that are legal there."""
        return self._read(np.frombuffer(b"".join(self._known), np.uint8))

    def _read(self, joined: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size, num_actions = 4 * self._world.num_features, self._world.num_actions
        table = joined.reshape(-1, size + num_actions)
        features = np.ascontiguousarray(table[:, :size]).view(np.float32)
        return features, np.ascontiguousarray(table[:, size:]).view(bool)


def _forward(player: Any) -> Any:
    """(agent states) -> logits, values, on the host or by JAX."""
    model, parameters = player.model, jax.device_get(player.parameters)
    if model.host is not None:
        return model.host(parameters)

    def ask(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        # In blocks of one size, so that nothing is compiled twice.
        blocks = -(-len(seen) // _ROWS)
        padded = np.zeros((blocks * _ROWS, seen.shape[1]), np.float32)
        padded[: len(seen)] = seen
        found = [jax.device_get(_outputs(model.apply, parameters, part)) for part in np.split(padded, blocks)]
        logits = np.concatenate([output.logits for output in found])[: len(seen)]
        if found[0].value is None:
            return logits, None
        return logits, np.concatenate([output.value for output in found])[: len(seen)]

    return ask


_ROWS = 64


def _apply(apply: Any, parameters: Any, seen: Any) -> Any:
    return jax.vmap(apply, in_axes=(None, 0))(parameters, jnp.asarray(seen))


# One thread: more of them would change the last bits.
_outputs = jax.jit(_apply, static_argnums=0, compiler_options={"xla_cpu_multi_thread_eigen": False})
