"""Sampled learning at its defaults beside C++ external-sampling MCCFR, at the same CPU seconds of one core.

    python benchmarks/sampled.py --games kuhn_poker leduc_poker --seeds 100 101 102 --output rows.csv

Ours is what `train_game.py` runs, and `NeuRDCIXSolver(game, update="sampled")` for as many updates. MCCFR has
the seconds of the episodes alone (`mccfr`), and those with game and code compiled within (`mccfr_total`).
"""

import os

# One core for every side: set before JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import argparse  # noqa: E402
import csv  # noqa: E402
import pathlib  # noqa: E402
import time  # noqa: E402

import jax  # noqa: E402
import pyspiel  # noqa: E402

from pohp_neurd import exact, openspiel  # noqa: E402
from pohp_neurd.experiment import game as runs  # noqa: E402
from pohp_neurd.experiment import game_config  # noqa: E402

GOOFSPIEL = "goofspiel(imp_info=True,num_cards=4,points_order=descending)"
GAMES = (
    "kuhn_poker",
    "leduc_poker",
    "liars_dice(dice_sides=4)",
    f"turn_based_simultaneous_game(game={GOOFSPIEL})",
)
COLUMNS = (
    "game",
    "learner",
    "seed",
    "episodes",
    "compile_seconds",
    "seconds",
    "nash_conv",
    "nash_conv_average",
)
COLUMNS = (*COLUMNS, "solver", "solver_average", "mccfr", "mccfr_total")


def trained(game, learner, seed, episodes):
    start = time.process_time()
    config, task = runs.build(game_config.Config(game=game, learner=learner, seed=seed, episodes=episodes))
    state = jax.block_until_ready(task.advance(task.begin(), 1))
    compiled = time.process_time()
    updates = game_config.updates(config)
    state = jax.block_until_ready(task.advance(state, updates - 1))
    done = time.process_time()
    (row,) = task.evaluate(state, updates, [])
    return row, compiled - start, done - compiled


def solved(tree, learner, seed, updates):
    solver = openspiel.NeuRDCIXSolver(tree, update="sampled", learner=learner, seed=seed)
    solver.evaluate_and_update_policy(updates)
    return solver.nash_conv("current"), solver.nash_conv("average")


def mccfr(game, tree, seed, limits):
    """NashConv of the average policy after each of `limits`, CPU seconds."""
    solver = pyspiel.ExternalSamplingMCCFRSolver(pyspiel.load_game(game), seed)
    spent, found = 0.0, []
    for limit in limits:
        while spent < limit:
            start = time.process_time()
            for _ in range(200):
                solver.run_iteration()
            spent += time.process_time() - start
        found.append(float(exact.nash_conv(tree, openspiel.table_of(tree, solver.average_policy()))))
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", nargs="+", default=GAMES)
    parser.add_argument("--learner", default="neurd_cix")
    parser.add_argument("--seeds", nargs="+", type=int, default=(100, 101, 102))
    parser.add_argument("--episodes", type=float, default=1e7)
    parser.add_argument("--alone", action="store_true", help="Neither the solver nor MCCFR.")
    parser.add_argument("--output", help="A CSV file to add rows to.")
    asked = parser.parse_args()
    for game in asked.games:
        tree = openspiel.compile_game(game)
        for seed in asked.seeds:
            row, compiling, seconds = trained(game, asked.learner, seed, int(asked.episodes))
            judged = [row["nash_conv"], row["nash_conv_average"]]
            if not asked.alone:
                judged += solved(tree, asked.learner, seed, row["updates"])
                judged += mccfr(game, tree, seed, (seconds, seconds + compiling))
            times = [f"{compiling:.2f}", f"{seconds:.2f}"]
            values = [
                game,
                asked.learner,
                seed,
                row["episodes"],
                *times,
                *(f"{value:.5f}" for value in judged),
            ]
            print(
                ", ".join(f"{name} {value}" for name, value in zip(COLUMNS, values, strict=False)), flush=True
            )
            if asked.output:
                path = pathlib.Path(asked.output)
                fresh = not path.exists()
                with path.open("a", newline="") as file:
                    writer = csv.writer(file, lineterminator="\n")
                    writer.writerows([COLUMNS] * fresh + [values])


if __name__ == "__main__":
    main()
