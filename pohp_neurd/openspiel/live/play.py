"""Trajectories from live OpenSpiel states, for games too big to compile.

Pipeline: history -> ... -> **trajectory**. Episodes are played in blocks, those of a block in lock step. What
a block's chances are is a function of the key and the block's number alone, so that blocks may be played
anywhere and in any order. Players look once at every agent state that a block meets, however often it does.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, learners, neural, policy, types
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel.live import minds, openings

BLOCK = 128
"""Episodes of one block, if nothing is said."""


class LiveGame(NamedTuple):
    """A game and what it takes to play it live."""

    game: Any
    """With simultaneous moves taken in turns."""
    num_seats: int
    num_actions: int
    num_features: int
    """Length of a network's input: the game's tensor, then the seat as a one-hot vector."""
    max_utility: float
    observer: compiling.Observer
    openings: openings.Openings
    """How episodes begin, as far as it is known."""

    def features(self, state: Any, seat: int) -> Float[np.ndarray, "D"]:
        """A network's input at one state; `minds.Minds` collects the same for whole blocks."""
        self.observer.set_from(state, seat)
        return np.concatenate([self.observer.tensor, np.eye(self.num_seats, dtype=np.float32)[seat]])


def live_game(game: str | Any) -> LiveGame:
    """`game`, or the game of that name, ready to be played live; a LiveGame stays what it is.

    >>> live_game("phantom_ttt").num_features
    110
    """
    if isinstance(game, LiveGame):
        return game
    game = compiling.load_game(game)
    view = compiling.tensor_view(game)
    if view is None:
        raise ValueError(f"{game} gives neither information-state nor observation tensors for a network.")
    observer = compiling.observer(game, view)
    seats, num_actions, size = game.num_players(), game.num_distinct_actions(), len(observer.tensor)
    known = openings.Openings(game, minds.seer(observer, seats), 4 * size)
    return LiveGame(*(game, seats, num_actions, size + seats, float(game.max_utility()), observer), known)


class Sizes(NamedTuple):
    """What a network is built for."""

    num_features: int
    """The last of them are one for each seat."""
    num_actions: int
    num_seats: int


def network(
    world: LiveGame | Sizes, hidden_layers: Sequence[int], *, critic: bool = True, separate: bool = False
) -> policy.Model:
    """A network on features that end with the seat; with `separate`, parameters of its own for every seat."""
    model = neural.network(world.num_features, world.num_actions, torso=hidden_layers, critic=critic)
    layout = neural.Layout(world.num_features, world.num_actions, hidden_layers, critic=critic)
    host = functools.partial(policy.Host, layout.pack, layout.unpack)
    if not separate:
        return model._replace(host=host(functools.partial(_on_host, layout)))
    num_seats = world.num_seats

    def init(*, key: types.Key) -> types.Parameters:
        return jax.vmap(lambda one: model.init(key=one))(jax.random.split(key, num_seats))

    def apply(parameters: types.Parameters, agent_state: Any) -> policy.Output:
        seat = jnp.argmax(agent_state[-num_seats:])
        outputs = jax.vmap(model.apply, in_axes=(0, None))(parameters, agent_state)
        return jax.tree.map(lambda leaf: leaf[seat], outputs)

    return policy.Model(init, apply, host(functools.partial(_Each, layout)))


def _on_host(layout: neural.Layout, flat: Float[np.ndarray, "n"]) -> policy.Hosted:
    from pohp_neurd.openspiel.live import forward  # numba takes a second to load

    return forward.Network(layout, flat)


class _Each:
    """Every row by the network of its seat."""

    def __init__(self, layout: neural.Layout, flat: Float[np.ndarray, "P n"]) -> None:
        self._networks, self._seats = [_on_host(layout, one) for one in flat], np.zeros(0, np.int64)

    def __call__(self, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        seats = np.argmax(seen[:, -len(self._networks) :], axis=1)
        self._seats = np.concatenate([self._seats, seats])
        found = [network(seen[seats == seat]) for seat, network in enumerate(self._networks)]
        order = np.argsort(np.argsort(seats, kind="stable"))  # where in all of these each row stands
        logits = np.concatenate([one for one, _ in found])[order]
        values = [one for _, one in found if one is not None]
        return logits, np.concatenate(values)[order] if values else None

    def pullback(self, slopes: np.ndarray) -> Float[np.ndarray, "P n"]:
        each: list[Any] = [
            network.pullback(slopes[self._seats == seat]) for seat, network in enumerate(self._networks)
        ]
        return np.stack(each)


class Network(NamedTuple):
    """A player that draws its actions from a network on `LiveGame.features`."""

    model: policy.Model
    parameters: types.Parameters


Player = Any
"""A Network, None for uniformly random moves, or any OpenSpiel policy, which is asked state by state."""


class Play(NamedTuple):
    """Finished episodes: every decision, ordered by episode, then seat, then time (M of them)."""

    seen: Float[np.ndarray, "U D"]
    """`LiveGame.features` of the agent states that each block met, each of them once a block."""
    allowed: Bool[np.ndarray, "U A"]
    """The legal actions there."""
    row: Int[np.ndarray, "M"]
    """Where the decision's agent state stands in these two."""
    action: Int[np.ndarray, "M"]
    probability: Float[np.ndarray, "M"]
    """π(A) at the time of acting."""
    value: Float[np.ndarray, "M"]
    """The critic's value when the decision was made; 0 for players without a critic."""
    seat: Int[np.ndarray, "M"]
    episode: Int[np.ndarray, "M"]
    return_: Float[np.ndarray, "M"]
    """Monte Carlo return-to-go of the decision's seat, in the game's own units."""
    returns: Float[np.ndarray, "E P"]
    """Of every episode, for every seat."""

    @property
    def agent_state(self) -> Float[np.ndarray, "M D"]:
        """`LiveGame.features` of every decision."""
        return self.seen[self.row]

    @property
    def legal(self) -> Bool[np.ndarray, "M A"]:
        """The legal actions of every decision."""
        return self.allowed[self.row]


def play(
    world: LiveGame,
    players: Sequence[Player],
    num_episodes: int,
    *,
    key: types.Key,
    block: int = BLOCK,
    seating: Int[np.ndarray, "E P"] | None = None,
    record: bool = True,
) -> Play:
    """`num_episodes` whole episodes, in blocks of `block`.

    `seating` says which of `players` sits where in each episode; without it the first plays every seat.
    Without `record`, no decisions are kept.
    """
    checks.at_least("num_episodes", num_episodes)
    checks.at_least("block", block)
    words = words_of(key)
    found, first, known = [], 0, 0
    for number, begin in enumerate(range(0, num_episodes, block)):
        size = min(block, num_episodes - begin)
        seated = None if seating is None else seating[begin : begin + size]
        one = play_block(world, players, size, streams(words, number), seating=seated, record=record)
        found.append(one._replace(row=one.row + known, episode=one.episode + first))
        first, known = first + size, known + len(one.seen)
    return Play(*(np.concatenate(column) for column in zip(*found, strict=True)))


def words_of(key: types.Key) -> list[int]:
    """A key as whole numbers, for streams on the host."""
    return np.asarray(jax.random.key_data(key)).tolist()


def streams(words: Sequence[int], *path: int) -> tuple[np.random.Generator, np.random.Generator]:
    """A block's two streams, of chance and of actions: `path` tells blocks apart."""
    # What numpy makes of a spawn key (*path, part), in half of its time: four words of seed, then the key.
    seed = [*words, *[0] * (4 - len(words)), *path]
    chance, acting = (np.random.SeedSequence(np.array([*seed, part], np.uint32)) for part in (0, 1))
    return np.random.default_rng(chance), np.random.default_rng(acting)


class Deal(NamedTuple):
    """A block when its first decisions are due: what no player has a part in."""

    running: tuple[list[Any], list[Any], list[int], list[int]]
    """Of every episode with a decision: its node of `openings`, its state, who decides, its number."""
    returns: list[Sequence[float]]
    """Of every episode; nothing yet of those that are running."""
    chance: openings.Draw
    """For the chance events to come."""


def deal(world: LiveGame, num_episodes: int, chance: np.random.Generator) -> Deal:
    """The chance events before the first decisions of `num_episodes` episodes."""
    nodes, states, seats, draw = world.openings.begin(num_episodes, chance)
    returns: list[Sequence[float]] = [()] * num_episodes
    episodes = list(range(num_episodes))
    if min(seats) < 0:
        running = [seat >= 0 for seat in seats]
        for episode in itertools.compress(episodes, [seat < 0 for seat in seats]):
            returns[episode] = states[episode].returns()  # over without a decision
        columns = (nodes, states, seats, episodes)
        nodes, states, seats, episodes = (list(itertools.compress(each, running)) for each in columns)
    return Deal((nodes, states, seats, episodes), returns, draw)


def play_block(
    world: LiveGame,
    players: Sequence[Player],
    num_episodes: int,
    draws: tuple[np.random.Generator, np.random.Generator],
    *,
    seating: Int[np.ndarray, "E P"] | None = None,
    record: bool = True,
    mind: minds.Minds | None = None,
    dealt: "Deal | None" = None,
) -> Play:
    """`num_episodes` whole episodes in lock step; see `play`.

    The outcome is a function of the arguments alone, unless the game samples its own chance events. `mind`,
    a fresh one of these players, is left with all that it has seen. `dealt` is what `deal` made of the first
    of `draws`, if it has been called already.
    """
    mind = mind or minds.Minds(world, players)
    rewarded = world.game.get_type().reward_model == pyspiel.GameType.RewardModel.REWARDS
    after, settle = world.openings.after, openings.settle
    (nodes, states, seats, episodes), returns, chance = dealt or deal(world, num_episodes, draws[0])
    acting = draws[1]
    first = np.zeros(num_episodes, np.int32)
    moments: list[tuple[np.ndarray, ...]] = []
    whose: tuple[list[int], list[int], list[float]] = ([], [], [])
    while states:
        rows = mind.look(nodes, states, seats)
        owner = first[: len(states)] if seating is None else seating[episodes, seats]
        decided = mind.decide(rows, owner, acting.random(len(states)), states, seats)
        if record:
            moments.append((rows, *decided))
            whose[0].extend(seats)
            whose[1].extend(episodes)
            if rewarded:
                whose[2].extend(state.player_return(seat) for state, seat in zip(states, seats, strict=True))
        running = zip(nodes, states, decided[0].tolist(), episodes, strict=True)
        nodes, states, seats, episodes = [], [], [], []
        for node, state, action, episode in running:
            if node is None:
                state.apply_action(action)
                seat = state.current_player()
                if seat == openings.CHANCE:
                    seat = settle(state, chance)
            elif (following := node.children.get(action)) and following.seat != openings.CHANCE:
                node, state, seat = following, following.state, following.seat
            else:
                node, state, seat = after(node, action, chance)
            if seat < 0:
                returns[episode] = state.returns()
                continue
            nodes.append(node)
            states.append(state)
            seats.append(seat)
            episodes.append(episode)
    return _gathered(mind, moments, whose, np.array(returns, np.float64))


def _gathered(mind: Any, moments: list[Any], whose: tuple[list[Any], ...], returns: np.ndarray) -> Play:
    """The decisions of all steps in order of trajectories; returns-to-go as differences of returns.

    A moment is one step of all running episodes; `whose` has the seats and the episodes of all decisions, and
    what the seats had earned by then, if anything is earned on the way.
    """
    from pohp_neurd.openspiel.live import forward  # numba takes a second to load

    nothing = (np.zeros(0, kind) for kind in (np.int32, np.int32, np.float32, np.float32))
    columns = [np.concatenate(column) for column in zip(nothing, *moments, strict=True)]
    seat, episode = (np.array(column, np.int32) for column in whose[:2])
    earned = np.array(whose[2]) if whose[2] else np.zeros(len(seat))
    seen, allowed = mind.seen()
    found: Any = forward.ordered(*columns, seat, episode, earned, returns)
    return Play(seen, allowed, *found, returns)  # type: ignore[call-arg]  # as many as it takes


class Batch(NamedTuple):
    """Decisions for a learner, in few arrays: each costs a call. `unpacked` has them by name."""

    rows: Int[np.ndarray, "B"]
    """Where in `Play.seen` each one's agent state stands."""
    legal: Bool[np.ndarray, "B A"]
    action: Int[np.ndarray, "B"]
    numbers: Float[np.ndarray, "B K"]
    """Probability, return, baseline, weight; then logits, value and the magnet's logits, those there are."""


def decisions(
    played: Play,
    world: LiveGame,
    thought: tuple[Float[np.ndarray, "U A"], Float[np.ndarray, "U"] | None],
    reference: Float[np.ndarray, "U A"] | None,
    *,
    weight: float,
    chosen: Bool[np.ndarray, "M"] | None = None,
) -> Batch:
    """The (`chosen`) decisions of `played`, with what the learner and its magnet think of their agent states.

    They are padded to a size that few batches do not share, with decisions of weight 0.
    Returns are less the game's largest utility, so that none is positive (with rewards on the way: unless
    earlier losses are made good). The same shift is in the critic's targets and, through them, its values.
    """
    from pohp_neurd.openspiel.live import forward  # numba takes a second to load

    which = np.arange(len(played.seat)) if chosen is None else np.flatnonzero(chosen)
    size, (count, num_actions) = padded_size(len(which)), played.allowed.shape
    nothing = np.zeros((count, 0), np.float32)
    logits, values = thought
    more = (
        logits,
        nothing if values is None else values[:, None],
        nothing if reference is None else reference,
    )
    width = sum(part.shape[1] for part in more)
    rows, action = np.zeros(size, np.int32), np.zeros(size, np.int32)
    legal, numbers = np.zeros((size, num_actions), bool), np.zeros((size, 4 + width), np.float32)
    columns = played.row, played.action, played.probability, played.return_, played.value
    forward.batch(
        which, *columns, played.allowed, *more, world.max_utility, weight, rows, action, legal, numbers
    )
    return Batch(rows, legal, action, numbers)


def unpacked(
    legal: Any, action: Any, numbers: Any, *, critic: bool
) -> tuple[policy.Output, Any, learners.Decision]:
    """What the learner thinks, what its magnet does, if it has one, and the decisions."""
    num_actions = legal.shape[1]
    probability, return_, baseline, weight = numbers[:, :4].T
    logits, rest = numbers[:, 4 : 4 + num_actions], numbers[:, 4 + num_actions :]
    value, reference = (rest[:, 0], rest[:, 1:]) if critic else (None, rest)
    decided = learners.Decision(None, legal, action, probability, return_, baseline, weight, return_)
    return policy.Output(logits, value), reference if reference.shape[1] else None, decided


def padded_size(count: int) -> int:
    """The size for `count` rows: one of few, as each is compiled once; four of them up to twice as many.

    >>> [padded_size(count) for count in (5, 64, 65, 128, 2_700)]
    [64, 64, 80, 128, 3072]
    """
    quarter = max(16, (1 << (count - 1).bit_length()) // 8)
    return max(64, -(-count // quarter) * quarter)
