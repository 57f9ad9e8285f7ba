"""Self-play in games too big to compile: live episodes, then one update from all their decisions.

A training loop: it feeds parameters back. An update's episodes are cut into blocks. What a block's chances
are is a function of the key, the update and the block alone, and what it says of the parameters is one
gradient; the learner adds these up in the blocks' order. So blocks can be played anywhere, and nothing of a
running game has to be kept: `State` is one pytree of arrays, and a run that is resumed from it goes on to the
bit as if it had never stopped.
"""

import collections
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int

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
    """No numbers if they were not asked for."""
    decisions: Int[types.ArrayLike, ""]
    entries: Int[types.ArrayLike, ""]
    """Legal actions of all decisions."""


Collect = Callable[..., list[Evidence]]
"""(trainer, what is shown, the key's words, update, told, following) -> the evidence of all blocks, in order.

`told` is whether figures are asked for; `following` is what the blocks of the next update are going to be
shown, if that is known already."""


@dataclasses.dataclass(frozen=True)
class Trainer:
    """Self-play in `world`; with `seat`, a learner in that seat against a frozen `opponent` in all others."""

    world: play.LiveGame
    model: policy.Model
    """Of `LiveGame.features`, such as `play.network` makes it. States have its parameters packed."""
    learner: learners.Learner
    """Of the model."""
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
    packed: policy.Model = dataclasses.field(init=False, repr=False, compare=False)
    """The model of packed parameters."""
    slopes: Callable[..., Any] = dataclasses.field(init=False, repr=False, compare=False)
    """`_slopes` of the learner, compiled."""
    figures: Callable[..., Any] = dataclasses.field(init=False, repr=False, compare=False)
    """`_figures` of the learner, compiled: as dear as slopes, and not of every update."""
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
        jit = functools.partial(jax.jit, compiler_options=alone)
        for name, part in (("slopes", _slopes), ("figures", _figures)):
            compiled = jit(functools.partial(part, self.learner.slopes), static_argnames="critic")
            object.__setattr__(self, name, compiled)
        object.__setattr__(self, "step", jit(functools.partial(_stepped, self)))
        object.__setattr__(self, "packed", self.model.packed())

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
    if trainer.model.host is not None:
        parameters = jnp.asarray(trainer.model.host.pack(parameters))
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


def forms(trainer: Trainer) -> tuple[learners.State, Evidence]:
    """The shapes of what is `shown`, and of the evidence of a block."""
    begun = jax.eval_shape(lambda: trainer.learner.init(trainer.packed.init(key=jax.random.key(0))))
    figure, count = (jax.ShapeDtypeStruct((), kind) for kind in (np.float64, np.int64))
    known: Any = begun._replace(optimizer=None)
    figures: Any = [figure] * len(learners.Info._fields)
    counts: Any = [count] * 2
    return known, Evidence(known.parameters, learners.Info(*figures), *counts)


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
    alike: dict[Any, list[Any]] = collections.defaultdict(list)
    for leaf in jax.tree.leaves(tree):
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            alike[leaf.shape].append(leaf)
    # One look at all leaves of a shape: 0 · x is 0 if x is finite, and else no number.
    return jnp.all(jnp.stack([jnp.all(sum(0 * leaf for leaf in same) == 0) for same in alike.values()]))


def network(trainer: Trainer, state: State, *, average: bool = False) -> play.Network:
    """The trained network as a player, for matches and best responses; with `average`, the averaged one."""
    if average and state.average is None:
        raise ValueError("this trainer keeps no average: its average_rate is 0.")
    chosen = state.average if average and state.average is not None else state.learner
    return play.Network(trainer.model, whole(trainer, chosen.parameters))


def whole(trainer: Trainer, parameters: types.Parameters) -> types.Parameters:
    """Parameters of a state as the model has them."""
    host = trainer.model.host
    return parameters if host is None else host.unpack(np.asarray(parameters))


Begun = tuple[tuple[np.random.Generator, np.random.Generator], play.Deal]
"""A block's streams, and what has been dealt from the first."""


def begin(trainer: Trainer, words: Sequence[int], update: int, block: int) -> Begun:
    """What can be done for a block without the parameters."""
    draws = play.streams(words, update, block)
    return draws, play.deal(trainer.world, _size(trainer, block), draws[0])


def _size(trainer: Trainer, block: int) -> int:
    """The episodes of that block."""
    return min(trainer.block, trainer.batch_episodes - block * trainer.block)


def evidence(
    trainer: Trainer,
    known: learners.State,
    words: Sequence[int],
    update: int,
    block: int,
    *,
    told: bool = True,
    begun: Begun | None = None,
) -> Evidence:
    """What one block says: `known` as `shown` gives it, `words` of the key; `begun` if it has been."""
    world, size = trainer.world, _size(trainer, block)
    learning = trainer.seat
    at_table: list[play.Player] = [play.Network(trainer.packed, known.parameters)]
    seating = None
    if learning is not None:
        at_table.append(trainer.opponent)
        seating = np.tile((np.arange(world.num_seats) != learning).astype(np.int32), (size, 1))
    mind = minds.Minds(world, at_table)
    draws, dealt = begun or begin(trainer, words, update, block)
    played = play.play_block(world, at_table, size, draws, seating=seating, mind=mind, dealt=dealt)
    if trainer.alternating:
        learning = update % world.num_seats
    chosen = None if learning is None else played.seat == learning
    return learnt(trainer, known, mind, played, chosen, told=told)


def learnt(
    trainer: Trainer,
    known: learners.State,
    mind: minds.Minds,
    played: play.Play,
    chosen: Bool[np.ndarray, "M"] | None = None,
    *,
    told: bool = True,
) -> Evidence:
    """What the (`chosen`) decisions of a block say, by what the first player thought as it played.

    Slopes of all decisions in one agent state are added up there, and go back through the network once.
    """
    mine, reference = mind.hosted[0], None
    assert mine is not None, "a network learns"
    if known.magnet is not None:
        reference = minds.hosted(play.Network(trainer.packed, known.magnet))(played.seen)[0]
    thought = mind.thought(0)
    weight = 1.0 / trainer.batch_episodes
    batch = play.decisions(played, trainer.world, thought, reference, weight=weight, chosen=chosen)
    critic = thought[1] is not None
    slopes = np.asarray(trainer.slopes(known.updates, *batch[1:], critic=critic))
    gradient = mine.pullback(minds.summed(slopes, batch.rows, len(played.seen)))
    info = _UNTOLD
    if told:
        info = learners.Info(*np.asarray(trainer.figures(known.updates, *batch[1:], critic=critic)).tolist())
    count = len(played.seat) if chosen is None else np.count_nonzero(chosen)
    return Evidence(gradient, info, count, np.count_nonzero(batch.legal))


_UNTOLD = learners.Info(*np.full(len(learners.Info._fields), np.nan))


def _slopes(slopes: Any, updates: Any, *batch: Any, critic: bool) -> Any:
    """All slopes of a decision in one row: each array costs a copy."""
    found, _ = slopes(updates, *play.unpacked(*batch, critic=critic))
    values = [] if found.value is None else [found.value[:, None]]
    return jnp.concatenate([found.logits, *values], axis=1)


def _figures(slopes: Any, updates: Any, *batch: Any, critic: bool) -> Any:
    return jnp.stack(slopes(updates, *play.unpacked(*batch, critic=critic))[1])


def here(
    trainer: Trainer,
    known: learners.State,
    words: Sequence[int],
    update: int,
    told: bool = True,
    following: Any = None,
) -> list[Evidence]:
    """The evidence of every block, one after the other, in this process."""
    del following  # of use to those who play while this process learns
    blocks = range(trainer.blocks)
    return [evidence(trainer, known, words, update, block, told=told) for block in blocks]


def joined(parts: Sequence[Evidence]) -> types.Parameters:
    """The gradient of all parts: added up in their order."""
    return jax.tree.map(lambda *leaves: functools.reduce(np.add, leaves), *(part.gradient for part in parts))


def figures(parts: Sequence[Evidence]) -> learners.Info:
    """The figures of all parts, as means over all decisions."""
    table = np.array([(part.decisions, part.entries, *part.info) for part in parts])
    decisions, entries, columns = table[:, 0], table[:, 1], learners.Info(*table[:, 2:].T)
    means = learners.Info(*(decisions @ table[:, 2:] / max(decisions.sum(), 1.0)))
    spread = np.sqrt(entries @ columns.advantage_scale**2 / max(entries.sum(), 1.0))
    return means._replace(max_weight=columns.max_weight.max(), advantage_scale=spread)


def update(trainer: Trainer, state: State, collect: Collect = here) -> tuple[State, learners.Info]:
    """One update later, and its figures; whether it has diverged is left to the caller."""
    return updates(trainer, state, 1, collect)[:2]


def updates(
    trainer: Trainer, state: State, most: int, collect: Collect = here
) -> tuple[State, learners.Info, bool]:
    """`most` updates later, or as soon as the state is not `finite`; the last one's figures; if it is."""
    words = play.words_of(state.key)
    for number in range(most):
        now, told = shown(state.learner), number == most - 1
        known, following = (state.shown, (now,)) if trainer.staleness else (now, ())
        parts = collect(trainer, known, words, int(now.updates), told, *following)
        learner, average, sound = trainer.step(state.learner, state.average, joined(parts))
        sound = bool(np.asarray(sound))  # a fifth of what bool alone takes
        episodes = state.episodes + np.int64(trainer.batch_episodes)
        decisions = state.decisions + np.int64(sum(part.decisions for part in parts))
        state = State(learner, state.key, episodes, decisions, average, *(following or (None,)))
        if not sound:
            break
    return state, figures(parts), sound


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
