"""Games of billions of histories on one core: graph of agent states, exact NashConv, expected self-play.

    python benchmarks/large_games.py                                    the four 3x3 games
    python benchmarks/large_games.py "phantom_ttt(gameversion=abrupt)"  one game

Seconds of judging and training are CPU seconds of one thread. The published number of information states,
which a responder with perfect recall must visit, is printed beside ours. Exploitability is NashConv / 2;
training is `NeuRDCIXSolver(graph)` with its defaults.
"""

import os

# One core: set before JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import resource  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

from pohp_neurd import exact, openspiel  # noqa: E402
from pohp_neurd.finite import graph  # noqa: E402

PUBLISHED = {
    "phantom_ttt": 5_990_669,
    "phantom_ttt(gameversion=abrupt)": 23_310_269,
    "dark_hex(board_size=3,gameversion=cdh)": 6_072_917,
    "dark_hex(board_size=3,gameversion=adh)": 27_325_277,
}
"""Information states of both players, counted by Rudolph et al. (2025)."""
UPDATES, REPORTS = 2_000, 4


def main():
    """Builds, judges and trains in each game."""
    exact.responses(openspiel.compile_game("kuhn_poker", agent_state="observation"), _kuhn())  # compiles
    for name in sys.argv[1:] or PUBLISHED:
        start = time.perf_counter()
        world = openspiel.compile_game(name, agent_state="observation")
        print(
            f"{name}: {world.num_nodes:,} nodes, {world.num_agent_states:,} agent states, "
            f"built in {time.perf_counter() - start:.1f} s; {graph.recall(world)}"
        )
        start = time.process_time()
        found = exact.responses(world, exact.uniform(world), num_threads=1)
        spent = time.process_time() - start
        visited = sum(response.information_states for response in found)
        known = f" (published {PUBLISHED[name]:,})" if name in PUBLISHED else ""
        expected = exact.expected_returns(world, exact.uniform(world))
        gains = sum(response.value for response in found) - expected.sum()
        print(
            f"  uniform policy: exploitability {gains / 2:.6f}, {visited:,} information states{known}, "
            f"{spent:.1f} s, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most"
        )
        start = time.perf_counter()
        solver = openspiel.NeuRDCIXSolver(world)
        solver.evaluate_and_update_policy()
        print(f"  training: {time.perf_counter() - start:.1f} s to set up and compile")
        trained = 0.0
        for _ in range(REPORTS):
            start = time.process_time()
            solver.evaluate_and_update_policy(UPDATES // REPORTS)
            trained += time.process_time() - start
            reached = solver.nash_conv() / 2
            print(
                f"    {solver.updates:,} updates, {trained:.1f} s: exploitability {reached:.5f}", flush=True
            )


def _kuhn():
    return exact.uniform(openspiel.compile_game("kuhn_poker", agent_state="observation"))


if __name__ == "__main__":
    main()
