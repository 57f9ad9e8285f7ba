"""Live play where nothing else is possible, or is tried: dark hex 4x4, and Leduc poker with 13 ranks.

    python studies/live/only_sampling.py choose
    python studies/live/only_sampling.py train --game=dark_hex --episodes=30000000 --seed=1 --workers=2
    python studies/live/only_sampling.py explorations --game=dark_hex
    python studies/live/only_sampling.py respond --game=dark_hex
    python studies/live/only_sampling.py meet --game=dark_hex
    python studies/live/only_sampling.py draw

`choose` tries settings in poker, `train` is one long run, `respond` trains responders against what it left
behind, `explorations` are short runs over exploration and seeds, `meet` plays these against each other, and
`draw` makes tables and figure. Networks stand in --runs; rows in this folder. What is there already is not
made again.
"""

import argparse
import csv
import functools
import itertools
import pathlib
import time
from typing import Any

import numpy as np

from pohp_neurd import checkpoint, exact, openspiel
from pohp_neurd.experiment import game_config, live
from pohp_neurd.openspiel import saved
from pohp_neurd.openspiel.live import match, train
from pohp_neurd.results import table

HERE = pathlib.Path(__file__).resolve().parent
GAMES = {
    "dark_hex": "dark_hex(board_size=4)",
    "leduc_13": "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,raiseSize=2 4,"
    "firstPlayer=1 1,maxRaises=2 2,numSuits=2,numRanks=13,numHoleCards=1,numBoardCards=0 1)",
}
TITLES = {"dark_hex": "Dark hex 4x4", "leduc_13": "Leduc poker, 13 ranks"}
EXPLORATIONS, SEEDS = (0.0, 0.1, 1.0), range(10, 15)
SHORT = {"dark_hex": 300_032, "leduc_13": 600_064}
"""Episodes of the runs over exploration."""
USES = ("current", "average")
MATCH, BOUND = 4000, 20_000
"""Episodes of a match, and of a lower bound."""
_RUN = ("game", "exploration", "seed")
COLUMNS = {
    "choices": ("setting", "seed", "episodes", "nash_conv", "nash_conv_average"),
    "curves": (*_RUN, "episodes", "use", "against_uniform", "half_width", "nash_conv"),
    "bounds": (*_RUN, "episodes", "use", "updates", "low", "mean", "high"),
    "matches": (*_RUN, "opponent", "use", "low", "mean", "high"),
}


def config_of(name: str, exploration: float, seed: int, episodes: int) -> game_config.Config:
    """As train_game.py has it by default."""
    chosen = game_config.Config(
        game=GAMES[name],
        policy="neural",
        play="live",
        exploration=exploration,
        seed=seed,
        episodes=episodes,
    )
    return game_config.resolved(chosen, "live")


def folder_of(told: Any, name: str, exploration: float, seed: int) -> pathlib.Path:
    """Of one run; its networks after N episodes are in the folder N there."""
    return pathlib.Path(told.runs) / f"{name}_{exploration:g}_{seed}"


def path_of(name: str) -> pathlib.Path:
    """Of a table."""
    return HERE / f"only_sampling_{name}.csv"


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows that there are."""
    path = path_of(name)
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def add(name: str, *row: Any) -> None:
    """Adds a row, at the end of the file, in one go."""
    path = path_of(name)
    text = ",".join(f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row)
    with path.open("a", encoding="utf-8") as file:
        file.write(("" if file.tell() else ",".join(COLUMNS[name]) + "\n") + text + "\n")
    print(text, flush=True)


@functools.cache
def tree_of(name: str) -> Any:
    """Of the poker game alone: nobody has dark hex's."""
    return openspiel.compile_game(GAMES[name]) if name == "leduc_13" else None


def learn(told: Any, name: str, exploration: float, seed: int, marks: list[int]) -> None:
    """Trains through all `marks`, which are in episodes; at each the networks are saved and judged."""
    config = config_of(name, exploration, seed, marks[-1])
    folder, trainer = folder_of(told, name, exploration, seed), live.trainer(config)
    state = train.init(trainer)
    before = checkpoint.restore(folder / "state", state)
    state = state if before is None else before.tree
    workers = game_config.Actors(workers=told.workers)
    with live.crew(config, workers, trainer) as crew:
        collect = train.here if crew is None else crew.collect
        for mark in marks:
            begun = time.perf_counter(), int(state.episodes)
            while state.episodes < mark:
                state, _ = train.update(trainer, state, collect)
                if state.episodes % (1 << 19) == 0:
                    checkpoint.save(folder / "state", int(state.episodes), state, keep=2)
                    rate = (int(state.episodes) - begun[1]) / (time.perf_counter() - begun[0])
                    print(f"{folder.name}: {int(state.episodes):,} at {rate:,.0f}/s", flush=True)
            if not train.finite(state):
                raise ValueError(f"{folder} has diverged.")
            if state.episodes == mark and not (folder / str(mark)).exists():
                judge(config, name, folder / str(mark), trainer, state)


def judge(config: Any, name: str, folder: pathlib.Path, trainer: train.Trainer, state: train.State) -> None:
    """Saves both networks, and adds their rows: against uniform play, and by exact NashConv."""
    whole = networks_of(config, trainer, state)
    for use in USES:
        found = match.play(trainer.world, [saved.network(whole, use), None], MATCH, seed=config.seed)
        tree = tree_of(name)
        nash_conv: Any = ""
        if tree is not None:
            nash_conv = float(exact.nash_conv(tree, saved.table(whole, tree, use)))
        figures = (use, float(found.mean), float(found.mean - found.low), nash_conv)
        add("curves", name, config.exploration, config.seed, int(state.episodes), *figures)
    saved.save(folder, int(state.learner.updates), whole)


_STEADY = "step_size_decay=0.5 decay_start=1000 magnet_speed=10 magnet_speed_decay=0"
_SLOWING = "step_size_decay=0.5 decay_start=1000 magnet_speed=2 magnet_speed_decay=1"
_FASTER = "step_size=0.01 step_size_decay=0.5 decay_start=300 magnet_speed=2 magnet_speed_decay=1"
SETTINGS = (
    f"step_size=0.003 {_STEADY} magnet_strength=0.05",
    *(f"step_size=0.003 {_SLOWING} magnet_strength={strength}" for strength in ("0.05", "0.02", "0.01")),
    f"step_size=0.003 {_SLOWING} magnet_strength=0.02 exploration=0.02",
    f"step_size=0.003 {_SLOWING.replace('speed=2', 'speed=4')} magnet_strength=0.02",
    *(f"{_FASTER} magnet_strength={strength}" for strength in ("0.05", "0.02")),
)
"""What was tried before there were defaults that go on learning; the last is what they are."""


def choose(told: Any) -> None:
    """Three million episodes of poker with each of SETTINGS."""
    done = keys("choices", 3)
    for setting in SETTINGS:
        values: Any = {name: float(value) for name, value in (part.split("=") for part in setting.split())}
        values["decay_start"] = int(values["decay_start"])
        config = game_config.resolved(
            game_config.Config(
                game=GAMES["leduc_13"], policy="neural", play="live", seed=900, episodes=3_000_000, **values
            ),
            "live",
        )
        trainer = live.trainer(config)
        state = train.init(trainer)
        for mark in (1_000_000, 2_000_000, 3_000_000):
            if (setting, "900", str(mark)) in done:
                continue
            while state.episodes < mark:
                state, _ = train.update(trainer, state)
            tree, whole = tree_of("leduc_13"), networks_of(config, trainer, state)
            found = [float(exact.nash_conv(tree, saved.table(whole, tree, use))) for use in USES]
            add("choices", setting, 900, mark, *found)


def networks_of(config: Any, trainer: train.Trainer, state: train.State) -> saved.Saved:
    """Both policies, as they are saved."""
    current, average = (train.network(trainer, state, average=use == "average") for use in USES)
    about = saved.About(config.game, "neural", config.hidden_layers, True)
    return saved.Saved(about, (current.parameters,), (average.parameters,))


def marks_of(episodes: int, count: int, batch: int = 256) -> list[int]:
    """`count` places in a run of so many episodes, each twice as far as the one before or less."""
    return sorted({batch * round(mark / batch) for mark in np.geomspace(100_000, episodes, count)})


def long_run(told: Any) -> None:
    """One run."""
    learn(told, told.game, told.exploration, told.seed, marks_of(told.episodes, told.marks))


def explorations(told: Any) -> None:
    """The short runs."""
    for seed in SEEDS:
        for exploration in EXPLORATIONS:
            learn(told, told.game, exploration, seed, marks_of(SHORT[told.game], 3))


def keys(name: str, count: int) -> set[tuple[str, ...]]:
    """What the rows that there are begin with."""
    return {tuple(row[column] for column in COLUMNS[name][:count]) for row in rows_of(name)}


def respond(told: Any) -> None:
    """Responders to the networks of the long run, from --least episodes on."""
    done = keys("bounds", 5)
    for row in rows_of("curves"):
        key = tuple(row[name] for name in COLUMNS["bounds"][:5])
        if not _long(row, told.game, row["use"]) or key in done or int(row["episodes"]) < told.least:
            continue
        run = folder_of(told, told.game, float(row["exploration"]), int(row["seed"]))
        mine = saved.load(run / row["episodes"])
        found = match.best_response_bound(
            mine.about.game,
            saved.network(mine, row["use"]),
            num_updates=told.updates,
            num_episodes=BOUND,
            num_seeds=told.responders,
            seed=1000,
        ).nash_conv
        add("bounds", *key, told.updates, found.low, found.mean, found.high)


def meet(told: Any) -> None:
    """The short runs head to head: each exploration against each other, seed by seed."""
    done, last = keys("matches", 5), str(marks_of(SHORT[told.game], 3)[-1])
    for seed, use in itertools.product(SEEDS, USES):
        folders = {eta: folder_of(told, told.game, eta, seed) / last for eta in EXPLORATIONS}
        networks = {eta: saved.network(saved.load(folder), use) for eta, folder in folders.items()}
        for mine, theirs in itertools.combinations(EXPLORATIONS, 2):
            key = told.game, str(mine), str(seed), str(theirs), use
            if key not in done:
                pair = [networks[mine], networks[theirs]]
                found = match.play(GAMES[told.game], pair, MATCH, seed=1000 + seed)
                add("matches", *key, found.low, found.mean, found.high)


def tables() -> dict[str, str]:
    """What the README shows: the long runs, and explorations by exact NashConv and head to head."""
    curves, bounds, matches = (table.read(path_of(name)) for name in ("curves", "bounds", "matches"))
    found = {}
    lines = [
        "| game | episodes | policy | exact NashConv | responders gain | against uniform |",
        "|---" * 6 + "|",
    ]
    gains = {tuple(row[name] for name in COLUMNS["bounds"][:5]): row for row in bounds}
    for row in curves:
        mine = gains.get(tuple(row[name] for name in COLUMNS["bounds"][:5]))
        if row["seed"] in SEEDS or mine is None:
            continue
        exactly = f"{row['nash_conv']:.3f}" if row["nash_conv"] != "" else ""
        gain = f"{mine['mean']:.3f} [{mine['low']:.3f}, {mine['high']:.3f}]"
        uniform = f"{row['against_uniform']:.2f} ± {row['half_width']:.2f}"
        cells = TITLES[row["game"]], f"{row['episodes']:,}", row["use"], exactly, gain, uniform
        lines.append(f"| {' | '.join(cells)} |")
    found["long"] = "\n".join(lines)
    lines = ["| policy | η = 0 | η = 0.1 | η = 1 |", "|---" * 4 + "|"]
    last = marks_of(SHORT["leduc_13"], 3)[-1]
    for use in USES:
        short = table.select(curves, {"game": "leduc_13", "use": use, "episodes": last})
        short = [row for row in short if row["seed"] in SEEDS]
        means = table.summarise(short, by=["exploration"], value="nash_conv")
        lines.append(f"| {use} | {' | '.join(_interval(row) for row in means)} |")
    found["explorations"] = "\n".join(lines)
    lines = ["| game | policy | 0 against 0.1 | 0 against 1 | 0.1 against 1 |", "|---" * 5 + "|"]
    for name, use in itertools.product(GAMES, USES):
        met = table.select(matches, {"game": name, "use": use})
        means = table.summarise(met, by=["exploration", "opponent"], value="mean")
        lines.append(f"| {TITLES[name]} | {use} | {' | '.join(_interval(row) for row in means)} |")
    found["matches"] = "\n".join(lines)
    return {name: text.replace("-0.", "−0.").replace("-1.", "−1.") for name, text in found.items()}


def _interval(row: Any) -> str:
    return f"{row['mean']:.3f} [{row['mean_low']:.3f}, {row['mean_high']:.3f}]"


def draw(told: Any) -> None:
    """Prints the tables, and draws what the long runs are known to be off by, over episodes."""
    from pohp_neurd.results import figures

    print("\n\n".join(tables().values()))
    curves, bounds = rows_of("curves"), rows_of("bounds")
    with figures.figure(HERE / "only_sampling.png", width=9.5, height=3.8) as page:
        for place, name in enumerate(GAMES):
            axes = page.add_subplot(1, len(GAMES), place + 1)
            for colour, use in enumerate(USES):
                mine = [row for row in bounds if _long(row, name, use)]
                spread = [[float(row["mean"]) - float(row["low"]) for row in mine]] * 2
                axes.errorbar(
                    [int(row["episodes"]) for row in mine],
                    [float(row["mean"]) for row in mine],
                    yerr=spread,
                    fmt="o",
                    color=f"C{colour}",
                    markersize=3,
                    label=f"{use}: responders gain",
                )
                exactly = [row for row in curves if _long(row, name, use) and row["nash_conv"]]
                axes.plot(
                    [int(row["episodes"]) for row in exactly],
                    [float(row["nash_conv"]) for row in exactly],
                    color=f"C{colour}",
                    label=f"{use}: exact NashConv",
                )
            axes.set(xscale="log", xlabel="training episodes", title=TITLES[name], ylim=(0, None))
            axes.tick_params(axis="x", which="minor", labelbottom=False)  # they would overlap
            if place == 0:
                axes.set(ylabel="NashConv")
        figures.legend_below(page, *page.axes[-1].get_legend_handles_labels(), ncols=4)


def _long(row: dict[str, str], name: str, use: str) -> bool:
    return (row["game"], row["use"]) == (name, use) and int(row["seed"]) not in SEEDS


def main() -> None:
    """Does what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    jobs: dict[str, Any] = {"choose": choose}
    jobs |= {"train": long_run, "explorations": explorations, "respond": respond, "meet": meet, "draw": draw}
    parser.add_argument("job", choices=jobs)
    parser.add_argument("--game", choices=GAMES, default="dark_hex")
    parser.add_argument("--runs", default="runs/only_sampling")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=30_000_000, help="of train")
    parser.add_argument("--marks", type=int, default=16, help="of train: how often it is judged")
    parser.add_argument("--exploration", type=float, default=0.1, help="of train")
    parser.add_argument("--seed", type=int, default=1, help="of train")
    parser.add_argument("--updates", type=int, default=800, help="of responders")
    parser.add_argument("--responders", type=int, default=1, help="seeds of them, of which the best is kept")
    parser.add_argument("--least", type=int, default=0, help="episodes of a long run to be responded to")
    told = parser.parse_args()
    jobs[told.job](told)


if __name__ == "__main__":
    main()
