"""Which settings of exact updates suit graphs: chosen on phantom tic-tac-toe and Leduc poker alone.

    python studies/large_games/choose.py studies/large_games/choices.csv

Every setting makes 4,000 updates in both games, with the observation as the agent state. The one with the
least geometric mean of exploitability over all evaluations is taken. Rows are added to the file;
a run that stands there is not made again.
"""

import csv
import itertools
import math
import pathlib
import sys
import time

from pohp_neurd import directions, openspiel

GAMES = ("leduc_poker", "phantom_ttt")
UPDATES = (1000, 2000, 3000, 4000)
COLUMNS = (
    "game",
    "exploration",
    "magnet_strength",
    "magnet_speed",
    "settling",
    "updates",
    "seconds",
    "exploitability",
)
SETTINGS = [
    dict(zip(COLUMNS[1:5], values, strict=True))
    for values in itertools.product((0.0, 0.02), (0.05, 0.1), (0.004, 0.008), (0, 500))
]
"""Of NeuRD-CIX with step size 0.4. A magnet that settles moves by speed / (1 + t / settling) at update t."""


def run(world, setting):
    """Seconds of training and exploitability after each of UPDATES."""
    options = {name: value for name, value in setting.items() if name != "settling"}
    if setting["settling"]:
        speed, start = setting["magnet_speed"], float(setting["settling"])
        options["magnet_speed"] = directions.decaying(speed, power=1.0, start=start)
    solver, spent = openspiel.NeuRDCIXSolver(world, step_size=0.4, **options), 0.0
    for updates in UPDATES:
        begun = time.process_time()
        solver.evaluate_and_update_policy(updates - solver.updates)
        spent += time.process_time() - begun
        yield updates, f"{spent:.1f}", f"{solver.nash_conv('current') / 2:.6f}"


def chosen(rows):
    """The setting with the least geometric mean of exploitability, over both games and all evaluations."""

    def mean(setting):
        mine = [row for row in rows if all(float(row[name]) == value for name, value in setting.items())]
        return sum(math.log(float(row["exploitability"])) for row in mine) / len(mine)

    return min(SETTINGS, key=mean)


def main(output):
    """Adds the rows that the file does not have."""
    path = pathlib.Path(output)
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    with path.open(newline="", encoding="utf-8") as file:
        had = {tuple(row[name] for name in COLUMNS[:5]) for row in csv.DictReader(file)}
    for game in GAMES:
        world = openspiel.compile_game(game, agent_state="observation")
        for setting in SETTINGS:
            cell = (game, *map(str, setting.values()))
            if cell in had:
                continue
            found = [(*cell, *row) for row in run(world, setting)]
            print(*found[-1], flush=True)
            with path.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(found)
    with path.open(newline="", encoding="utf-8") as file:
        print("chosen:", chosen(list(csv.DictReader(file))))


if __name__ == "__main__":
    main(*sys.argv[1:])
