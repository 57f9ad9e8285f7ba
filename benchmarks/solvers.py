"""NashConv after some CPU seconds, on one core: every solver of ours beside those of OpenSpiel in C++.

    python benchmarks/solvers.py --games leduc_poker --solvers rm_plus cfr_plus
    python benchmarks/solvers.py --output=studies/speed/solvers.csv
    python benchmarks/solvers.py --output=studies/speed/solvers.csv --figure=studies/speed/solvers.png
    python benchmarks/solvers.py --startup

Seconds are of training alone: compilation is listed apart, and evaluations between are not counted. Rows that
stand in the output are not measured again, so that a run can be cut and go on. `--startup` has the seconds of
fresh processes to their first NashConv instead, with and without compiled programs on disk.
"""

import os

# One core for every side: set before JAX starts.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import argparse  # noqa: E402
import csv  # noqa: E402
import functools  # noqa: E402
import pathlib  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

GOOFSPIEL = "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=5,points_order=descending))"
GAMES = ("kuhn_poker", "leduc_poker", "liars_dice(dice_sides=5)", "liars_dice", GOOFSPIEL)
OURS = {
    "regret_matching": {"learner": "regret_matching"},
    "rm_plus": {"learner": "rm_plus"},
    "predictive_rm_plus": {"learner": "predictive_rm_plus"},
    "optimistic_hedge": {"learner": "optimistic_hedge"},
    "neurd": {"learner": "neurd"},
    "neurd_cix sampled": {"update": "sampled"},
}
THEIRS = {
    "cfr": "CFRSolver",
    "cfr_plus": "CFRPlusSolver",
    "es_mccfr": "ExternalSamplingMCCFRSolver",
    "os_mccfr": "OutcomeSamplingMCCFRSolver",
}
COLUMNS = ("game", "solver", "policy", "compiling", "milliseconds", "seconds", "nash_conv")
STARTUP = """
import time
from pohp_neurd import openspiel
solver = openspiel.NeuRDCIXSolver({game!r}, **{options})
solver.evaluate_and_update_policy(10)
solver.nash_conv()
print(time.process_time())
"""


@functools.lru_cache(maxsize=1)
def compiled(name):
    import pyspiel

    from pohp_neurd import openspiel

    game = pyspiel.load_game(name)
    return game, openspiel.compile_game(game)


def ours(name, options):
    """A step of many updates, NashConv of every policy, and the CPU seconds of compilation."""
    from pohp_neurd import openspiel

    _, tree = compiled(name)
    start = time.process_time()
    solver = openspiel.NeuRDCIXSolver(tree, **options)
    solver.evaluate_and_update_policy()
    spent = time.process_time() - start

    def judged():
        return {which: solver.nash_conv(which) for which in ("average", "current")}

    return solver.evaluate_and_update_policy, judged, spent


def theirs(name, kind):
    import pyspiel

    from pohp_neurd import exact, openspiel

    game, tree = compiled(name)
    start = time.process_time()
    solver = getattr(pyspiel, kind)(game)
    step = getattr(solver, "evaluate_and_update_policy", None) or solver.run_iteration

    def steps(count):
        for _ in range(count):
            step()

    def judged():
        table = openspiel.table_of(tree, solver.average_policy())
        return {"average": exact.nash_conv(tree, table, compiled=False)}

    steps(1)
    return steps, judged, time.process_time() - start


def measure(steps, judged, seconds):
    """What every policy is worth after each of `seconds`, and the milliseconds of one update."""
    spent, made, count, found = 0.0, 0, 1, []
    for limit in seconds:
        while spent < limit:
            start = time.process_time()
            steps(count)
            took = time.process_time() - start
            spent, made = spent + took, made + count
            # Calls of about a twentieth of a second, and none that would overshoot by more.
            count = max(1, int(count * min(10.0, min(0.05, max(limit - spent, 0.0)) / max(took, 1e-6))))
        found.append((limit, judged()))
    return found, 1e3 * spent / made


def rows_of(name, solver, seconds):
    made = theirs(name, THEIRS[solver]) if solver in THEIRS else ours(name, OURS[solver])
    *parts, compiling = made
    found, each = measure(*parts, seconds)
    about = f"{compiling:.2f}", f"{each:.4g}"
    return [
        dict(zip(COLUMNS, (name, solver, policy, *about, limit, f"{value:.3e}"), strict=True))
        for limit, policies in found
        for policy, value in policies.items()
    ]


def startup(games):
    """Prints the CPU seconds of fresh processes: the compilation cache cold, warm, and not used."""
    importing = [sys.executable, "-c", "import jax, time; print(time.process_time())"]
    found = subprocess.run(importing, capture_output=True, text=True, check=True)
    print(f"importing JAX alone: {float(found.stdout):.1f} s of CPU", flush=True)
    for name in games:
        for options in ({"learner": "rm_plus"}, {}):
            with tempfile.TemporaryDirectory() as folder:
                kept = {
                    "JAX_COMPILATION_CACHE_DIR": folder,
                    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                }
                spent = []
                for more in (kept, kept, {}):
                    line = [sys.executable, "-c", STARTUP.format(game=name, options=options)]
                    done = subprocess.run(
                        line, env={**os.environ, **more}, capture_output=True, text=True, check=True
                    )
                    spent.append(float(done.stdout))
            cold, warm, without = spent
            print(
                f"{name}, {options.get('learner', 'neurd_cix')}: first NashConv after {cold:.1f} s of CPU, "
                f"{warm:.1f} s with compiled programs on disk, {without:.1f} s where none are kept",
                flush=True,
            )


def draw(path, rows):
    from pohp_neurd.results import figures

    games = list(dict.fromkeys(row["game"] for row in rows))
    with figures.figure(path, width=3.0 * len(games), height=4.0) as page:
        for place, game in enumerate(games):
            axes = page.add_subplot(1, len(games), place + 1)
            lines = dict.fromkeys((row["solver"], row["policy"]) for row in rows if row["game"] == game)
            for solver, policy in lines:
                if policy == "current" and not solver.startswith("neurd"):
                    continue
                here = [r for r in rows if (r["game"], r["solver"], r["policy"]) == (game, solver, policy)]
                points = sorted((float(row["seconds"]), float(row["nash_conv"])) for row in here)
                kinds = [*OURS, *THEIRS]
                axes.plot(
                    *zip(*points, strict=True),
                    label=f"{solver}, {policy}" if solver.startswith("neurd") else solver,
                    color=f"C{kinds.index(solver)}",
                    linestyle="--" if solver in THEIRS else ":" if policy == "current" else "-",
                )
            title = game.split("(game=")[-1].split("(imp_info")[0]
            axes.set(xscale="log", yscale="log", xlabel="CPU seconds", title=title)
            if place == 0:
                axes.set(ylabel="NashConv")
        figures.legend_below(page, *page.axes[0].get_legend_handles_labels(), ncols=6)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", nargs="+", default=GAMES)
    parser.add_argument("--seconds", nargs="+", type=float, default=(1.0, 3.0, 10.0, 20.0, 30.0))
    parser.add_argument("--solvers", nargs="+", default=(*OURS, *THEIRS), choices=(*OURS, *THEIRS))
    parser.add_argument("--output", type=pathlib.Path, help="a table that rows are added to")
    parser.add_argument("--figure", type=pathlib.Path, help="of the table; nothing is measured")
    parser.add_argument("--startup", action="store_true")
    asked = parser.parse_args()
    if asked.startup:
        return startup(asked.games if asked.games is not GAMES else ("leduc_poker", "liars_dice"))
    known = []
    if asked.output and asked.output.is_file():
        known = list(csv.DictReader(asked.output.read_text(encoding="utf-8").splitlines()))
    if asked.figure:
        return draw(asked.figure, known)
    for name in asked.games:
        for solver in asked.solvers:
            there = [row for row in known if (row["game"], row["solver"]) == (name, solver)]
            if set(asked.seconds) <= {float(row["seconds"]) for row in there}:
                continue
            found = rows_of(name, solver, asked.seconds)
            known = [row for row in known if row not in there] + found
            for policy in dict.fromkeys(row["policy"] for row in found):
                values = [
                    f"{row['seconds']:g} s {row['nash_conv']}" for row in found if row["policy"] == policy
                ]
                about = f"compiled in {found[0]['compiling']} s, {found[0]['milliseconds']} ms an update"
                print(f"{name}, {solver}, {policy}: {', '.join(values)} ({about})", flush=True)
            if asked.output:
                part = asked.output.with_suffix(".part")
                with part.open("w", encoding="utf-8", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(known)
                part.replace(asked.output)


if __name__ == "__main__":
    main()
