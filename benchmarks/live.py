"""Speed of live training: episodes a second, updates included, beside the code of version 0.3.0.

    python benchmarks/live.py                                     one worker, and where its time goes
    python benchmarks/live.py --workers=2                         two workers beside one, by the clock

The peer is the earlier loop, kept below as it was: 256 slots of which each that ends is filled anew, one call
of JAX a step for all of them, one update from all decisions. Both sides have the same network, game and
learner, on one core. Times of one worker are CPU time, the median of repeats taken in turn, so that other
work on the machine counts little; two workers are timed by the clock, on a machine that must be idle, and
their ratio is the median over rounds, in each of which all sides take their turn. Beside them stand as many
runs of one worker that share nothing but the machine, a core each: what it gives at most. With a block each,
the workers of one run wait for the slowest at every update: together they reach at most as many times its
speed as they are, where separate runs add up theirs. On a machine that is shared with others cores are often
not equally fast; the rounds in which they were, judged by the separate runs, stand by themselves.
"""

import os

# One core for both sides: set before JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import argparse
import functools
import multiprocessing
import time

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel

from pohp_neurd import learners, policy, shaping
from pohp_neurd.experiment import executor, game_config, live
from pohp_neurd.openspiel import uniforms
from pohp_neurd.openspiel.live import minds, play, train

GAMES = ("phantom_ttt", "liars_dice(numdice=2)")
BAR, WORKERS_BAR = 2.0, 1.7
UPDATES, REPEATS, ROUNDS, EVEN = 4, 15, 45, 1.05
WAKING, STRETCH = 16, 16
"""Updates of a side in its turn: those before the clock starts, and those that it counts. In the turns of
others its processes sleep, in a run never, and it takes ten updates until its memory is at hand again."""
BEFORE = 12
"""Updates before the clock starts: most sizes of batches are compiled by then."""
TORSO = (128, 128)


# The peer: the loop as it was.


class Views:
    """What the network sees in every slot."""

    def __init__(self, world, slots):
        self.features = np.zeros((slots, world.num_features), np.float32)
        self.legal = np.zeros((slots, world.num_actions), bool)
        self._flat = memoryview(self.features.reshape(-1).data)
        self._masks = memoryview(self.legal.reshape(-1).view(np.uint8).data)
        self._set_from, self._tensor = world.observer.set_from, memoryview(world.observer.tensor.data)
        self._seats = np.eye(world.num_seats, dtype=np.float32)

    def fill(self, states, seats):
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


def earlier_play(world, network, num_episodes, *, slots, key):
    rng = np.random.default_rng(np.asarray(jax.random.bits(jax.random.fold_in(key, 0), (4,))))
    act_key = jax.random.fold_in(key, 1)
    returns = np.zeros((num_episodes, world.num_seats))
    seating = np.zeros((num_episodes, world.num_seats), np.int32)
    waiting = iter(range(num_episodes))

    def begin():
        for episode in waiting:
            state = world.game.new_initial_state()
            seat = earlier_settle(state, rng)
            if seat >= 0:
                return state, seat, episode
            returns[episode] = state.returns()
        return None

    slots = min(slots, num_episodes)
    running = [begun for begun in (begin() for _ in range(slots)) if begun is not None]
    states = [state for state, _, _ in running]
    seats = [seat for _, seat, _ in running]
    episodes = [episode for _, _, episode in running]
    views, owner = Views(world, slots), np.zeros(slots, np.int32)
    rewarded = world.game.get_type().reward_model == pyspiel.GameType.RewardModel.REWARDS
    moments, call = [], 0
    while states:
        count = len(states)
        views.fill(states, seats)
        seat_of, episode_of = np.array(seats, np.int32), np.array(episodes, np.int32)
        owner[:count] = seating[episode_of, seat_of]
        args = (network.model.apply,), (network.parameters,), views.features, views.legal, owner
        actions, probabilities, values = jax.device_get(earlier_choose(*args, act_key, np.uint32(call)))
        call += 1
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
                seat = earlier_settle(state, rng)
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
    columns = [np.concatenate(column) for column in zip(*moments, strict=True)]
    order = np.lexsort((columns[5], columns[6]))
    seen, mask, action, probability, value, seat, episode, earned = (column[order] for column in columns)
    return seen, mask, action, probability, value, returns[episode, seat] - earned


@functools.partial(jax.jit, static_argnames="applies")
def earlier_choose(applies, parameters, features, legal, owner, key, step):
    count = legal.shape[0]
    logits, values = [], []
    for apply, weights in zip(applies, parameters, strict=True):
        output = jax.vmap(apply, in_axes=(None, 0))(weights, features)
        logits.append(output.logits)
        values.append(jnp.zeros(count) if output.value is None else output.value)
    rows = jnp.arange(count)
    chances = jax.vmap(policy.probabilities)(jnp.stack(logits)[owner, rows], legal)
    actions = policy.choose(chances, policy.uniform(jax.random.fold_in(key, step), (count,)))
    return actions, chances[rows, actions], jnp.stack(values)[owner, rows]


def earlier_settle(state, rng):
    seat = state.current_player()
    while seat == pyspiel.PlayerId.CHANCE:
        state.apply_action(uniforms.pick(state.chance_outcomes(), rng.random()))
        seat = state.current_player()
    return seat


def earlier_size(count):
    quarter = 16
    while 8 * quarter < count:
        quarter *= 2
    return quarter * max(4, -(-count // quarter))


def earlier_update(world, model, update, state, key, batch_episodes):
    network = play.Network(model, state.parameters)
    key = jax.random.fold_in(key, state.updates)
    seen, mask, action, probability, value, to_go = earlier_play(
        world, network, batch_episodes, slots=256, key=key
    )
    size = earlier_size(len(action))

    def padded(array, dtype):
        out = np.zeros((size, *array.shape[1:]), dtype)
        out[: len(array)] = array
        return out

    shifted = padded(to_go - world.max_utility, np.float32)
    weight = padded(np.full(len(action), 1.0 / batch_episodes), np.float32)
    batch = learners.Decision(
        *(padded(seen, np.float32), padded(mask, bool), padded(action, np.int32)),
        *(padded(probability, np.float32), shifted, padded(value, np.float32), weight, shifted),
    )
    state, _ = update(state, batch)
    np.all([np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(state)])
    return state


# The measurements.


def trainer_of(name, block):
    world = play.live_game(name)
    model = play.network(world, TORSO)
    learner = train.default_learner(model, learning_rate=0.01, magnet=shaping.Magnet(0.1, 0.01))
    return train.Trainer(world, model, learner, block=block)


def median_seconds(calls):
    """The median CPU time of each of `calls`, repeated in turn."""
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.process_time()
            call()
            times[name].append(time.process_time() - start)
    return {name: float(np.median(found)) for name, found in times.items()}


def one_worker(name, block):
    trainer = trainer_of(name, block)
    world, model, learner = trainer.world, trainer.model, trainer.learner
    update = jax.jit(learner.update)
    begun = train.init(trainer)
    states = {"now": begun, "earlier": learner.init(train.network(trainer, begun).parameters)}

    # Both go on learning, from episodes that neither has seen: what this loop remembers of others may help.
    def now(updates=UPDATES):
        states["now"], _ = train.advance(trainer, states["now"], updates)

    def earlier(updates=UPDATES):
        for _ in range(updates):
            states["earlier"] = earlier_update(
                world, model, update, states["earlier"], begun.key, trainer.batch_episodes
            )

    now(BEFORE), earlier(BEFORE)
    seconds = median_seconds({"now": now, "earlier": earlier})
    rates = {side: UPDATES * trainer.batch_episodes / took for side, took in seconds.items()}
    ratio = rates["now"] / rates["earlier"]
    print(
        f"live training, {name}, network {TORSO}, batches of {trainer.batch_episodes} in blocks of {block}: "
        f"{rates['now']:,.0f} episodes/s, {rates['earlier']:,.0f} with the earlier loop: {ratio:.2f}x "
        f"(bar {BAR:g}x)"
    )
    parts = shares(trainer, states["now"])
    total = sum(parts.values())
    told = ", ".join(f"{part} {100 * took / total:.0f}%" for part, took in parts.items())
    print(f"    of {1e6 * total / trainer.batch_episodes:.0f} us an episode: {told}")


def shares(trainer, begun):
    """CPU seconds of one update: in pyspiel, the network's forward pass, the update, and the rest, Python."""
    world, known, words = trainer.world, train.shown(begun.learner), play.words_of(begun.key)
    number, network = int(known.updates), play.Network(trainer.packed, known.parameters)

    def block(number_of_block):
        draws, mind = play.streams(words, number, number_of_block), minds.Minds(world, [network])
        return mind, play.play_block(world, [network], trainer.block, draws, mind=mind)

    blocks = [block(b) for b in range(trainer.blocks)]
    played = [one for _, one in blocks]
    found = train.here(trainer, known, words, number)

    def updates():
        for mind, one in blocks:
            train.learnt(trainer, known, mind, one)
        jax.block_until_ready(trainer.step(begun.learner, begun.average, train.joined(found)))

    def on():
        nonlocal begun
        begun, _ = train.advance(trainer, begun, 1)

    def networks():
        # In pieces as large as those of a step.
        forward = trainer.model.host.network(known.parameters)
        for one in played:
            for piece in np.array_split(one.seen, max(1, len(one.seen) // 48)):
                forward(piece)

    seconds = median_seconds(
        {
            "all": on,
            "update": updates,
            "network": networks,
            "pyspiel": games_alone(world, played),
        }
    )
    rest = seconds["all"] - seconds["update"] - seconds["network"] - seconds["pyspiel"]
    return {**{name: seconds[name] for name in ("pyspiel", "network", "update")}, "Python": rest}


def games_alone(world, played):
    """A function that makes every call of pyspiel that these episodes take, and none besides."""
    episodes = sum(len(one.returns) for one in played)
    seats = np.concatenate([one.seat for one in played])
    per_episode = max(1, round(len(seats) / episodes))
    rng = np.random.default_rng(0)
    script = []
    for _ in range(episodes):
        state, taken = world.game.new_initial_state(), []
        while not state.is_terminal():
            action = int(rng.choice(state.legal_actions()))
            taken.append((state.current_player(), action))
            state.apply_action(action)
        script.append(taken)
    moves = sum(player >= 0 for taken in script for player, _ in taken)
    share = min(1.0, per_episode * episodes / moves)

    def call():
        for taken in script[: max(1, round(share * len(script)))]:
            state = world.game.new_initial_state()
            for player, action in taken:
                if player >= 0:
                    world.observer.set_from(state, player)
                    state.legal_actions_mask()
                else:
                    state.chance_outcomes()
                state.apply_action(action)
                state.current_player()
            state.returns()

    return call


def config_of(name, batch, block, staleness):
    config = game_config.Config(
        game=name,
        policy="neural",
        play="live",
        batch_size=batch,
        block_size=block,
        hidden_layers=TORSO,
        staleness=staleness,
    )
    return game_config.resolved(config, "live")


def stretches(trainer, collect):
    """A function of a number of updates: goes on learning so far, and says how long it took by the clock."""
    state = train.init(trainer)

    def on(updates):
        nonlocal state
        begun = time.perf_counter()
        state, *_ = train.updates(trainer, state, updates, collect)
        return time.perf_counter() - begun

    on(BEFORE)
    return on


def apart(line, core, config):
    """A run of one worker in a process and on a core of its own, as far as it is told to go on."""
    os.sched_setaffinity(0, {core})
    executor.make_small_calls()
    on = stretches(live.trainer(config), train.here)
    line.send(None)
    while updates := line.recv():
        line.send(on(updates))


def many_workers(name, count, batch, block, staleness):
    """Episodes a second by the clock: of one worker, this process; of `count`; and of `count` runs."""
    config = config_of(name, batch, block, staleness)
    trainer = live.trainer(config)
    spawn, cores = multiprocessing.get_context("spawn"), sorted(os.sched_getaffinity(0))
    pipes = [spawn.Pipe() for _ in range(count)]
    runs = [
        spawn.Process(target=apart, args=(theirs, cores[i % len(cores)], config), daemon=True)
        for i, (_, theirs) in enumerate(pipes)
    ]
    for run, (_, theirs) in zip(runs, pipes, strict=True):
        run.start()
        theirs.close()  # so that a run that dies is an end of file here, and no wait for ever
    lines = [ours for ours, _ in pipes]

    def side_by_side(updates):
        for line in lines:
            line.send(updates)
        return [line.recv() for line in lines]

    with live.crew(config, game_config.Actors(workers=count), trainer) as crew:
        sides = {
            "one": stretches(trainer, train.here),
            "many": stretches(trainer, crew.collect),
            "apart": side_by_side,
        }
        for line in lines:
            line.recv()
        taken = {side: [] for side in sides}
        for _ in range(ROUNDS):
            for side, on in sides.items():
                on(WAKING)
                taken[side].append(on(STRETCH))
    for line, run in zip(lines, runs, strict=True):
        line.send(0)
        run.join()
    # Runs that share nothing: what all do together, and what they would if each were the slowest.
    runs_apart = np.array(taken.pop("apart"))
    taken["apart"], taken["slower"] = 1 / np.sum(1 / runs_apart, axis=1), runs_apart.max(axis=1) / count
    rates = {side: STRETCH * batch / np.median(found) for side, found in taken.items()}
    # Within a round: the machine's speed changes between rounds more than sides differ.
    ratios = {side: np.array(taken["one"]) / np.array(found) for side, found in taken.items()}
    low, middle, high = np.percentile(ratios["many"], (25, 50, 75))
    print(
        f"live training, {name}, network {TORSO}, batches of {batch} in blocks of {block}, staleness "
        f"{staleness}, by the clock: {rates['many']:,.0f} episodes/s with {count} workers, "
        f"{rates['one']:,.0f} with one: {middle:.2f}x (bar {WORKERS_BAR:g}x; half of {ROUNDS} rounds from "
        f"{low:.2f}x to {high:.2f}x)"
    )
    print(
        f"    {count} runs of one worker side by side, which share nothing: "
        f"{rates['apart']:,.0f} episodes/s, {np.median(ratios['apart']):.2f}x; "
        f"if all were as slow as the slowest, {np.median(ratios['slower']):.2f}x"
    )
    even = runs_apart.max(axis=1) <= EVEN * runs_apart.min(axis=1)
    if even.any():
        print(
            f"    {count} workers in the {even.sum()} rounds of {ROUNDS} in which these were as fast, to "
            f"{100 * (EVEN - 1):.0f}%: {np.median(ratios['many'][even]):.2f}x"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch", type=int, default=256, help="episodes of one update, of many workers")
    parser.add_argument("--block", type=int, default=play.BLOCK)
    parser.add_argument("--staleness", type=int, default=0, help="of many workers")
    told = parser.parse_args()
    executor.make_small_calls()  # as `train_game.py --play=live` does; both sides gain by it
    if told.workers == 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for name in GAMES:
        if told.workers == 1:
            one_worker(name, told.block)
        else:
            many_workers(name, told.workers, told.batch, told.block, told.staleness)


if __name__ == "__main__":
    main()
