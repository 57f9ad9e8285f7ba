"""Games of billions of histories on one core: graph of agent states, exact NashConv, self-play.

    python benchmarks/large_games.py                                             five games, all kinds
    python benchmarks/large_games.py --games "phantom_ttt(gameversion=abrupt)"   one game
    python benchmarks/large_games.py --kinds sampled network --seeds 100 101     some kinds, for each seed

Seconds of judging and training are CPU seconds of one thread. The published number of information states,
which a responder with perfect recall must visit, is printed beside ours. Exploitability is NashConv / 2, of
the current policy. Tables are trained by `NeuRDCIXSolver(graph)` with its defaults. The network has two
hidden layers of 128 and sees the seat. Decisions are those of both players.
"""

import os

# One core: set before JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
CORES = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, CORES[:1])

import argparse  # noqa: E402
import pathlib  # noqa: E402
import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

import jax  # noqa: E402
import numpy as np  # noqa: E402

from pohp_neurd import exact, openspiel  # noqa: E402
from pohp_neurd.finite import graph  # noqa: E402
from pohp_neurd.openspiel import compile as compiling  # noqa: E402

PUBLISHED = {
    "phantom_ttt": 5_990_669,
    "phantom_ttt(gameversion=abrupt)": 23_310_269,
    "dark_hex(board_size=3,gameversion=cdh)": 6_072_917,
    "dark_hex(board_size=3,gameversion=adh)": 27_325_277,
    "liars_dice(numdice=2,dice_sides=5)": 15_728_640,
}
"""Information states of both players, counted by Rudolph et al. (2025)."""
WORLD = {"liars_dice(numdice=2,dice_sides=5)": "observations"}
"""The bidding is in its strings, which the future does not depend on."""
REPORTS = 4
REPEATS = 3
UPDATES = {"expected": 4_000, "sampled": 4_800, "network": 1_200}
EPISODES = {"sampled": 4_096, "network": 16_384}


class Table:
    """A table that learns."""

    def __init__(self, world, kind, seed):
        batch = {"batch_size": EPISODES[kind]} if kind in EPISODES else {}
        self._solver = openspiel.NeuRDCIXSolver(world, update=kind, seed=seed, **batch)

    def advance(self, num_updates):
        """That many updates; the decisions that were made."""
        before = self._solver.decisions
        self._solver.evaluate_and_update_policy(num_updates)
        return self._solver.decisions - before

    def nash_conv(self):
        """Of the current policy."""
        return self._solver.nash_conv()


class Network:
    """A network that learns from episodes."""

    def __init__(self, world, kind, seed):
        # Here, as who only judges need not hold them in memory.
        from pohp_neurd import directions, neural, optimizers, self_play, shaping, tally_learners

        seats = np.eye(world.num_agents)[world.state_player]
        features = np.concatenate([world.features, seats], axis=1).astype(np.float32)
        hot = directions.decaying(0.01, power=0.5, start=300.0)
        learner = tally_learners.network(
            neural.network(features.shape[1], world.num_actions, torso=(128, 128), critic=True),
            directions.neurd_cix(0.02),
            [optimizers.adam_without_momentum(lambda t: hot(t) * (1.0 - t / UPDATES[kind]))],
            magnet=shaping.Magnet(0.02, directions.decaying(2.0 / 300.0, power=1.0, start=300.0)),
        )
        self._world, self._arena = world, self_play.arena_of(world, features=features)
        self._loop = self_play.loop(learner, num_episodes=EPISODES[kind], scale=world.return_bound)
        self._state = self._loop.init(self._arena, key=jax.random.key(seed))
        self._key = jax.random.key(seed + 1_000_000)

    def advance(self, num_updates):
        """That many updates; the decisions that were made."""
        self._state = self._loop.advance(self._arena, self._state, np.int32(num_updates), self._key)
        return int(self._state.steps)

    def nash_conv(self):
        """Of the current policy."""
        table = np.asarray(self._loop.policies(self._arena, self._state), np.float64)
        return exact.nash_conv(self._world, table / table.sum(axis=1, keepdims=True))


def main():
    """Builds, judges and trains in each game."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--games", nargs="*", default=list(PUBLISHED))
    parser.add_argument("--kinds", nargs="*", default=list(UPDATES), choices=list(UPDATES))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--agent_state", default="observation")
    parser.add_argument("--build", help="a file for the graph of the one game, which is built and judged")
    parser.add_argument("--judge", help="a saved graph of the one game, to judge alone")
    asked = parser.parse_args()
    if asked.build:
        build(asked.build, *asked.games, asked.agent_state)
    elif asked.judge:
        judge(asked.judge, *asked.games)
    else:
        for name in asked.games:
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "graph.npz")
                # Each in a process of its own, which shows what it takes and no more.
                given = ["--games", name, "--agent_state", asked.agent_state]
                os.sched_setaffinity(0, CORES)
                for step in ("--build", "--judge"):
                    subprocess.run([sys.executable, __file__, step, str(path), *given], check=True)
                os.sched_setaffinity(0, CORES[:1])
                world = compiling.load_graph(path)
            for kind in asked.kinds:
                # Expected updates have no chance in them.
                for seed in asked.seeds[:1] if kind == "expected" else asked.seeds:
                    train(world, kind, seed)


def build(path, name, agent_state):
    """The graph of a game, judged once as a user would, and saved."""
    begun = time.process_time()
    world = openspiel.compile_game(name, agent_state=agent_state, world=WORLD.get(name, "string"))
    built = time.process_time() - begun
    exact.nash_conv(world, exact.uniform(world))
    memory = _megabytes()
    begun = time.perf_counter()
    compiling.save_graph(path, world)
    print(
        f"{name}: {world.num_nodes:,} nodes, {world.num_agent_states:,} agent states, built in "
        f"{built:.1f} s; built and judged within {memory:.0f} MB; saved in "
        f"{time.perf_counter() - begun:.2f} s, {os.path.getsize(path) / 1e6:.1f} MB; {graph.recall(world)}",
        flush=True,
    )


def judge(path, name):
    """NashConv of the uniform policy on a saved graph: one thread and two, in turns; the best of each."""
    start = time.perf_counter()
    world = compiling.load_graph(path)
    loaded = time.perf_counter() - start
    small = openspiel.compile_game("kuhn_poker", agent_state="observation")
    exact.responses(small, exact.uniform(small))  # compiles
    table, elapsed, spent = exact.uniform(world), {1: [], 2: []}, {1: [], 2: []}
    os.sched_setaffinity(0, CORES)
    for threads in (1, 2) * REPEATS:
        begun = time.perf_counter(), time.process_time()
        found = exact.responses(world, table, num_threads=threads)
        elapsed[threads].append(time.perf_counter() - begun[0])
        spent[threads].append(time.process_time() - begun[1])
    visited = sum(response.information_states for response in found)
    known = f" (published {PUBLISHED[name]:,})" if name in PUBLISHED else ""
    gains = sum(response.value for response in found) - exact.expected_returns(world, table).sum()
    print(
        f"  loaded in {loaded:.2f} s; uniform policy: exploitability {gains / 2:.6f}, {visited:,} "
        f"information states{known}, {min(spent[1]):.1f} s of CPU; on the clock {min(elapsed[1]):.1f} s, two "
        f"threads {min(elapsed[2]):.1f} s, {min(elapsed[1]) / min(elapsed[2]):.2f}x; "
        f"{_megabytes():.0f} MB at most",
        flush=True,
    )


def _megabytes():
    """The most memory that this process has had: resident, libraries included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def train(world, kind, seed):
    """Exploitability over time."""
    start = time.perf_counter()
    learner = (Network if kind == "network" else Table)(world, kind, seed)
    decisions = learner.advance(1)
    print(f"  {kind}, seed {seed}: {time.perf_counter() - start:.1f} s to set up and compile")
    trained, done = 0.0, 1
    for report in range(1, REPORTS + 1):
        until = UPDATES[kind] * report // REPORTS
        start = time.process_time()
        decisions += learner.advance(until - done)
        trained += time.process_time() - start
        done, episodes = until, until * EPISODES.get(kind, 0)
        seen = f" of {decisions / 1e6:,.1f} million decisions, {episodes / trained:,.0f} episodes/s"
        print(
            f"    {done:,} updates{seen if episodes else ''}, {trained:.1f} s: "
            f"exploitability {learner.nash_conv() / 2:.5f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
