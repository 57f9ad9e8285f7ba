"""NashConv of sampled tables on the way to 100 million episodes, for flags of `train_game.py`.

    python studies/self_play/sampled_schedules.py rows.csv leduc_poker 0,1,2 3,10,30,100 "" magnet_speed=4

A row for every game, setting, seed and mark in millions of episodes, added to the file; what stands there
already is not run again. The empty setting is the default.
"""

import csv
import pathlib
import sys
import time

import jax

from pohp_neurd.experiment import game as runs
from pohp_neurd.experiment import game_config

COLUMNS = ("game", "setting", "seed", "millions", "seconds", "nash_conv", "nash_conv_average")


def read(setting):
    """The flags of a setting: whole numbers, numbers, words."""
    found = dict(part.split("=") for part in setting.split(",") if part)
    for name, text in found.items():
        for kind in (int, float):
            try:
                found[name] = kind(text)
                break
            except ValueError:
                pass
    return found


def run(game, setting, seed, marks):
    """The rows of one run."""
    flags = read(setting)
    config, task = runs.build(game_config.Config(game=game, seed=seed, episodes=marks[-1] * 10**6, **flags))
    state, done, spent = jax.block_until_ready(task.advance(task.begin(), 1)), 1, 0.0
    for mark in marks:
        updates = -(-mark * 10**6 // config.batch_size)
        begun = time.process_time()
        state = jax.block_until_ready(task.advance(state, updates - done))
        spent += time.process_time() - begun
        done = updates
        (row,) = task.evaluate(state, done, [])
        judged = (f"{row[name]:.5f}" for name in COLUMNS[-2:])
        yield [game, setting, seed, mark, f"{spent:.1f}", *judged]


def main(output, game, seeds, marks, *settings):
    """Adds the rows that the file does not have."""
    path = pathlib.Path(output)
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    with path.open(newline="") as file:
        had = {tuple(row[name] for name in COLUMNS[:4]) for row in csv.DictReader(file)}
    for setting in settings:
        for seed in seeds.split(","):
            left = [int(mark) for mark in marks.split(",") if (game, setting, seed, mark) not in had]
            if not left:
                continue
            for row in run(game, setting, int(seed), left):
                print(*row, flush=True)
                with path.open("a", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerow(row)


if __name__ == "__main__":
    main(*sys.argv[1:])
