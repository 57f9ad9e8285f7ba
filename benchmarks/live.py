"""Speed of live play: episodes a second with one batched network call a step, beside single-state calls.

    python benchmarks/live.py

Both sides play the same game with the same network, drawing actions by the same function, on one core. Times
are CPU time, the best of several repeats taken in turn, so that other work on the machine counts little.
"""

import os

# One core for both sides: set before JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import argparse  # noqa: E402
import time  # noqa: E402

import jax  # noqa: E402
import numpy as np  # noqa: E402

from pohp_neurd import neural, policy, regularisation  # noqa: E402
from pohp_neurd.openspiel import uniforms  # noqa: E402
from pohp_neurd.openspiel.live import play, train  # noqa: E402

GAMES = ("liars_dice(numdice=2)", "phantom_ttt")
BAR = 10
EPISODES = 2_048
SINGLE_EPISODES = 128
REPEATS = 5
SLOTS, TORSO = 256, (128, 128)


def single_state_loop(world, network, key):
    """Plays episodes one after the other, with one compiled call for every state."""

    @jax.jit
    def act(parameters, features, legal, key, step):
        output = network.model.apply(parameters, features)
        chances = policy.probabilities(output.logits, legal)
        action = policy.sample(chances, key=jax.random.fold_in(key, step))
        return action, chances[action], output.value

    rng = np.random.default_rng(0)
    steps = 0

    def call():
        nonlocal steps
        trajectories = []
        for _ in range(SINGLE_EPISODES):
            state, episode = world.game.new_initial_state(), []
            while not state.is_terminal():
                if state.is_chance_node():
                    state.apply_action(uniforms.pick(state.chance_outcomes(), rng.random()))
                    continue
                seat = state.current_player()
                features = world.features(state, seat)
                legal = np.array(state.legal_actions_mask(), bool)
                chosen = jax.device_get(act(network.parameters, features, legal, key, np.uint32(steps)))
                steps += 1
                episode.append((features, legal, seat, chosen))
                state.apply_action(int(chosen[0]))
            trajectories.append((episode, state.returns()))
        return trajectories

    return call


def batched(world, network, key):
    calls = 0

    def call():
        nonlocal calls
        calls += 1
        return play.play(world, [network], EPISODES, slots=SLOTS, key=jax.random.fold_in(key, calls))

    return call


def best_seconds(calls):
    """The best CPU time of each of `calls`, repeated in turn."""
    best = dict.fromkeys(calls, np.inf)
    for call in calls.values():
        call()
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - start)
    return best


def compare(name, torso):
    world = play.live_game(name)
    model = play.network(world, torso)
    network = play.Network(model, model.init(key=jax.random.key(0)))
    key = jax.random.key(1)
    calls = {
        "batched": batched(world, network, key),
        "single": single_state_loop(world, network, key),
    }
    seconds = best_seconds(calls)
    rates = {"batched": EPISODES / seconds["batched"], "single": SINGLE_EPISODES / seconds["single"]}
    ratio = rates["batched"] / rates["single"]
    print(
        f"live play, {name}, network {torso}: {rates['batched']:,.0f} episodes/s in {SLOTS} slots, "
        f"{rates['single']:,.0f} with single-state calls: {ratio:.1f}x (bar {BAR}x)"
    )


def training(name):
    world = play.live_game(name)
    model = play.network(world, TORSO)
    magnet = regularisation.Magnet(0.1, 0.01)
    learner = train.default_learner(model, learning_rate=0.01, magnet=magnet)
    trainer = train.Trainer(world, model, learner, slots=SLOTS)
    state, _ = train.advance(trainer, train.init(trainer), 10)
    # From the same state again and again: the same episodes, so that nothing new has to be compiled.
    seconds = best_seconds({"training": lambda: train.advance(trainer, state, 5)})["training"]
    rate = 5 * trainer.batch_episodes / seconds
    print(f"live training, {name}, default settings: {rate:,.0f} episodes/s, updates included")


def main():
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    for name in GAMES:
        for torso in (TORSO, neural.PAPER_TORSO):
            compare(name, torso)
        training(name)


if __name__ == "__main__":
    main()
