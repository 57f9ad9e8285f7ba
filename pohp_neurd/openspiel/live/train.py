"""Self-play in games too big to compile: live episodes, then one update from all their decisions.

A training loop: it feeds parameters back. Every update plays its own fresh episodes, whose chances are a
function of the key and the number of the update alone. So nothing of a running game has to be kept: `State`
is one pytree of arrays, and a run that is resumed from it goes on to the bit as if it had never stopped.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from pohp_neurd import checks, defaults, learners, neural, optimizers, policy, shaping, types
from pohp_neurd.openspiel.live import game as live_game
from pohp_neurd.openspiel.live import play as states
from pohp_neurd.openspiel.live import players


@dataclasses.dataclass(frozen=True)
class Config:
    """How a network learns from live play. Wrong values raise a ValueError here, before any work."""

    learner: str = "neurd_cix"
    """spg, neurd or neurd_cix."""
    exploration: float = 0.1
    learning_rate: float = 0.01
    optimizer: str = "adam"
    batch_episodes: int = 256
    """Episodes of one update."""
    slots: int = 256
    """Episodes side by side in one network call."""
    torso: tuple[int, ...] = (128, 128)
    baseline: str = "critic"
    """critic or none."""
    critic_cost: float = 1.0
    common_mode: str = defaults.COMMON_MODE
    threshold: float | None = None
    magnet_strength: float = 0.1
    magnet_speed: float = 0.01
    separate: bool = False
    """Parameters of its own for every seat, instead of one network that sees which seat it is in."""
    alternating: bool = False
    """One seat learns at each update, in turn, instead of all."""
    seed: int = 0

    def __post_init__(self) -> None:
        learners.rule(self.learner, self.exploration)
        checks.positive("learning_rate", self.learning_rate)
        checks.one_of("optimizer", self.optimizer, defaults.OPTIMIZERS)
        for name in ("batch_episodes", "slots"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, but is {getattr(self, name)}.")
        checks.one_of("baseline", self.baseline, ("critic", "none"))
        checks.non_negative("critic_cost", self.critic_cost)
        checks.one_of("common_mode", self.common_mode, defaults.COMMON_MODES)
        if self.threshold is not None:
            checks.positive("threshold", self.threshold)
        self.magnet()
        checks.non_negative("seed", self.seed)

    def magnet(self) -> shaping.Magnet | None:
        """The magnet, if its strength is not 0."""
        magnet = shaping.Magnet(self.magnet_strength, self.magnet_speed)
        return magnet if self.magnet_strength > 0 else None


class State(NamedTuple):
    """What must persist between updates."""

    learner: learners.State
    key: types.Key
    """Never changes: update t draws from `fold_in(key, t)`."""
    episodes: Int[np.ndarray, ""]
    decisions: Int[np.ndarray, ""]
    """Decisions that were learnt from."""


class Report(NamedTuple):
    """What a researcher plots: means over the episodes or the decisions of some updates."""

    returns: Float[np.ndarray, "P"]
    """Of every seat, in the game's own units."""
    decisions_per_episode: float
    critic_error: float
    """Root mean square of return less value."""
    entropy: float
    mean_weight: float
    capped: float
    """Fraction of decisions at which the cap of CIX was active."""


class Trainer(NamedTuple):
    """A game, a network and its update: all that is fixed during a run."""

    config: Config
    world: live_game.LiveGame
    model: policy.Model
    learner: learners.Learner
    """Its update compiled."""
    seat: int | None
    """The only seat that learns; None: all do."""
    opponent: players.Player
    """Who plays the other seats, if only one learns."""


def trainer(
    game: str | Any,
    config: Config,
    *,
    seat: int | None = None,
    opponent: players.Player = None,
    model: policy.Model | None = None,
) -> Trainer:
    """Self-play in `game`; with `seat`, a learner in that seat against a frozen `opponent` in all others.

    A `model` of `LiveGame.features` takes the place of the network that `config` describes.
    """
    world = game if isinstance(game, live_game.LiveGame) else live_game.live_game(game)
    if seat is not None:
        checks.index("seat", seat, world.num_seats)
        if config.alternating:
            raise ValueError(f"alternating is for seats that learn in turn, but only seat {seat} learns.")
    model = model or _model(world, config)
    learner = learners.learner(
        model.apply,
        learners.rule(config.learner, config.exploration),
        optimizers.optimizer(config.optimizer, config.learning_rate),
        common_mode=config.common_mode,
        threshold=config.threshold,
        magnet=config.magnet(),
        critic_cost=config.critic_cost,
    )
    compiled = learners.Learner(learner.init, jax.jit(learner.update))
    return Trainer(config, world, model, compiled, seat, opponent)


def init(trainer: Trainer, parameters: types.Parameters | None = None) -> State:
    """Before the first update: with fresh parameters, or with those that are given."""
    key = jax.random.key(trainer.config.seed)
    if parameters is None:
        parameters = trainer.model.init(key=jax.random.fold_in(key, 0))
    counts = (np.zeros((), np.int64), np.zeros((), np.int64))
    return State(trainer.learner.init(parameters), jax.random.fold_in(key, 1), *counts)


def advance(trainer: Trainer, state: State, num_updates: int) -> tuple[State, Report]:
    """`num_updates` updates later, each from `batch_episodes` fresh episodes; and what happened.

    Raises `checks.Diverged` if the learner's state leaves the finite numbers.
    """
    if num_updates < 1:
        raise ValueError(f"num_updates must be at least 1, but is {num_updates}.")
    reports = []
    for _ in range(num_updates):
        state, report = update(trainer, state)
        if not checks.all_finite(state.learner):
            raise checks.Diverged(
                "a parameter or the optimizer's state",
                after=f"update {int(state.learner.updates)}",
                remedy="learning_rate",
            )
        reports.append(report)
    return state, Report(*(np.mean(column, axis=0) for column in zip(*reports, strict=True)))


def network(trainer: Trainer, state: State) -> players.Network:
    """The trained network as a player, for matches and best responses."""
    return players.Network(trainer.model, state.learner.parameters)


def policy_of(trainer: Trainer, state: State) -> players.LivePolicy:
    """The trained network as an OpenSpiel policy."""
    return players.LivePolicy(trainer.world, network(trainer, state))


def per_seat(model: policy.Model, num_seats: int) -> policy.Model:
    """`model` with parameters of its own for every seat, told by the last `num_seats` features."""

    def init(*, key: types.Key) -> types.Parameters:
        return jax.vmap(lambda one: model.init(key=one))(jax.random.split(key, num_seats))

    def apply(parameters: types.Parameters, agent_state: Any) -> policy.Output:
        seat = jnp.argmax(agent_state[-num_seats:])
        outputs = jax.vmap(model.apply, in_axes=(0, None))(parameters, agent_state)
        return jax.tree.map(lambda leaf: leaf[seat], outputs)

    return policy.Model(init, apply)


def update(trainer: Trainer, state: State) -> tuple[State, Report]:
    """One update later, and what happened; whether it has diverged is left to the caller."""
    config, world = trainer.config, trainer.world
    seats = np.arange(world.num_seats)
    mine = np.ones(world.num_seats, bool) if trainer.seat is None else seats == trainer.seat
    at_table: list[players.Player] = [players.Network(trainer.model, state.learner.parameters)]
    if not mine.all():
        at_table.append(trainer.opponent)
    played = states.play(
        world,
        at_table,
        config.batch_episodes,
        slots=config.slots,
        key=jax.random.fold_in(state.key, state.learner.updates),
        seating=np.tile((~mine).astype(np.int32), (config.batch_episodes, 1)),
    )
    turn = int(state.learner.updates) % world.num_seats
    learns = seats == turn if config.alternating else mine
    chosen = learns[played.seat]
    count = int(chosen.sum())
    weight = 1.0 / config.batch_episodes
    batch = states.decisions(played, world, size=states.padded_size(count), weight=weight, chosen=chosen)
    learner, info = trainer.learner.update(state.learner, batch)
    if config.alternating and config.separate:
        # What a seat's own optimizer and magnet do without a gradient is undone; only the count goes on.
        learner = jax.tree.map(
            lambda new, old: old.at[turn].set(new[turn]) if new.ndim else new, learner, state.learner
        )
    error = (batch.return_ - batch.baseline)[:count]
    report = Report(
        returns=played.returns.mean(axis=0),
        decisions_per_episode=len(played.seat) / config.batch_episodes,
        critic_error=float(np.sqrt(np.mean(error**2))) if count else 0.0,
        entropy=float(info.entropy),
        mean_weight=float(info.mean_weight),
        capped=float(info.capped),
    )
    episodes = state.episodes + np.int64(config.batch_episodes)
    return State(learner, state.key, episodes, state.decisions + np.int64(count)), report


def _model(world: live_game.LiveGame, config: Config) -> policy.Model:
    critic = config.baseline == "critic"
    model = neural.network(world.num_features, world.num_actions, torso=config.torso, critic=critic)
    return per_seat(model, world.num_seats) if config.separate else model
