"""Trajectories from live OpenSpiel states, for games too big to compile.

Pipeline: history -> ... -> **trajectory**. Many episodes run side by side, with one batched network call for
each step of all of them; an episode that ends makes room for the next. All that Python does once a state
is flat and copies through memory views: beside the network it is what playing costs.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from jaxtyping import Bool, Float, Int

from pohp_neurd import checks, learners, neural, policy, types
from pohp_neurd.openspiel import compile as compiling
from pohp_neurd.openspiel import uniforms


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

    def features(self, state: Any, seat: int) -> Float[np.ndarray, "D"]:
        """A network's input at one state; `Views` fills whole batches with the same."""
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
    return LiveGame(game, seats, num_actions, size + seats, float(game.max_utility()), observer)


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
    if not separate:
        return model
    num_seats = world.num_seats

    def init(*, key: types.Key) -> types.Parameters:
        return jax.vmap(lambda one: model.init(key=one))(jax.random.split(key, num_seats))

    def apply(parameters: types.Parameters, agent_state: Any) -> policy.Output:
        seat = jnp.argmax(agent_state[-num_seats:])
        outputs = jax.vmap(model.apply, in_axes=(0, None))(parameters, agent_state)
        return jax.tree.map(lambda leaf: leaf[seat], outputs)

    return policy.Model(init, apply)


class Views:
    """What the network sees in every slot: two arrays, allocated once and written in place."""

    def __init__(self, world: LiveGame, slots: int) -> None:
        self.features = np.zeros((slots, world.num_features), np.float32)
        self.legal = np.zeros((slots, world.num_actions), bool)
        # Assigning to a slice of a memory view costs a third of what numpy asks for a short row.
        self._flat = memoryview(self.features.reshape(-1).data)
        self._masks = memoryview(self.legal.reshape(-1).view(np.uint8).data)
        self._set_from, self._tensor = world.observer.set_from, memoryview(world.observer.tensor.data)
        self._seats = np.eye(world.num_seats, dtype=np.float32)

    def fill(self, states: list[Any], seats: list[int]) -> None:
        """Writes the first `len(states)` rows; the others keep what was there and mean nothing."""
        width, num_actions, size = self.features.shape[1], self.legal.shape[1], len(self._tensor)
        flat, masks, set_from, tensor = self._flat, self._masks, self._set_from, self._tensor
        start = first = 0
        for state, seat in zip(states, seats, strict=True):
            set_from(state, seat)
            flat[start : start + size] = tensor
            start += width
            masks[first : first + num_actions] = bytes(state.legal_actions_mask())
            first += num_actions
        self.features[: len(states), size:] = self._seats[seats]


class Network(NamedTuple):
    """A player that draws its actions from a network on `LiveGame.features`."""

    model: policy.Model
    parameters: types.Parameters


Player = Any
"""A Network, None for uniformly random moves, or any OpenSpiel policy, which is asked state by state."""


class Play(NamedTuple):
    """Finished episodes: every decision, ordered by episode, then seat, then time (M of them)."""

    agent_state: Float[np.ndarray, "M D"]
    """`LiveGame.features`."""
    legal: Bool[np.ndarray, "M A"]
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


def play(
    world: LiveGame,
    players: Sequence[Player],
    num_episodes: int,
    *,
    slots: int,
    key: types.Key,
    seating: Int[np.ndarray, "E P"] | None = None,
    record: bool = True,
) -> Play:
    """`num_episodes` whole episodes, at most `slots` of them at a time.

    `seating` says which of `players` sits where in each episode; without it the first plays every seat.
    Exactly as many episodes begin as are asked for and all are finished: to stop at the first so many that
    end would favour short ones. The outcome is a function of the arguments alone, unless the game samples
    its own chance events. Without `record`, no decisions are kept.
    """
    checks.at_least("num_episodes", num_episodes)
    checks.at_least("slots", slots)
    if seating is None:
        seating = np.zeros((num_episodes, world.num_seats), np.int32)
    rng = np.random.default_rng(np.asarray(jax.random.bits(jax.random.fold_in(key, 0), (4,))))
    act = _actor(players, rng, jax.random.fold_in(key, 1))
    returns = np.zeros((num_episodes, world.num_seats))
    waiting = iter(range(num_episodes))

    def begin() -> tuple[Any, int, int] | None:
        """The next episode at its first decision (state, seat, number); None when all have begun."""
        for episode in waiting:
            state = world.game.new_initial_state()
            seat = _settle(state, rng)
            if seat >= 0:
                return state, seat, episode
            returns[episode] = state.returns()  # over without a decision
        return None

    slots = min(slots, num_episodes)
    running = [begun for begun in (begin() for _ in range(slots)) if begun is not None]
    states = [state for state, _, _ in running]
    seats = [seat for _, seat, _ in running]
    episodes = [episode for _, _, episode in running]
    views, owner = Views(world, slots), np.zeros(slots, np.int32)
    rewarded = world.game.get_type().reward_model == pyspiel.GameType.RewardModel.REWARDS
    moments: list[tuple[np.ndarray, ...]] = []
    call = 0
    while states:
        count = len(states)
        views.fill(states, seats)
        seat_of, episode_of = np.array(seats, np.int32), np.array(episodes, np.int32)
        owner[:count] = seating[episode_of, seat_of]
        actions, probabilities, values = act(states, seats, views.features, views.legal, owner, call)
        call += 1
        if record:
            before = np.zeros(count)
            if rewarded:
                before[:] = [state.player_return(seat) for state, seat in zip(states, seats, strict=True)]
            seen = views.features[:count].copy(), views.legal[:count].copy()
            chosen = actions[:count], probabilities[:count], values[:count]
            moments.append((*seen, *chosen, seat_of, episode_of, before))
        ended = []
        for row, (state, action) in enumerate(zip(states, actions[:count].tolist(), strict=True)):
            state.apply_action(action)
            seat = state.current_player()
            if seat < 0:
                seat = _settle(state, rng)
            if seat >= 0:
                seats[row] = seat
                continue
            returns[episodes[row]] = state.returns()
            following = begin()
            if following is None:
                ended.append(row)
            else:
                states[row], seats[row], episodes[row] = following
        for row in reversed(ended):
            del states[row], seats[row], episodes[row]
    return _gathered(world, moments, returns)


def decisions(
    played: Play,
    world: LiveGame,
    *,
    size: int,
    weight: float,
    chosen: Bool[np.ndarray, "M"] | None = None,
) -> learners.Decision:
    """The (`chosen`) decisions of `played` as one batch of `size`, the rest of it padding of weight 0.

    Returns are less the game's largest utility, so that none is positive (with rewards on the way: unless
    earlier losses are made good). The same shift is in the critic's targets and, through them, its values.
    """
    rows = np.arange(len(played.seat)) if chosen is None else np.flatnonzero(chosen)
    if len(rows) > size:
        raise ValueError(f"{len(rows)} decisions do not fit into a batch of {size}.")

    def padded(array: np.ndarray, dtype: type) -> np.ndarray:
        out = np.zeros((size, *array.shape[1:]), dtype)
        out[: len(rows)] = array[rows]
        return out

    shifted = padded(played.return_ - world.max_utility, np.float32)
    return learners.Decision(
        agent_state=padded(played.agent_state, np.float32),
        legal=padded(played.legal, bool),
        action=padded(played.action, np.int32),
        probability=padded(played.probability, np.float32),
        return_=shifted,
        baseline=padded(played.value, np.float32),
        weight=padded(np.full(len(played.seat), weight), np.float32),
        target=shifted,
    )


def padded_size(count: int) -> int:
    """The batch size for `count` decisions: at most a quarter more, and one of few, as each is compiled once.

    >>> [padded_size(count) for count in (5, 64, 65, 81, 2_700)]
    [64, 64, 80, 96, 3072]
    """
    quarter = 16
    while 8 * quarter < count:
        quarter *= 2
    return quarter * max(4, -(-count // quarter))


def _gathered(world: LiveGame, moments: list[tuple[np.ndarray, ...]], returns: np.ndarray) -> Play:
    """The decisions of all steps in order of trajectories; returns-to-go as differences of returns.

    A moment is one step of all running episodes; last in it stands what the deciding seats had earned.
    """
    reals, wholes = np.zeros(0, np.float32), np.zeros(0, np.int32)
    features, legal = np.zeros((0, world.num_features), np.float32), np.zeros((0, world.num_actions), bool)
    nothing = (features, legal, wholes, reals, reals, wholes, wholes, np.zeros(0))
    columns = [np.concatenate(column) for column in zip(nothing, *moments, strict=True)]
    # Stable: within one seat of one episode, decisions stay in order of time.
    order = np.lexsort((columns[5], columns[6]))
    seen, mask, action, probability, value, seat, episode, earned = (column[order] for column in columns)
    to_go = returns[episode, seat] - earned
    return Play(seen, mask, action, probability, value, seat, episode, to_go, returns)


@functools.partial(jax.jit, static_argnames="applies")
def choose(
    applies: tuple[Any, ...],
    parameters: Any,
    features: Any,
    legal: Any,
    owner: Any,
    key: types.Key,
    step: Any,
) -> tuple[Any, Any, Any]:
    """Actions, their probabilities and values for all slots, by the network that `owner` names in each.

    Where `applies` says None the logits are zeros: uniformly random moves.
    """
    count = legal.shape[0]
    logits, values = [], []
    for apply, weights in zip(applies, parameters, strict=True):
        if apply is None:
            output = policy.Output(jnp.zeros(legal.shape), None)
        else:
            output = jax.vmap(apply, in_axes=(None, 0))(weights, features)
        logits.append(output.logits)
        values.append(jnp.zeros(count) if output.value is None else output.value)
    rows = jnp.arange(count)
    chances = jax.vmap(policy.probabilities)(jnp.stack(logits)[owner, rows], legal)
    actions = policy.choose(chances, policy.uniform(jax.random.fold_in(key, step), (count,)))
    return actions, chances[rows, actions], jnp.stack(values)[owner, rows]


def _actor(
    players: Sequence[Player], rng: np.random.Generator, key: types.Key
) -> Callable[[list, list, Any, Any, Any, int], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(states, seats, features, legal, owner, step) -> actions, probabilities, values of all slots.

    One batched call for all networks. `owner` says for every slot which of `players` decides; `states` may be
    fewer than there are slots.
    """
    applies = tuple(player.model.apply if isinstance(player, Network) else None for player in players)
    parameters = tuple(player.parameters if isinstance(player, Network) else None for player in players)
    asked = [i for i, player in enumerate(players) if player is not None and not isinstance(player, Network)]

    def act(states: list, seats: list, features: Any, legal: Any, owner: Any, step: int) -> Any:
        chosen = jax.device_get(choose(applies, parameters, features, legal, owner, key, np.uint32(step)))
        if not asked:
            return chosen
        actions, probabilities, values = (np.array(array) for array in chosen)
        for row in np.flatnonzero(np.isin(owner[: len(states)], asked)).tolist():
            player, state = players[owner[row]], states[row]
            # C++ asks the state for the player.
            args = (state,) if isinstance(player, pyspiel.Policy) else (state, seats[row])
            chances = dict(player.action_probabilities(*args))
            action = uniforms.pick(list(chances.items()), rng.random())
            actions[row], probabilities[row] = action, chances[action]
        return actions, probabilities, values

    return act


def _settle(state: Any, rng: np.random.Generator) -> int:
    """Plays chance until someone has to decide or it is over; whose turn it is then."""
    seat = state.current_player()
    while seat == pyspiel.PlayerId.CHANCE:
        state.apply_action(uniforms.pick(state.chance_outcomes(), rng.random()))
        seat = state.current_player()
    return seat
