"""Does the current policy of NeuRD settle, with and without exploration, where nothing is sampled?

    python studies/self_play/settling.py studies/self_play

Exact updates, both players in turn, with the schedule that sampled tables have by default: step size and
magnet fall as t^-1/2, the magnet is a running mean. `settling.csv` has NashConv of the current and of the
average policy over updates for every game, exploration and step size; `settling.png` draws the first. Rows
that stand there are not made again.
"""

import csv
import pathlib
import sys

import numpy as np

from pohp_neurd import checks, directions, openspiel
from pohp_neurd.results import figures

GOOFSPIEL = "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=4,points_order=descending))"
GAMES = {"leduc_poker": "Leduc poker", "kuhn_poker": "Kuhn poker", GOOFSPIEL: "Goofspiel-4"}
EXPLORATIONS = (0.0, 0.001, 0.01, 0.1)
STEP_SIZES = (1.0, 2.0, 4.0)
UPDATES = [round(count) for count in np.geomspace(500, 100_000, 60)]
COLUMNS = ("game", "exploration", "step_size", "updates", "nash_conv", "nash_conv_average")


def run(tree, exploration, step_size):
    """NashConv of both policies after each of UPDATES."""
    default = checks.SAMPLED
    start = default["decay_start"] / 2  # a sampled update is a turn of one player, this one of both
    solver = openspiel.NeuRDCIXSolver(
        tree,
        exploration=exploration,
        step_size=directions.decaying(step_size, power=default["step_size_decay"], start=start),
        magnet_strength=directions.decaying(
            default["magnet_strength"], power=default["magnet_decay"], start=start
        ),
        magnet_speed=directions.decaying(
            default["magnet_speed"] / start, power=default["magnet_speed_decay"], start=start
        ),
        average_power=default["average_power"],
    )
    for updates in UPDATES:
        solver.evaluate_and_update_policy(updates - solver.updates)
        yield updates, *(f"{solver.nash_conv(which):.4g}" for which in ("current", "average"))


def draw(path, rows):
    """A panel for each game, a line for each exploration and step size."""
    with figures.figure(path, width=10.5, height=3.8) as page:
        for place, (game, title) in enumerate(GAMES.items()):
            axes = page.add_subplot(1, len(GAMES), place + 1)
            for index, exploration in enumerate(EXPLORATIONS):
                for step_size, line in zip(STEP_SIZES, ("-", "--", ":"), strict=True):
                    mine = [
                        row
                        for row in rows
                        if (row["game"], float(row["exploration"]), float(row["step_size"]))
                        == (game, exploration, step_size)
                    ]
                    axes.plot(
                        [int(row["updates"]) for row in mine],
                        [float(row["nash_conv"]) for row in mine],
                        color=f"C{index}",
                        linestyle=line,
                        linewidth=1,
                        label=f"η = {exploration:g}" if line == "-" else None,
                    )
            axes.set(xscale="log", yscale="log", xlabel="exact updates", title=title)
            if place == 0:
                axes.set(ylabel="NashConv, current policy")
        figures.legend_below(page, *page.axes[0].get_legend_handles_labels(), ncols=4)


def main(folder):
    """Adds the rows that are missing, and draws all."""
    path = pathlib.Path(folder) / "settling.csv"
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    with path.open(newline="", encoding="utf-8") as file:
        had = {tuple(row[name] for name in COLUMNS[:3]) for row in csv.DictReader(file)}
    for game in GAMES:
        tree = openspiel.compile_game(game)
        for exploration in EXPLORATIONS:
            for step_size in STEP_SIZES:
                cell = (game, str(exploration), str(step_size))
                if cell not in had:
                    found = [(*cell, *row) for row in run(tree, exploration, step_size)]
                    with path.open("a", newline="", encoding="utf-8") as file:
                        csv.writer(file, lineterminator="\n").writerows(found)
                    print(*found[-1], flush=True)
    with path.open(newline="", encoding="utf-8") as file:
        draw(path.with_suffix(".png"), list(csv.DictReader(file)))


if __name__ == "__main__":
    main(*sys.argv[1:])
