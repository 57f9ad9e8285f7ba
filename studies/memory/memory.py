"""What forgetting costs and what it buys: exploitability against what agents remember, in games.

    python studies/memory/memory.py --output_dir=runs/memory
    python studies/memory/memory.py --output_dir=runs/memory --game="Leduc poker" --agent_state=observation

A cell is a game and an agent state. Its graph is built and, if it is not too large, trained on with
`openspiel.NeuRDCIXSolver`: a long run of expected updates in each of SETTINGS, and runs of sampled updates
over seeds with the solver's defaults. Rows are written as runs finish: cells.csv (a row for each cell),
curves.csv (a row for each evaluation), summary.csv (a row for each cell), memory.png. Called again, it goes
on where it stopped.

Seconds are CPU seconds of one thread. Training leaves out the first update, which compiles.
"""

import os

# One core: set before JAX starts.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import dataclasses
import hashlib
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import memory_figure
import numpy as np
from absl import app, flags, logging

from pohp_neurd import directions, exact, files, openspiel
from pohp_neurd.finite import graph
from pohp_neurd.results import records, table

MAX_NODES = 5_000_000
INFORMATION_STATE = "information_state"
UPDATES = ("expected", "sampled")
AT_SECONDS = (1, 10, 60)
"""CPU seconds of training at which cells of a game are compared."""

SETTINGS: dict[str, dict[str, Any]] = {
    "fading": {
        "exploration": 0.0,
        "step_size": directions.decaying(0.3, power=0.5, start=100.0),
        "magnet_strength": directions.decaying(0.1, power=0.75, start=100.0),
        "magnet_speed": 0.0,
    },
    "stable": {"exploration": 0.0, "step_size": 0.2, "magnet_strength": 0.1, "magnet_speed": 0.004},
    "tree": {"exploration": 0.0, "step_size": 0.4, "magnet_strength": 0.01, "magnet_speed": 0.0004},
}
"""Of expected updates: a magnet at rest that fades; a strong one that moves; the solver's defaults on trees.
How low a run comes depends on them, and what agents remember should not be blamed for a setting."""
DEFAULT = "default"
"""Of sampled updates: the solver's defaults on graphs."""


@dataclasses.dataclass(frozen=True)
class Game:
    """A game of the study, and how long it is trained in."""

    title: str
    name: str
    world: str
    """The smallest graph that is right: see docs/large_games.md."""
    windows: int
    """Up to which length."""
    expected: int
    """Expected updates of the one run."""
    sampled: int
    """Sampled updates of each seed."""
    seeds: int
    points: int
    """Evaluations of a run of expected updates."""
    settings: tuple[str, ...] = tuple(SETTINGS)
    first: int = 10
    """Updates before the first of them."""
    tries_all: bool = True
    """Whether agents that remember everything are tried."""
    further: tuple[int, ...] = ()
    """Updates after which agents of the observation alone are evaluated too: theirs take little time."""

    @property
    def agent_states(self) -> tuple[str, ...]:
        """From the least memory to the most."""
        windows = [f"window:{length}" for length in range(1, self.windows + 1)]
        return ("observation", *windows, *([INFORMATION_STATE] if self.tries_all else []))


_GOOFSPIEL = "goofspiel(imp_info=True,num_cards=4,players=2,points_order=descending)"
_IN_TURNS = f"turn_based_simultaneous_game(game={_GOOFSPIEL})"
_SMALL_HEX = "dark_hex(gameversion=adh,num_cols=2,num_rows=3)"
_STABLE = ("stable",)
_LARGE: dict[str, Any] = {
    "expected": 2_000,
    "sampled": 1_000,
    "seeds": 5,
    "points": 5,
    "settings": _STABLE,
    "first": 200,
    "tries_all": False,
    "further": (4_000, 8_000),
}
GAMES = (
    Game("Leduc poker", "leduc_poker", "string", 2, 100_000, 1_000, 5, 18),
    Game("Goofspiel-4", _IN_TURNS, "string", 1, 100_000, 1_000, 5, 18),
    Game("Liar's Dice", "liars_dice", "observations", 6, 3_000, 1_000, 5, 8, _STABLE),
    Game("ADH 3x2", _SMALL_HEX, "string", 3, 5_000, 0, 0, 10, ("fading", "stable")),
    Game("APTTT", "phantom_ttt(gameversion=abrupt)", "string", 2, **_LARGE),
    Game("ADH3", "dark_hex(board_size=3,gameversion=adh)", "string", 2, **_LARGE),
    Game("LD2D5F", "liars_dice(dice_sides=5,numdice=2)", "observations", 2, **_LARGE),
)
"""The first four are small enough for agents that remember everything; ADH 3x2 stands for ADH3 there."""

CELL = ("game", "agent_state")
CELLS = (
    *CELL,
    "world",
    "built_seconds",
    "nodes",
    "edges",
    "agent_states",
    "information_states",
    "recall",
    "uniform",
    "graph",
    "same_as",
)
"""`nodes` is empty where there are more than MAX_NODES. `information_states` are the responders'; `uniform`
is the uniform policy's exploitability; `same_as` an earlier agent state of the game with an equal graph, and
so the same runs."""
CURVES = (
    *CELL,
    "update",
    "setting",
    "seed",
    "updates",
    "training_seconds",
    "evaluation_seconds",
    "exploitability",
)


def counts(first: int, last: int, points: int) -> list[int]:
    """Numbers of updates from `first` to `last`, spaced geometrically: when to evaluate.

    >>> counts(10, 1000, 4)
    [10, 46, 215, 1000]
    """
    return [round(count) for count in np.geomspace(first, last, points)]


def recall(world: graph.Graph) -> str:
    """The recall of a graph's agent states in one word."""
    found = graph.recall(world)
    if found.perfect:
        return "perfect"
    if found.timed:
        return "timed"
    return "absent-minded" if found.absent_minded else "untimed"


def build(game: Game, agent_state: str) -> graph.Graph | None:
    """The graph of a cell; None if it is too large."""
    try:
        return openspiel.compile_game(
            game.name, agent_state=agent_state, world=game.world, max_nodes=MAX_NODES
        )
    except ValueError as error:
        if "more than" not in str(error):
            raise
        return None


def cell(game: Game, agent_state: str, known: Sequence[table.Row]) -> tuple[dict[str, Any], Any]:
    """A row of CELLS, and the graph, or None; `known` are the rows of agents of the game that remember less.

    Who remembers more has no smaller graph, so where one was too large no further one is built.
    """
    row: dict[str, Any] = dict.fromkeys(CELLS, "")
    row |= {"game": game.name, "agent_state": agent_state, "world": game.world}
    if any(less["nodes"] == "" for less in known):
        return row, None
    start = time.process_time()
    world = build(game, agent_state)
    row["built_seconds"] = round(time.process_time() - start, 2)
    if world is None:
        return row, None
    name = digest(world)
    for less in known:
        if less["graph"] == name:
            return {**less, **{key: row[key] for key in (*CELL, "built_seconds")}} | {
                "same_as": less["same_as"] or less["agent_state"]
            }, world
    policy = exact.uniform(world)
    responses = exact.responses(world, policy, num_threads=1)
    gain = sum(response.value for response in responses) - exact.expected_returns(world, policy).sum()
    return row | {
        "nodes": world.num_nodes,
        "edges": len(world.child),
        "agent_states": world.num_agent_states,
        "information_states": sum(response.information_states for response in responses),
        "recall": recall(world),
        "uniform": round(float(gain) / 2, 6),
        "graph": name,
    }, world


def digest(world: graph.Graph) -> str:
    """Equal for graphs on which runs are equal."""
    arrays = (world.player, world.agent_state, world.first_edge, world.action, world.child)
    return "g" + hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:12]


def train(world: graph.Graph, run: dict[str, Any], when: Sequence[int]) -> list[dict[str, Any]]:
    """Rows of CURVES, of which `run` has the first: one run, evaluated when it has made so many updates."""
    settings = SETTINGS.get(run["setting"], {})
    solver = openspiel.NeuRDCIXSolver(world, update=run["update"], seed=run["seed"], **settings)
    solver.evaluate_and_update_policy()  # compiles
    trained, rows = 0.0, []
    for count in when:
        start = time.process_time()
        if count > solver.updates:
            solver.evaluate_and_update_policy(count - solver.updates)
        middle = time.process_time()
        trained += middle - start
        reached = solver.nash_conv("current") / 2
        found = {
            "updates": solver.updates,
            "training_seconds": round(trained, 4),
            "evaluation_seconds": round(time.process_time() - middle, 4),
            "exploitability": float(f"{reached:.5g}"),
        }
        rows.append(run | found)
    return rows


def run(
    folder: records.Path,
    games: Sequence[Game] = GAMES,
    agent_states: Sequence[str] = (),
    updates: Sequence[str] = UPDATES,
    settings: Sequence[str] = (*SETTINGS, DEFAULT),
) -> list[dict[str, Any]]:
    """The rows of the summary, after what was missing in `folder` has been run."""
    place = pathlib.Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    with files.locked(place, what="study"):
        cells, curves = (_read(place / name) for name in ("cells.csv", "curves.csv"))
        for game in games:
            for agent_state in game.agent_states:
                if not agent_states or agent_state in agent_states:
                    chosen = [
                        (run, when)
                        for run, when in runs(game, agent_state)
                        if run["update"] in updates and run["setting"] in settings
                    ]
                    _finish(place, game, agent_state, chosen, cells, curves)
        rows = summary(cells, curves)
        records.write_csv(place / "summary.csv", rows, SUMMARY)
        memory_figure.draw(place / "memory.png", rows, {game.name: game.title for game in GAMES})
    return rows


def _where(rows: Sequence[table.Row], wanted: table.Row) -> list[table.Row]:
    return [row for row in rows if all(row[name] == content for name, content in wanted.items())]


def _read(path: pathlib.Path) -> list[dict[str, Any]]:
    return table.read(path) if path.exists() else []


def _finish(
    place: pathlib.Path,
    game: Game,
    agent_state: str,
    chosen: Sequence[tuple[dict[str, Any], list[int]]],
    cells: list[dict[str, Any]],
    curves: list[dict[str, Any]],
) -> None:
    """Adds to `cells` and `curves` what is missing of a cell, and writes them run by run."""
    mine = {"game": game.name, "agent_state": agent_state}
    known, world = next(iter(_where(cells, mine)), None), None
    if known is None:
        less = game.agent_states[: game.agent_states.index(agent_state)]
        smaller = [row for row in cells if row["game"] == game.name and row["agent_state"] in less]
        known, world = cell(game, agent_state, smaller)
        cells.append(known)
        _write(place / "cells.csv", cells, CELLS)
    if known["nodes"] == "" or known["same_as"]:
        return
    for run, when in chosen:
        if not _where(curves, mine | run):
            world = build(game, agent_state) if world is None else world
            assert world is not None
            found = train(world, mine | run, when)
            curves += found
            _write(place / "curves.csv", curves, CURVES)
            print(", ".join(f"{name} {content}" for name, content in found[-1].items()), flush=True)


def runs(game: Game, agent_state: str) -> list[tuple[dict[str, Any], list[int]]]:
    """The runs of a cell, and when they are evaluated."""
    exact_ones = counts(game.first, game.expected, game.points)
    if agent_state == "observation":
        exact_ones += game.further
    found = [({"update": "expected", "setting": name, "seed": 0}, exact_ones) for name in game.settings]
    for seed in range(game.seeds):
        found.append(({"update": "sampled", "setting": DEFAULT, "seed": seed}, [game.sampled]))
    return found


def _write(path: pathlib.Path, rows: list[dict[str, Any]], columns: Sequence[str]) -> None:
    """In the order of the study, so that the file does not depend on the order of calls."""
    order = {game.name: place for place, game in enumerate(GAMES)}
    rows.sort(
        key=lambda row: (
            order.get(row["game"], len(GAMES)),
            memory_figure.length(row["agent_state"]),
            row.get("update", ""),
            row.get("setting", ""),
            row.get("seed", 0),
            row.get("updates", 0),
        )
    )
    records.write_csv(path, rows, columns)


SUMMARY = (
    *CELL,
    "same_as",
    "recall",
    "nodes",
    "agent_states",
    "information_states",
    "uniform",
    "updates",
    "floor",
    "floor_setting",
    *(f"{which}_{setting}" for setting in SETTINGS for which in ("best", "last")),
    *(f"floor_{seconds}_s" for seconds in AT_SECONDS),
    "update_seconds",
    "evaluation_seconds",
    "sampled_updates",
    "seeds",
    "sampled",
    "sampled_low",
    "sampled_high",
    "sampled_update_seconds",
)
"""Of expected updates: `floor` is the least exploitability of all runs, with the setting that had it, also
within so many CPU seconds of training; then the best and the last of each setting. Of sampled updates: the
mean over seeds at the end, and its 95% bootstrap interval."""


def summary(cells: Sequence[table.Row], curves: Sequence[table.Row]) -> list[dict[str, Any]]:
    """A row of SUMMARY for each cell; one with an equal graph has the figures of that one."""
    rows = []
    for cell in cells:
        source = {"game": cell["game"], "agent_state": cell["same_as"] or cell["agent_state"]}
        row: dict[str, Any] = dict.fromkeys(SUMMARY, "")
        row |= {name: cell[name] for name in SUMMARY if name in cell}
        mine = _where(curves, source)
        rows.append(row | _expected(_where(mine, {"update": "expected"})) | _sampled(mine))
    return rows


def _expected(curves: Sequence[table.Row]) -> dict[str, Any]:
    if not curves:
        return {}
    floor = min(curves, key=_reached)
    found: dict[str, Any] = {"floor": floor["exploitability"], "floor_setting": floor["setting"]}
    for seconds in AT_SECONDS:
        early = [row for row in curves if row["training_seconds"] <= seconds]
        found[f"floor_{seconds}_s"] = min(map(_reached, early), default="")
    spent, updates = 0.0, 0
    for (setting,), curve in table.groups(curves, ["setting"]).items():
        found |= {f"best_{setting}": min(map(_reached, curve)), f"last_{setting}": _reached(curve[-1])}
        spent, updates = spent + curve[-1]["training_seconds"], updates + curve[-1]["updates"] - 1
    return found | {
        "updates": curves[-1]["updates"],
        "update_seconds": _short(spent / updates),
        "evaluation_seconds": _short(float(np.median([row["evaluation_seconds"] for row in curves]))),
    }


def _reached(row: table.Row) -> float:
    return row["exploitability"]


def _short(number: float) -> float:
    return float(f"{number:.3g}")


def _sampled(curves: Sequence[table.Row]) -> dict[str, Any]:
    runs = _where(curves, {"update": "sampled"})
    if not runs:
        return {}
    (found,) = table.summarise(runs, by=["updates"], value="exploitability")
    spent = sum(row["training_seconds"] for row in runs) / sum(row["updates"] - 1 for row in runs)
    interval = {
        f"sampled_{end}": found[f"mean_{end}"] and float(f"{found[f'mean_{end}']:.5g}")
        for end in ("low", "high")
    }
    return interval | {
        "sampled_updates": found["updates"],
        "seeds": found["runs"],
        "sampled": float(f"{found['mean']:.5g}"),
        "sampled_update_seconds": _short(spent),
    }


_TITLES = {"game": "{title}", "agent state": "{agent_state}", "recall": "{recall}"}
_COST = _TITLES | {
    "agent states": "{agent_states}",
    "floor": "{floor}",
    **{f"{name}: best, last": f"{{best_{name}}}, {{last_{name}}}" for name in SETTINGS},
    "sampled": "{sampled} [{sampled_low}, {sampled_high}]",
}
_TIME = {"game": "{title}", "agent state": "{agent_state}", "nodes": "{nodes}"} | {
    "agent states": "{agent_states}",
    "ms an update": "{update_ms}",
    "s an evaluation": "{evaluation_seconds}",
    **{f"floor in {seconds} s": f"{{floor_{seconds}_s}}" for seconds in AT_SECONDS},
    "ms a sampled update": "{sampled_ms}",
}


def tables(rows: Sequence[table.Row]) -> dict[str, str]:
    """The README's tables of the summary: of cells that were trained, equal graphs once."""
    titles = {game.name: game.title for game in GAMES}
    shown = []
    for row in rows:
        if row["floor"] != "" and not row["same_as"]:
            words = {name: _words(name, content) for name, content in row.items()}
            words |= {"title": titles.get(row["game"], row["game"])}
            for name, column in (("update_ms", "update_seconds"), ("sampled_ms", "sampled_update_seconds")):
                words[name] = row[column] and f"{1000 * row[column]:.3g}"
            shown.append(words)
    return {name: table.markdown(shown, columns) for name, columns in (("cost", _COST), ("time", _TIME))}


def _words(name: str, content: Any) -> Any:
    """Exploitability with as many digits as matter; a whole number as it is."""
    if not isinstance(content, float):
        return content
    return f"{content:.2g}" if name == "evaluation_seconds" or content < 0.001 else f"{content:.4f}"


def main(_: Sequence[str]) -> None:
    """Runs the cells that flags name."""
    given = flags.FLAGS
    games = [game for game in GAMES if not given.game or game.title in given.game]
    rows = run(given.output_dir, games, given.agent_state, given.update, given.setting)
    print("\n".join(tables(rows).values()))


if __name__ == "__main__":
    flags.DEFINE_multi_enum("game", [], [game.title for game in GAMES], "Games; all of them by default.")
    flags.DEFINE_multi_string("agent_state", [], "Agent states; all of the study by default.")
    flags.DEFINE_multi_enum("update", list(UPDATES), UPDATES, "Kinds of updates.")
    flags.DEFINE_multi_enum("setting", [*SETTINGS, DEFAULT], [*SETTINGS, DEFAULT], "Settings.")
    flags.DEFINE_string("output_dir", "runs/memory", "The folder for tables and the figure.")
    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    app.run(main)
