"""Exploration in self-play, each exploration with a step size and a magnet of its own.

    python studies/own_settings/own_settings.py --output_dir=runs/own_settings

Sampled tabular self-play on-policy, with the state's value as the baseline, as in the paper. Every learner
has as many settings to choose from: a grid on seed 0, then nine around its best on seeds 0 and 1. What is
chosen is run on 20 other seeds. Rows are written as runs finish (choice_rows.csv, report_rows.csv); called
again, it resumes. Tables and the figure are of all games that are finished.

Step size, magnet strength, exploration and seed are arguments of a compiled function: two compilations for a
game, one for SPG and one for NeuRD-CIX.
"""

import os

# One core: set before JAX starts.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import collections
import dataclasses
import functools
import itertools
import math
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from absl import app, flags, logging

from pohp_neurd import directions, exact, files, openspiel, self_play, shaping, tally_learners
from pohp_neurd.experiment import game_config, schedules
from pohp_neurd.results import figures, records, table


class Learner(NamedTuple):
    """SPG, which has no exploration, or NeuRD-CIX."""

    learner: str
    exploration: float | str

    @property
    def words(self) -> str:
        """As tables have it."""
        return "SPG" if self.learner == "spg" else f"η = {self.exploration:g}"


SPG = Learner("spg", "")
LEARNERS = (SPG, *(Learner("neurd_cix", exploration) for exploration in (0, 0.01, 0.03, 0.1, 0.3, 1)))
FIVE = tuple(each for each in LEARNERS if each.exploration not in (0.03, 0.3))
ENDS = (SPG, LEARNERS[1], LEARNERS[-1])
"""What the middle is held against: SPG, NeuRD, and NeuRD-CIX(1), which is nearly SPG."""


class Setting(NamedTuple):
    """What is chosen."""

    step_size: float
    magnet_strength: float


STEP_SIZES = tuple(2.0**power for power in range(-5, 6, 2))
"""From 1/32 to 32, each four times the one before."""
MAGNETS = (0.0, 0.004, 0.016, 0.064)


@dataclasses.dataclass(frozen=True)
class Game:
    """A game, its budget, its settings to choose from, and what it is judged by."""

    words: str
    config: game_config.Config
    learners: tuple[Learner, ...] = LEARNERS
    grid_seeds: tuple[int, ...] = (0,)
    choice_seeds: tuple[int, ...] = (0, 1)
    """Of the grid, and of the settings around its best."""
    criterion: str = "nash_conv_average"
    """Settings are chosen by its mean over the choice's seeds, and verdicts are on it."""
    step_sizes: tuple[float, ...] = STEP_SIZES
    magnets: tuple[float, ...] = MAGNETS
    """Wider where some learner's best was at an edge: then for all learners of the game."""
    report_seeds: tuple[int, ...] = tuple(range(100, 120))

    @property
    def grid(self) -> tuple[Setting, ...]:
        """All step sizes with all magnets."""
        return tuple(Setting(*pair) for pair in itertools.product(self.step_sizes, self.magnets))

    @property
    def middle(self) -> tuple[Learner, ...]:
        """The learners between the ends."""
        return tuple(each for each in self.learners if each not in ENDS)


def _table(game: str, episodes: int, batch_size: int, **more: Any) -> game_config.Config:
    """A config but for learner, exploration, step size, magnet strength and seed."""
    return game_config.Config(
        game=game,
        episodes=episodes,
        batch_size=batch_size,
        eval_every=episodes,
        step_size_decay=0.5,
        cooling=1.0,
        # A ninth of the run, as in the older rows.
        decay_start=round(540 * episodes / batch_size / 4883),
        magnet_decay=0.0,
        magnet_speed=1.0,
        alternating=False,
        **more,
    )


def _tree(game: str, episodes: int, batch_size: int) -> game_config.Config:
    more = {"play": "compiled", "baseline_of": "state", "play_exploration": 0.0, "average_power": 1.0}
    return _table(game, episodes, batch_size, **more)


GOOFSPIEL = "goofspiel(num_cards=4,imp_info=True,points_order=descending)"
GAMES = {
    "leduc": Game("Leduc poker", _tree("leduc_poker", 10_000_000, 2048)),
    "goofspiel": Game(
        "Goofspiel",
        _tree(GOOFSPIEL, 2_500_000, 512),
        FIVE,
        grid_seeds=(0, 1, 2, 3),  # which differ much there
        choice_seeds=(0, 1, 2, 3),
        step_sizes=(*STEP_SIZES, STEP_SIZES[-1] * 4),
        magnets=(*MAGNETS, MAGNETS[-1] * 4),
    ),
    "liars_dice": Game(
        "Liar's Dice",
        _tree("liars_dice(dice_sides=4)", 2_500_000, 512),
        FIVE,
        step_sizes=(STEP_SIZES[0] / 4, *STEP_SIZES),
        magnets=(*MAGNETS, MAGNETS[-1] * 4),
    ),
    "phantom": Game(
        "phantom tic-tac-toe",
        _table("phantom_ttt", 1_000_000, 4096, play="graph", agent_state="observation", world="string"),
        FIVE,
        choice_seeds=(0,),
        criterion="nash_conv",
        step_sizes=tuple(2.0**power for power in range(-4, 6, 3)),
        magnets=MAGNETS[1:],
    ),
}
JUDGED = ("nash_conv", "nash_conv_average")
COLUMNS = ("game", *Learner._fields, *Setting._fields, "seed", *JUDGED, "seconds")
"""A run that has left the finite numbers has no figures; `seconds` are of the CPU."""
KEY = COLUMNS[:6]


def world_of(config: game_config.Config) -> exact.World:
    """The tree or the graph that is played on."""
    game = openspiel.load_game(config.game)
    if config.play == "compiled":
        return openspiel.compile_game(game, max_histories=config.max_histories)
    assert config.agent_state is not None, "a graph has agent states"
    return openspiel.compile_game(game, agent_state=config.agent_state, world=config.world or "string")


Run = Callable[[Learner, Setting, int], tuple[float, float] | None]


def runner(config: game_config.Config, world: exact.World) -> Run:
    """A function from learner, setting and seed to NashConv of the current and of the average policy.

    What `experiment.game` does with the same config, in which these are built into the compiled loop. None
    for a run that diverged; on a graph, which has no average policy, the second is not a number.
    """
    unit = dataclasses.replace(config, step_size=1.0, magnet_strength=1.0)
    unit = game_config.resolved(unit, config.play, world.legal.size)
    arena = self_play.arena_of(world)
    hot, magnet = schedules.step_size(unit), schedules.magnet(unit)
    assert magnet is not None, "its strength is 1"
    weights = None if arena.form is None else self_play.Weights(unit.average_power or 0.0)

    def played(
        name: str, arena: self_play.Arena, exploration: Any, step_size: Any, strength: Any, key: Any
    ) -> Any:
        learner = tally_learners.table(
            directions.rule(name, lambda count: exploration),
            step_size=lambda count: step_size * hot(count),
            magnet=shaping.Magnet(
                lambda count: strength * directions.read(magnet.strength, count), magnet.speed
            ),
            average_over=unit.average_over,
        )
        loop = self_play.loop(
            learner,
            num_episodes=unit.batch_size or 1,
            scale=self_play.scale_of(world),
            average=weights,
        )
        state = loop.init(arena, key=jax.random.fold_in(key, 0))
        state = loop.advance(arena, state, np.int32(game_config.updates(unit)), jax.random.fold_in(key, 1))
        found = [loop.policies(arena, state)]
        if weights is not None:
            found.append(loop.average(arena, state))
        return found, state.diverged

    compiled = jax.jit(played, static_argnums=0)

    def run(learner: Learner, setting: Setting, seed: int) -> tuple[float, float] | None:
        numbers = (learner.exploration or 0.0, *setting)
        with jax.enable_x64(True):
            found, diverged = compiled(
                learner.learner, arena, *map(np.float32, numbers), jax.random.key(seed)
            )
        if int(diverged) != self_play.NEVER:
            return None
        both = np.stack([np.asarray(each).astype(np.float64) for each in found])
        judged = np.asarray(exact.nash_conv(world, both / both.sum(axis=-1, keepdims=True))).tolist()
        return judged[0], judged[1] if weights is not None else math.nan

    return run


class Job(NamedTuple):
    """A run."""

    game: str
    learner: Learner
    setting: Setting
    seed: int

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells its row from the others."""
        return (self.game, *self.learner, *self.setting, self.seed)


def done(path: pathlib.Path, jobs: Sequence[Job], run: Callable[[], Run]) -> list[dict[str, Any]]:
    """The rows of `path`, after those of `jobs` that were missing have been run by what `run` makes."""
    rows = table.read(path) if path.exists() else []
    had = {tuple(row[name] for name in KEY) for row in rows}
    left = [job for job in jobs if job.key not in had]
    for number, job in enumerate(left, start=1):
        one = run()
        begun = time.process_time()
        found = one(job.learner, job.setting, job.seed)
        spent = round(time.process_time() - begun, 2)
        judged = ["" if math.isnan(each) else round(each, 6) for each in found or (math.nan, math.nan)]
        rows.append(dict(zip(COLUMNS, (*job.key, *judged, spent), strict=True)))
        records.write_csv(path, rows, COLUMNS)
        print(f"{path.name}: {number} of {len(left)}, {' '.join(map(str, rows[-1].values()))}", flush=True)
    return rows


def coarse(name: str, game: Game) -> list[Job]:
    """The first runs of the choice: the whole grid."""
    return [
        Job(name, learner, setting, seed)
        for seed, learner, setting in itertools.product(game.grid_seeds, game.learners, game.grid)
    ]


def around(setting: Setting) -> list[Setting]:
    """Nine settings: half and twice the step size and the magnet; none of the latter has no half."""
    factors = (0.5, 1.0, 2.0)
    magnets = [setting.magnet_strength * factor for factor in factors]
    if not setting.magnet_strength:
        magnets = [0.0, MAGNETS[1] / 4, MAGNETS[1] / 2]
    return [
        Setting(setting.step_size * factor, magnet) for factor, magnet in itertools.product(factors, magnets)
    ]


def fine(name: str, game: Game, rows: Sequence[table.Row]) -> list[Job]:
    """The other runs of the choice: around each learner's best of the grid, on all seeds of the choice."""
    return [
        Job(name, learner, setting, seed)
        for learner in game.learners
        for setting in around(best_of_grid(rows, name, learner, game)[0])
        for seed in game.choice_seeds
    ]


def best_of_grid(rows: Sequence[table.Row], name: str, learner: Learner, game: Game) -> tuple[Setting, float]:
    """A learner's best setting of the grid, and its mean."""
    return _best(rows, name, learner, game.grid, game.grid_seeds, game.criterion)


def choices(rows: Sequence[table.Row], games: dict[str, Game]) -> list[dict[str, Any]]:
    """The best setting of every learner around its best of the grid, by the mean of its game's criterion."""
    found = []
    for name, game in games.items():
        for learner in game.learners:
            first, _ = best_of_grid(rows, name, learner, game)
            best, mean = _best(rows, name, learner, around(first), game.choice_seeds, game.criterion)
            found.append(
                {"game": name, **learner._asdict(), **best._asdict()}
                | {"grid_step_size": first.step_size, "grid_magnet_strength": first.magnet_strength}
                | {"criterion": game.criterion, "mean": round(mean, 6)}
            )
    return found


def _best(
    rows: Sequence[table.Row],
    name: str,
    learner: Learner,
    settings: Sequence[Setting],
    seeds: Sequence[int],
    criterion: str,
) -> tuple[Setting, float]:
    """The setting with the least mean, and that; one whose run diverged has none."""
    values = {tuple(row[column] for column in KEY): row[criterion] for row in rows}

    def mean(setting: Setting) -> float:
        found = [values[Job(name, learner, setting, seed).key] for seed in seeds]
        return math.inf if "" in found else float(np.mean(found))

    best = min(settings, key=mean)
    return best, mean(best)


CHOICE_COLUMNS = (*KEY[:5], "grid_step_size", "grid_magnet_strength", "criterion", "mean")


def to_report(chosen: Sequence[table.Row], games: dict[str, Game]) -> list[Job]:
    """The runs of the report, seed by seed."""
    return [
        Job(name, _learner(row), Setting(row["step_size"], row["magnet_strength"]), seed)
        for name, game in games.items()
        for seed in game.report_seeds
        for row in chosen
        if row["game"] == name
    ]


SUMMARY_COLUMNS = (*KEY[:5], "value", "runs", "mean", "mean_low", "mean_high")
DIFFERENCE_COLUMNS = ("game", "exploration", "end", "value", *table.DIFFERENCES)


def summaries(rows: Sequence[table.Row]) -> list[dict[str, Any]]:
    """Mean and 95% interval of every learner, current and average policy."""
    found = []
    for value in JUDGED:
        judged = [row for row in rows if row[value] != ""]
        for row in table.summarise(judged, by=KEY[:5], value=value):
            found.append({name: _rounded(({"value": value} | row)[name]) for name in SUMMARY_COLUMNS})
    return found


def differences(rows: Sequence[table.Row], games: dict[str, Game]) -> list[dict[str, Any]]:
    """Every exploration of the middle minus every end, where both have runs."""
    found = []
    by = {(name, Learner(*rest)): here for (name, *rest), here in table.groups(rows, KEY[:3]).items()}
    for name, game in games.items():
        for value, middle, end in itertools.product(JUDGED, game.middle, ENDS):
            runs = [by.get((name, learner), []) for learner in (middle, end)]
            if all(here and all(row[value] != "" for row in here) for here in runs):
                held = zip(table.DIFFERENCES, map(_rounded, table.difference(*runs, value)), strict=True)
                row = {"game": name, "exploration": middle.exploration, "end": end.words, "value": value}
                found.append(row | dict(held))
    return found


def _rounded(value: Any) -> Any:
    return round(value, 5) if isinstance(value, float) else value


def best_middle(chosen: Sequence[table.Row], name: str, game: Game) -> float | str:
    """The exploration of the middle that was best on the seeds of the choice."""
    middle = {each.exploration for each in game.middle}
    rows = [row for row in chosen if row["game"] == name and row["exploration"] in middle]
    return min(rows, key=lambda row: row["mean"])["exploration"]


SAME = "no difference that 20 seeds could show"


def verdict(held: Sequence[table.Row], exploration: float | str, value: str) -> dict[str, str]:
    """What the differences of one game say of a middle, and each end."""
    found = {}
    for row in held:
        if (row["exploration"], row["value"]) == (exploration, value):
            apart = "middle better" if row["difference_high"] < 0 else "end better"
            same = row["difference_low"] <= 0 <= row["difference_high"]
            found[row["end"]] = SAME if same else apart
    return found


def verdicts(chosen: Sequence[table.Row], found: Sequence[table.Row]) -> str:
    """The README's list: the middle that was best on the seeds of the choice, held against the ends."""
    lines = []
    for name in dict.fromkeys(row["game"] for row in found):
        game, here = GAMES[name], [row for row in found if row["game"] == name]
        middle = best_middle(chosen, name, game)
        said = verdict(here, middle, game.criterion)
        words = "; ".join(f"{word} (than {end})" for end, word in said.items() if word != SAME)
        same = [end for end, word in said.items() if word == SAME]
        if set(said.values()) == {"middle better"}:
            words = "middle better"
        elif same:
            words = "; ".join(filter(None, [words, f"{SAME} ({', '.join(same)})"]))
        for value in sorted(JUDGED, key=lambda value: value != game.criterion):
            cells = [
                f"minus {row['end']} {interval(row, 'difference', '+.3f')}"
                for row in here
                if (row["exploration"], row["value"]) == (middle, value)
            ]
            if value == game.criterion:
                lines.append(
                    f"- **{game.words}: {words}.** {_POLICIES[value]}, η = {middle:g} {', '.join(cells)}."
                )
            elif cells:
                lines.append(f"  {_POLICIES[value]}: {', '.join(cells)}.")
    return "\n".join(lines) + "\n"


_POLICIES = dict(zip(JUDGED, ("Current policy", "Average policy"), strict=True))


def at_edges(chosen: Sequence[table.Row]) -> list[str]:
    """The learners whose best of the grid is at its edge; where there is no magnet, nothing lies beyond."""
    return [
        f"{game.words}, {_learner(row).words}"
        for row, game in ((row, GAMES[row["game"]]) for row in chosen)
        if row["grid_step_size"] in (game.step_sizes[0], game.step_sizes[-1])
        or row["grid_magnet_strength"] in {game.magnets[0], game.magnets[-1]} - {0.0}
    ]


def results(found: Sequence[table.Row]) -> str:
    """The README's table of means, from `summaries`."""
    rows = []
    for (name, learner, exploration, *setting), here in table.groups(found, KEY[:5]).items():
        cells = {row["value"]: interval(row, "mean", ".3f") for row in here}
        rows.append(
            {"game": GAMES[name].words, "learner": Learner(learner, exploration).words}
            | Setting(*setting)._asdict()
            | {"current": cells["nash_conv"], "average": cells.get("nash_conv_average", "")}
        )
    return table.markdown(
        rows,
        {
            "game": "{game}",
            "learner": "{learner}",
            "step size": "{step_size}",
            "magnet": "{magnet_strength}",
            "NashConv, current policy": "{current}",
            "average policy": "{average}",
        },
    )


def held(found: Sequence[table.Row], games: dict[str, Game], value: str | None = None) -> str:
    """The README's table of differences in `value`, or in each game's criterion."""
    rows = []
    for (name, exploration, judged), here in table.groups(found, ["game", "exploration", "value"]).items():
        if judged == (value or games[name].criterion):
            cells = {row["end"]: interval(row, "difference", "+.3f") for row in here}
            rows.append(
                {"game": games[name].words, "middle": f"η = {exploration:g}"}
                | {f"end_{place}": cells[end.words] for place, end in enumerate(ENDS)}
            )
    ends = {f"minus {end.words}": f"{{end_{place}}}" for place, end in enumerate(ENDS)}
    return table.markdown(rows, {"game": "{game}", "middle": "{middle}", **ends})


def grids(games: dict[str, Game]) -> str:
    """The README's table of budgets and settings to choose from."""

    def fraction(value: float) -> str:
        return f"1/{1 / value:g}" if 0 < value < 1 else f"{value:g}"

    def seeds(found: Sequence[int]) -> str:
        return ", ".join(map(str, found))

    rows = [
        {
            "game": game.words,
            "flags": f"`--game={game.config.game}`"
            + (" `--play=graph`" if game.config.play == "graph" else ""),
            "episodes": game.config.episodes,
            "batch": game.config.batch_size,
            "steps": f"{fraction(game.step_sizes[0])} to {fraction(game.step_sizes[-1])}, "
            f"by {game.step_sizes[1] / game.step_sizes[0]:g}",
            "magnets": ", ".join(f"{magnet:g}" for magnet in game.magnets),
            "grid": seeds(game.grid_seeds),
            "around": seeds(game.choice_seeds),
            "reported": f"{game.report_seeds[0]} to {game.report_seeds[-1]}",
        }
        for game in games.values()
    ]
    return table.markdown(
        rows,
        {
            "game": "{game}",
            "": "{flags}",
            "episodes": "{episodes}",
            "batch size": "{batch}",
            "step sizes": "{steps}",
            "magnets": "{magnets}",
            "seeds of the grid": "{grid}",
            "around its best": "{around}",
            "reported": "{reported}",
        },
    )


def interval(row: table.Row, name: str, form: str) -> str:
    """A figure with its interval, as documents write it."""
    value, low, high = (format(row[name + end], form).replace("-", "−") for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"


def draw(path: records.Path, rows: Sequence[table.Row], found: Sequence[table.Row]) -> None:
    """NashConv over exploration, a panel for each game: runs as dots, means with their intervals."""
    names = list(dict.fromkeys(row["game"] for row in found))
    lines = -(-len(names) // 2)
    with figures.figure(path, width=8.0, height=0.4 + 2.9 * lines) as page:
        panels = page.subplots(lines, 2, squeeze=False).reshape(-1)
        for axes, name in itertools.zip_longest(panels, names):
            if name is None:
                axes.set_axis_off()
                continue
            # SPG beside exploration 1, to which it is near.
            learners = sorted(GAMES[name].learners, key=lambda each: (each == SPG, each.exploration))
            place = {learner: index for index, learner in enumerate(learners)}
            for index, (value, words) in enumerate(zip(JUDGED, ("current", "average"), strict=True)):
                mine = [row for row in found if (row["game"], row["value"]) == (name, value)]
                if mine:
                    _series(axes, mine, rows, place, index, f"{words} policy")
            axes.set_xticks(
                range(len(learners)),
                ["SPG" if each == SPG else f"{each.exploration:g}" for each in learners],
                fontsize=8,
            )
            figures.logarithmic(axes)
            axes.tick_params(axis="y", which="both", labelsize=8)
            axes.set_title(GAMES[name].words, fontsize=10)
            axes.set_xlabel("exploration η of NeuRD-CIX, and SPG", fontsize=8)
            axes.set_ylabel("NashConv", fontsize=8)
        figures.legend_below(page, *panels[0].get_legend_handles_labels())


def _series(
    axes: Any,
    mine: Sequence[table.Row],
    rows: Sequence[table.Row],
    place: dict[Learner, int],
    index: int,
    words: str,
) -> None:
    colour, _, marker = figures.look(index)
    shift = 0.16 * (2 * index - 1)
    for row in mine:
        same = [each for each in rows if all(each[name] == row[name] for name in KEY[:5])]
        values = np.sort([each[row["value"]] for each in same])
        across = place[_learner(row)] + shift + 0.1 * figures.sideways(len(values))
        axes.plot(across, values, ".", color=colour, markersize=3, alpha=0.35)
    axes.errorbar(
        [place[_learner(row)] + shift for row in mine],
        [row["mean"] for row in mine],
        yerr=np.transpose([(row["mean"] - row["mean_low"], row["mean_high"] - row["mean"]) for row in mine]),
        fmt=marker,
        color=colour,
        markersize=5,
        capsize=3,
        label=f"{words}: mean of {mine[0]['runs']} runs, 95% interval",
    )


def _learner(row: table.Row) -> Learner:
    return Learner(row["learner"], row["exploration"])


STAGES = ("choose", "report")


def study(
    folder: records.Path,
    games: dict[str, Game],
    *,
    stage: str = "report",
) -> None:
    """Runs what is missing in `folder`, game by game, and writes tables and figure after each."""
    place = pathlib.Path(folder)
    with files.locked(place, what="study"):
        report = place / "report_rows.csv"
        for name, game in games.items():
            run = functools.cache(functools.partial(_runner, game.config))
            rows = done(place / "choice_rows.csv", coarse(name, game), run)
            rows = done(place / "choice_rows.csv", fine(name, game, rows), run)
            known = complete(table.read(report) if report.exists() else [], games)
            chosen = choices(rows, {each: games[each] for each in games if each in {*known, name}})
            records.write_csv(place / "choices.csv", chosen, CHOICE_COLUMNS)
            if stage == "report":
                reported = done(report, to_report(chosen, {name: game}), run)
                _written(place, reported, complete(reported, games))


def complete(reported: Sequence[table.Row], games: dict[str, Game]) -> dict[str, Game]:
    """The games all of whose runs have been reported."""
    counts = collections.Counter(row["game"] for row in reported)
    return {
        name: game
        for name, game in games.items()
        if counts[name] == len(game.learners) * len(game.report_seeds)
    }


def _runner(config: game_config.Config) -> Run:
    return runner(config, world_of(config))


def _written(place: pathlib.Path, reported: Sequence[table.Row], games: dict[str, Game]) -> None:
    reported = [row for row in reported if row["game"] in games]
    found = summaries(reported)
    records.write_csv(place / "summary.csv", found, SUMMARY_COLUMNS)
    records.write_csv(place / "differences.csv", differences(reported, games), DIFFERENCE_COLUMNS)
    draw(place / "own_settings.png", reported, found)


def main(_: Sequence[str]) -> None:
    """Runs what flags say, and prints the tables."""
    given = flags.FLAGS
    study(given.output_dir, GAMES, stage=given.stage)
    if given.stage == "report":
        place = pathlib.Path(given.output_dir)
        print(results(table.read(place / "summary.csv")))
        found = table.read(place / "differences.csv")
        print(held(found, GAMES))
        print(verdicts(table.read(place / "choices.csv"), found))


if __name__ == "__main__":
    flags.DEFINE_enum("stage", "report", STAGES, "How far to go: choose settings only, or report them too.")
    flags.DEFINE_string("output_dir", "runs/own_settings", "The folder for rows, tables and figure.")
    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    app.run(main)
