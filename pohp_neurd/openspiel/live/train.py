"""Self-play in games too big to compile: live episodes, then one update from all their decisions.

A training loop: it feeds parameters back. An update's episodes are cut into blocks. What a block's chances
are is a function of the key, the update and the block alone, and what it says of the parameters is one
gradient; the learner adds these up in the blocks' order. So blocks can be played anywhere, and nothing of a
running game has to be kept: `State` is one pytree of arrays, and a run that is resumed from it goes on to the
bit as if it had never stopped.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from pohp_neurd import (
    checks,
    directions,
    learners,
    optimizers,
    policy,
    shaping,
    tally_learners,
    types,
)
from pohp_neurd.openspiel.live import minds, play


class State(NamedTuple):
    """What must persist between updates."""

    learner: learners.State
    key: types.Key
    """Never changes: block b of update t draws from `play.streams(key, t, b)`."""
    episodes: Int[np.ndarray, ""]
    decisions: Int[np.ndarray, ""]
    """Decisions that were learnt from."""
    average: tally_learners.Smoothed | None
    """Of the parameters; None if none is kept."""
    shown: Any
    """With staleness, what the blocks of the next update are played with: `shown` of the state before."""


class Evidence(NamedTuple):
    """What the decisions of some episodes say of the parameters."""

    gradient: types.Parameters
    info: learners.Info
    decisions: int
    entries: int
    """Legal actions of all decisions."""


Collect = Callable[..., list[Evidence]]
"""(trainer, what is shown, the key's words, update, following) -> the evidence of every block, in order.

`following` is what the blocks of the next update are going to be shown, if that is known already."""


@dataclasses.dataclass(frozen=True)
class Trainer:
    """Self-play in `world`; with `seat`, a learner in that seat against a frozen `opponent` in all others."""

    world: play.LiveGame
    model: policy.Model
    """Of `LiveGame.features`, such as `play.network` makes it."""
    learner: learners.Learner
    """Of the model; its slopes are compiled here."""
    batch_episodes: int = 256
    """Episodes of one update."""
    block: int = play.BLOCK
    """Episodes of one block."""
    average_rate: float = 0.0
    """At which the average of the parameters moves; 0: there is none."""
    staleness: int = 0
    """1: blocks are played with the parameters of one update before, so that they need not wait for it."""
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
    step: Callable[..., Any] = dataclasses.field(init=False, repr=False, compare=False)
    """`_stepped` of this trainer, compiled."""

    def __post_init__(self) -> None:
        checks.count("batch_episodes", self.batch_episodes)
        checks.count("block", self.block)
        checks.in_unit_interval("average_rate", self.average_rate)
        checks.index("staleness", self.staleness, 2)
        checks.non_negative("seed", self.seed)
        if self.seat is not None:
            checks.index("seat", self.seat, self.world.num_seats)
            if self.alternating:
                raise ValueError(
                    f"alternating is for seats that learn in turn, but only seat {self.seat} learns."
                )
        # One thread: more of them would change the last bits.
        alone = {"xla_cpu_multi_thread_eigen": False}
        parts = (functools.partial(_slopes, self.learner.slopes), functools.partial(_stepped, self))
        slopes, step = (jax.jit(part, compiler_options=alone) for part in parts)
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "learner", self.learner._replace(slopes=slopes))

    @property
    def blocks(self) -> int:
        """Blocks of one update."""
        return -(-self.batch_episodes // self.block)


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
    begun = trainer.learner.init(parameters)
    counts = (np.zeros((), np.int64), np.zeros((), np.int64))
    average = None
    if trainer.average_rate:
        average = tally_learners.Smoothed(parameters, jnp.zeros((), jnp.int32))
    stale = shown(begun) if trainer.staleness else None
    return State(begun, jax.random.fold_in(key, 1), *counts, average, stale)


def shown(learner: learners.State) -> learners.State:
    """What it takes to play a block, and to learn from it: all but the optimizer's state, on the host."""
    return jax.tree.map(np.asarray, learner._replace(optimizer=None))


def size_shown(trainer: Trainer) -> int:
    """The bytes of its arrays."""
    begun = jax.eval_shape(lambda: trainer.learner.init(trainer.model.init(key=jax.random.key(0))))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(begun._replace(optimizer=None)))


def advance(trainer: Trainer, state: State, num_updates: int) -> tuple[State, learners.Info]:
    """`num_updates` updates later, each from `batch_episodes` fresh episodes; and the last one's figures.

    Raises `checks.Diverged` if the learner's state leaves the finite numbers.
    """
    checks.count("num_updates", num_updates)
    state, info, sound = updates(trainer, state, num_updates)
    if not sound:
        raise checks.Diverged(
            "a parameter or the optimizer's state",
            after=f"update {int(state.learner.updates)}",
            remedy="learning_rate",
        )
    return state, info


def finite(state: State) -> bool:
    """Whether all of the learner's state is: parameters, magnet, the optimizer's own."""
    return bool(_finite(state.learner))


@jax.jit
def _finite(tree: Any) -> Any:
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))


def network(trainer: Trainer, state: State, *, average: bool = False) -> play.Network:
    """The trained network as a player, for matches and best responses; with `average`, the averaged one."""
    if not average:
        return play.Network(trainer.model, state.learner.parameters)
    if state.average is None:
        raise ValueError("this trainer keeps no average: its average_rate is 0.")
    return play.Network(trainer.model, state.average.parameters)


def evidence(
    trainer: Trainer, known: learners.State, words: Sequence[int], update: int, block: int
) -> Evidence:
    """What one block says: `known` as `shown` gives it, `words` of the key."""
    world = trainer.world
    seats = np.arange(world.num_seats)
    mine = np.ones(world.num_seats, bool) if trainer.seat is None else seats == trainer.seat
    at_table: list[play.Player] = [play.Network(trainer.model, known.parameters)]
    if not mine.all():
        at_table.append(trainer.opponent)
    size = min(trainer.block, trainer.batch_episodes - block * trainer.block)
    seating = None if mine.all() else np.tile((~mine).astype(np.int32), (size, 1))
    mind = minds.Minds(world, at_table)
    draws = play.streams(words, update, block)
    played = play.play_block(world, at_table, size, draws, seating=seating, mind=mind)
    learns = seats == update % world.num_seats if trainer.alternating else mine
    chosen = learns[played.seat]
    weight = 1.0 / trainer.batch_episodes
    batch, rows = play.decisions(played, world, weight=weight, chosen=chosen)
    gradient, info = learnt(trainer, known, mind, played, batch, rows)
    return Evidence(gradient, info, int(chosen.sum()), int(batch.legal.sum()))


def learnt(
    trainer: Trainer,
    known: learners.State,
    mind: minds.Minds,
    played: play.Play,
    batch: learners.Decision,
    rows: Int[np.ndarray, "B"],
) -> tuple[types.Parameters, learners.Info]:
    """The gradient of a block's decisions, and its figures, from what the first player thought as it played.

    Slopes of all decisions in one agent state are added up there, and go back through the network once.
    """
    mine, reference = mind.hosted[0], None
    assert mine is not None, "a network learns"
    logits, values = mind.thought(0)
    outputs: Any = policy.Output(logits, values)  # type: ignore[arg-type]  # numpy's
    if known.magnet is not None:
        reference = minds.hosted(play.Network(trainer.model, known.magnet))(played.seen)[0]
    at_decisions = jax.tree.map(lambda leaf: leaf[rows], (outputs, reference))
    slopes, info = (np.asarray(part) for part in trainer.learner.slopes(known.updates, *at_decisions, batch))
    total, width = minds.summed(slopes, rows, len(played.seen)), logits.shape[1]
    gradient = mine.pullback(total[:, :width], None if values is None else total[:, width])
    return gradient, learners.Info(*info)


def _slopes(slopes: Any, *args: Any) -> tuple[Any, Any]:
    """All slopes of a decision in one row, and all figures in another: each array costs a copy."""
    found, info = slopes(*args)
    values = [] if found.value is None else [found.value[:, None]]
    return jnp.concatenate([found.logits, *values], axis=1), jnp.stack(info)


def here(
    trainer: Trainer, known: learners.State, words: Sequence[int], update: int, following: Any = None
) -> list[Evidence]:
    """The evidence of every block, one after the other, in this process."""
    del following  # of use to those who play while this process learns
    return [evidence(trainer, known, words, update, block) for block in range(trainer.blocks)]


def joined(parts: Sequence[Evidence]) -> Evidence:
    """The evidence of all parts: gradients added up in their order, figures as means over all decisions."""
    gradients = [part.gradient for part in parts]
    gradient = jax.tree.map(lambda *leaves: functools.reduce(np.add, leaves), *gradients)
    shares = np.array([part.decisions for part in parts], np.float64)
    counts = np.array([part.entries for part in parts], np.float64)
    table = np.array([part.info for part in parts], np.float64)
    figures: Any = learners.Info(*(shares @ table / max(shares.sum(), 1.0)))
    columns = learners.Info(*table.T)
    spread = np.sqrt(counts @ columns.advantage_scale**2 / max(counts.sum(), 1.0))
    figures = figures._replace(max_weight=columns.max_weight.max(), advantage_scale=spread)
    means = jax.tree.map(np.float32, figures)
    return Evidence(gradient, means, int(shares.sum()), int(counts.sum()))


def update(trainer: Trainer, state: State, collect: Collect = here) -> tuple[State, learners.Info]:
    """One update later, and its figures; whether it has diverged is left to the caller."""
    return updates(trainer, state, 1, collect)[:2]


def updates(
    trainer: Trainer, state: State, most: int, collect: Collect = here
) -> tuple[State, learners.Info, bool]:
    """`most` updates later, or as soon as the state is not `finite`; the last one's figures; if it is."""
    words = play.words_of(state.key)
    for _ in range(most):
        now = shown(state.learner)
        known, following = (state.shown, (now,)) if trainer.staleness else (now, ())
        found = joined(collect(trainer, known, words, int(now.updates), *following))
        learner, average, sound = trainer.step(state.learner, state.average, found.gradient)
        episodes = state.episodes + np.int64(trainer.batch_episodes)
        decisions = state.decisions + np.int64(found.decisions)
        state = State(learner, state.key, episodes, decisions, average, *(following or (None,)))
        if not sound:
            break
    return state, found.info, bool(sound)


def _stepped(
    trainer: Trainer,
    state: learners.State,
    average: tally_learners.Smoothed | None,
    gradient: types.Parameters,
) -> tuple[learners.State, tally_learners.Smoothed | None, Any]:
    """The learner's state after `gradient`, the average, and whether the first is finite."""
    learner = trainer.learner.step(state, gradient)
    if trainer.alternating and trainer.separate:
        # What a seat's own optimizer and magnet do without a gradient is undone; only the count goes on.
        turn = state.updates % trainer.world.num_seats
        learner = jax.tree.map(
            lambda new, old: old.at[turn].set(new[turn]) if new.ndim else new, learner, state
        )
    if average is not None:
        average = tally_learners.smooth(average, learner.parameters, trainer.average_rate)
    return learner, average, _finite(learner)
