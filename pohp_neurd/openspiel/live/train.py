"""Self-play in games too big to compile: live episodes, then one update from all their decisions.

A training loop: it feeds parameters back. Every update plays its own fresh episodes, whose chances are a
function of the key and the number of the update alone. So nothing of a running game has to be kept: `State`
is one pytree of arrays, and a run that is resumed from it goes on to the bit as if it had never stopped.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from pohp_neurd import checks, directions, learners, optimizers, policy, shaping, types
from pohp_neurd.openspiel.live import play


class State(NamedTuple):
    """What must persist between updates."""

    learner: learners.State
    key: types.Key
    """Never changes: update t draws from `fold_in(key, t)`."""
    episodes: Int[np.ndarray, ""]
    decisions: Int[np.ndarray, ""]
    """Decisions that were learnt from."""


@dataclasses.dataclass(frozen=True)
class Trainer:
    """Self-play in `world`; with `seat`, a learner in that seat against a frozen `opponent` in all others."""

    world: play.LiveGame
    model: policy.Model
    """Of `LiveGame.features`, such as `play.network` makes it."""
    learner: learners.Learner
    """Of the model; its update is compiled here."""
    batch_episodes: int = 256
    """Episodes of one update."""
    slots: int = 256
    """Episodes side by side in one network call."""
    separate: bool = False
    """Whether every seat has parameters of its own, as in `play.network`."""
    alternating: bool = False
    """Whether one seat learns at each update, in turn, instead of all."""
    seat: int | None = None
    """The only seat that learns; None: all do."""
    opponent: play.Player = None
    """Who plays the other seats, if only one learns."""
    seed: int = 0
    """Of the first parameters and of all episodes."""

    def __post_init__(self) -> None:
        checks.count("batch_episodes", self.batch_episodes)
        checks.count("slots", self.slots)
        checks.non_negative("seed", self.seed)
        if self.seat is not None:
            checks.index("seat", self.seat, self.world.num_seats)
            if self.alternating:
                raise ValueError(
                    f"alternating is for seats that learn in turn, but only seat {self.seat} learns."
                )
        object.__setattr__(self, "learner", self.learner._replace(update=jax.jit(self.learner.update)))


def default_learner(
    model: policy.Model, *, learning_rate: float = 0.003, magnet: shaping.Magnet | None = None
) -> learners.Learner:
    """NeuRD-CIX with Adam; without a magnet, which would only hold a responder back."""
    return learners.learner(
        model.apply, directions.neurd_cix(0.1), optimizers.optimizer("adam", learning_rate), magnet=magnet
    )


def responder(
    world: play.LiveGame,
    frozen: play.Player,
    seat: int,
    *,
    seed: int = 0,
    hidden_layers: Sequence[int] = (128, 128),
    learning_rate: float = 0.003,
    batch_episodes: int = 256,
) -> tuple[Trainer, State]:
    """Who learns to respond to `frozen`, from one seat, and where it begins.

    From where a frozen network stands, a responder has only to find its mistakes; from scratch it would first
    have to learn the game, and a bound from it be far below 0.
    `hidden_layers` are of its network, where `frozen` is none. Returns a trainer, and its state before the
    first update.
    """
    known = frozen if isinstance(frozen, play.Network) else None
    model = play.network(world, hidden_layers) if known is None else known.model
    learner = default_learner(model, learning_rate=learning_rate)
    made = Trainer(
        world, model, learner, batch_episodes=batch_episodes, seat=seat, opponent=frozen, seed=seed
    )
    return made, init(made, None if known is None else known.parameters)


def init(trainer: Trainer, parameters: types.Parameters | None = None) -> State:
    """Before the first update: with fresh parameters, or with those that are given."""
    key = jax.random.key(trainer.seed)
    if parameters is None:
        parameters = trainer.model.init(key=jax.random.fold_in(key, 0))
    counts = (np.zeros((), np.int64), np.zeros((), np.int64))
    return State(trainer.learner.init(parameters), jax.random.fold_in(key, 1), *counts)


def advance(trainer: Trainer, state: State, num_updates: int) -> tuple[State, learners.Info]:
    """`num_updates` updates later, each from `batch_episodes` fresh episodes; and the last one's figures.

    Raises `checks.Diverged` if the learner's state leaves the finite numbers.
    """
    checks.count("num_updates", num_updates)
    for _ in range(num_updates):
        state, info = update(trainer, state)
        if not checks.all_finite(state.learner):
            raise checks.Diverged(
                "a parameter or the optimizer's state",
                after=f"update {int(state.learner.updates)}",
                remedy="learning_rate",
            )
    return state, info


def network(trainer: Trainer, state: State) -> play.Network:
    """The trained network as a player, for matches and best responses."""
    return play.Network(trainer.model, state.learner.parameters)


def update(trainer: Trainer, state: State) -> tuple[State, learners.Info]:
    """One update later, and its figures; whether it has diverged is left to the caller."""
    world, batch_episodes = trainer.world, trainer.batch_episodes
    seats = np.arange(world.num_seats)
    mine = np.ones(world.num_seats, bool) if trainer.seat is None else seats == trainer.seat
    at_table: list[play.Player] = [network(trainer, state)]
    if not mine.all():
        at_table.append(trainer.opponent)
    played = play.play(
        world,
        at_table,
        batch_episodes,
        slots=trainer.slots,
        key=jax.random.fold_in(state.key, state.learner.updates),
        seating=np.tile((~mine).astype(np.int32), (batch_episodes, 1)),
    )
    turn = int(state.learner.updates) % world.num_seats
    learns = seats == turn if trainer.alternating else mine
    chosen = learns[played.seat]
    count = int(chosen.sum())
    weight = 1.0 / batch_episodes
    batch = play.decisions(played, world, size=play.padded_size(count), weight=weight, chosen=chosen)
    learner, info = trainer.learner.update(state.learner, batch)
    if trainer.alternating and trainer.separate:
        # What a seat's own optimizer and magnet do without a gradient is undone; only the count goes on.
        learner = jax.tree.map(
            lambda new, old: old.at[turn].set(new[turn]) if new.ndim else new, learner, state.learner
        )
    episodes = state.episodes + np.int64(batch_episodes)
    return State(learner, state.key, episodes, state.decisions + np.int64(count)), info
