"""What makes a run of each script: frozen configs, whose fields are their flags. See `game_config` for games.

Wrong values raise a ValueError when a config is made, before any work. Nothing here loads JAX.
"""

import dataclasses
import itertools
import pathlib
from typing import Any

import numpy as np

from pohp_neurd import checks
from pohp_neurd.experiment.schema import check, field
from pohp_neurd.online import options as agent_options
from pohp_neurd.results import records

ENVIRONMENTS = ("catch", "cart_pole")
UNIFORM = "uniform"


@dataclasses.dataclass(frozen=True)
class Folder:
    """Where a run stands, and what is done with one that stands there."""

    output_dir: str = field("", "The folder of the run.", topic="The run")
    overwrite: bool = field(False, "Throw away the run that is in --output_dir.")
    resume: bool = field(False, "Go on with the run in --output_dir from its newest checkpoint.")


@dataclasses.dataclass(frozen=True)
class Events:
    """What is written beside the files of a run."""

    tensorboard: bool = field(False, "Also write TensorBoard event files.", topic="The run")


@dataclasses.dataclass(frozen=True)
class Cores:
    """How many cores one run may use."""

    cores: int | None = field(None, "Cores to use. No figure depends on it.", topic="The run", shown="all")


@dataclasses.dataclass(frozen=True)
class Executor:
    """Where the settings of a sweep are run; `executor.build` checks them."""

    executor: str = field("local", "local (a worker process for each core) or ray.", topic="Where it runs")
    cores: int | None = field(
        None, "Worker processes of executor=local, or of a Ray cluster that is started here.", shown="all"
    )
    address: str | None = field(None, "Of a Ray cluster that runs already, such as auto or 10.0.0.1:6379.")
    retry_failed: bool = field(False, "Run settings that failed before once more.")
    known: tuple[str, ...] = field(
        (),
        "A results.csv of another sweep: settings that are in it are taken over, and not run again.",
        repeated=True,
        shown="none",
    )


@dataclasses.dataclass(frozen=True)
class SingleAgent:
    """The paper's online agent in catch or cart pole: every rate with every exploration and every seed."""

    environment: str = field("catch", "catch or cart_pole.", topic="What is trained", choices=ENVIRONMENTS)
    learner: str = field("neurd_cix", "spg, neurd or neurd_cix.", choices=checks.LEARNERS)
    explorations: tuple[float, ...] = field(
        (1.0,),
        "η of NeuRD-CIX in [0, 1]; several with commas. SPG and NeuRD have none.",
        name="exploration",
        swept="exploration",
        one=True,
        check=checks.in_unit_interval,
        only_for={"learner": "neurd_cix"},
    )
    learning_rates: tuple[float, ...] = field(
        (0.00003,),
        "Adam's learning rate; several with commas.",
        name="learning_rate",
        swept="learning_rate",
        one=True,
        check=checks.positive,
    )
    exploration_decay: float = field(
        0.0,
        "p of exploration / (1 + t / decay_start)^p at update t; 0: constant.",
        only_for={"learner": "neurd_cix"},
    )
    decay_start: int = field(1_000, "See --exploration_decay; in updates.", check=checks.count)
    horizon: int | None = field(
        None,
        "Decisions of an episode at most; by default the environment is continuing, as in the paper.",
        check=checks.count,
    )
    swap_every: int | None = field(
        None,
        "Of catch: steps after which left and right swap, and again; by default never.",
        check=checks.count,
    )
    width: int = field(256, "Units of each hidden layer.", check=checks.count)
    updated: str = field(
        "oldest",
        "States of the 32-step window that learn: at each step the oldest or all; rollout: all, but every 32 "
        "steps.",
        topic="How the paper is read",
    )
    baseline: str = field("critic", "What is subtracted from returns: critic or none.")
    common_mode: str = field(
        checks.COMMON_MODE,
        "dropped: directions centred over the actions; or paper.",
        id_default="paper",
    )
    probability: str = field("acting", "Whether the estimate's π(A) is that of acting or of the update.")
    bootstrapped: str = field(
        "every", "Whether the factor 0.9 is on every value in a target or on the last one."
    )
    epsilon: float = field(1e-8, "Adam's ε.")
    seeds: int = field(
        20,
        "How many seeds, each with every learning rate and exploration.",
        topic="How long",
        check=checks.count,
        swept="",
        fixed=1,
    )
    first_seed: int = field(0, "The first of them.", check=checks.seed, swept="seed")
    num_steps: int = field(300_000, "Steps of each run.", check=checks.count)
    interval: int = field(1_000, "Steps between two rows of metrics.csv.", check=checks.count)
    checkpoint_every: int = field(50, "Intervals between two checkpoints.", check=checks.count)

    def __post_init__(self) -> None:
        self.options()  # checks its own
        check(self)
        for name in ("explorations", "learning_rates"):
            values = getattr(self, name)
            if not values:
                raise ValueError(f"{name} must hold at least one number, but is empty.")
            if len(set(values)) < len(values):
                raise ValueError(f"{name} must differ, but are {', '.join(f'{v:g}' for v in values)}.")
        checks.seed("the last seed", self.first_seed + self.seeds - 1)
        if self.num_steps % self.interval:
            raise ValueError(
                f"num_steps must be a multiple of interval, but {self.num_steps} is none of {self.interval}."
            )
        if self.swap_every is not None and self.environment != "catch":
            raise ValueError("swap_every is for environment=catch.")

    def options(self) -> agent_options.Options:
        """The agent's options."""
        names = {each.name for each in dataclasses.fields(agent_options.Options)} & set(vars(self))
        return agent_options.Options(**{name: getattr(self, name) for name in names})

    def world(self) -> Any:
        """The environment, a Process."""
        from pohp_neurd.games import cart_pole, catch

        if self.environment == "catch":
            return catch.Catch(horizon=self.horizon, swap_every=self.swap_every)
        return cart_pole.CartPole(horizon=self.horizon)

    def runs(self) -> Any:
        """Every learning rate with every exploration and every seed, seeds innermost; a lifetimes.Runs."""
        from pohp_neurd.online import lifetimes

        rates, explorations, seeds = zip(*self.settings(), strict=True)
        return lifetimes.Runs(
            np.array(seeds, np.int32), np.array(rates, np.float32), np.array(explorations, np.float32)
        )

    def settings(self) -> list[tuple[float, float, int]]:
        """Learning rate, exploration and seed of every run."""
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        return list(itertools.product(self.learning_rates, self.explorations, seeds))


PROBLEMS = (
    "bernoulli",
    "switching",
    "adaptive",
    "rock_paper_scissors",
    "shifting_rock_paper_scissors",
    "kuhn",
    "kuhn_learning",
)
FULL_MONITORING = ("hedge", "hedge_fixed", "regret_matching", "regret_matching_plus")
ESTIMATORS = ("importance", "ix", "cix")


def _probability(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, but is {value:g}.")


def _constant_exploration(name: str, value: float) -> None:
    checks.in_unit_interval(name, value)
    checks.positive(name, value)


@dataclasses.dataclass(frozen=True)
class Bandit:
    """One problem, one learner, several estimators, thousands of runs."""

    problem: str = field(
        "bernoulli",
        f"What the arms are worth: {', '.join(PROBLEMS)}.",
        topic="What is played",
        choices=PROBLEMS,
    )
    learner: str = field(
        "hedge",
        f"The full-monitoring learner, {', '.join(FULL_MONITORING)}; hedge is the anytime one.",
        choices=FULL_MONITORING,
    )
    estimators: tuple[str, ...] = field(
        ESTIMATORS,
        f"One or several of {', '.join(ESTIMATORS)}, with commas between.",
        name="estimator",
        choices=ESTIMATORS,
    )
    xi: float | None = field(
        None, "ξ of the exploration ξ / √(K t). By default the best one for --delta.", check=checks.positive
    )
    exploration: float | None = field(
        None,
        "A constant exploration, in (0, 1], in place of Theorem 1's schedule.",
        check=_constant_exploration,
    )
    delta: float = field(0.05, "The probability at which the bound may fail.", check=_probability)
    horizon: int = field(10_000, "Rounds of each run.", check=checks.count)
    # Sweeps once called it runs, and the ids of their settings last.
    seeds: int = field(2_000, "How many independent runs.", at_least=1, id_name="runs")
    seed: int = field(0, "The seed that all of them come from.", check=checks.seed)
    arms: int = field(
        5,
        "Arms of bernoulli, switching and adaptive; the other problems have their own.",
        at_least=2,
        only_for={"problem": ("bernoulli", "switching", "adaptive")},
    )

    def __post_init__(self) -> None:
        check(self)
        if not self.estimators:
            raise ValueError(f"estimators must name at least one of {', '.join(ESTIMATORS)}, but is empty.")
        if len(set(self.estimators)) < len(self.estimators):
            raise ValueError(f"estimators must differ, but are {', '.join(self.estimators)}.")
        if self.xi is not None and self.exploration is not None:
            raise ValueError("xi and exploration exclude each other: give one of them, or neither.")


@dataclasses.dataclass(frozen=True)
class AgentLoop:
    """OpenSpiel agents in a plain loop; what is theirs alone they check themselves."""

    game: str = field(
        "kuhn_poker", "An OpenSpiel game, small enough for exact NashConv.", topic="What is trained"
    )
    learner: str = field("neurd_cix", "spg, neurd or neurd_cix.", choices=checks.LEARNERS)
    exploration: float = field(
        0.1, "η of NeuRD-CIX, in [0, 1].", check=checks.in_unit_interval, only_for={"learner": "neurd_cix"}
    )
    network: str = field("mlp", "What holds the policy: mlp or table.", choices=("mlp", "table"))
    batch_size: int = field(32, "Episodes of one update.", at_least=1)
    seed: int = field(0, "The seed of the agents and of chance.", check=checks.seed)
    episodes: int = field(20_000, "Episodes in all.", topic="How long", at_least=1)
    reports: int = field(10, "How often NashConv is printed.", at_least=1)
    checkpoint_dir: str = field("", "Agents are restored from here, and saved.", shown="none")

    def __post_init__(self) -> None:
        check(self)
        if self.batch_size > self.episodes:
            raise ValueError(
                f"batch_size must be at most the {self.episodes} episodes, or nothing is learnt, but is "
                f"{self.batch_size}."
            )
        if self.checkpoint_dir:
            records.check_writable(self.checkpoint_dir)


WHICH = ("average", "current", "best")
BEST_RESPONSE = "best_response"
_USE = "Its average or current policy, or the best of them by NashConv."
NO_RUN = ("", UNIFORM, BEST_RESPONSE)
"""Opponents that are no folder."""
_USUAL = "average; best in a graph"


def _check_folder(folder: str) -> None:
    if not pathlib.Path(folder).is_dir():
        raise ValueError(f"{folder} is not the folder of a run.")


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What to find out about a trained policy."""

    checkpoint: str = field(
        "", "The folder of a run.", topic="What is evaluated", shown="none, it must be given"
    )
    use: str | None = field(None, _USE, choices=WHICH, shown=_USUAL)
    opponent: str = field(
        "",
        "Play head to head against uniform, best_response, or the folder of another run.",
        topic="How",
        shown="none",
    )
    episodes: int = field(20_000, "Episodes of sampled play.", at_least=100)
    response_updates: int = field(0, "Updates of a learner trained to respond; 0 for none.", at_least=0)
    response_seeds: int = field(1, "Seeds of such learners, of which the best is kept.", at_least=1)
    search_simulations: int = field(0, "Of (IS)MCTS as responder, a move; 0 for none.", at_least=0)
    max_histories: int = field(2_000_000, "Games with more are not compiled.", at_least=1)
    seed: int = field(0, "The seed of sampled play and of responders.", at_least=0)

    def __post_init__(self) -> None:
        if not self.checkpoint:
            raise ValueError("checkpoint must be the folder of a run, but is empty.")
        check(self)
        if self.response_seeds > 1 and not self.response_updates:
            raise ValueError(f"response_seeds={self.response_seeds} needs response_updates above 0.")
        for folder in (self.checkpoint, self.opponent):
            if folder not in NO_RUN:
                _check_folder(folder)


@dataclasses.dataclass(frozen=True)
class Play:
    """Whom to play, and from which seat."""

    checkpoint: str = field("runs/game", "The folder of a run.", topic="The game")
    use: str | None = field(None, _USE, choices=WHICH, shown=_USUAL)
    opponent: str = field(
        "policy",
        "Whom you play: the policy itself, or a best_response to it, which knows it and forgets nothing.",
        choices=("policy", BEST_RESPONSE),
    )
    seat: int = field(0, "Your seat, from 0.", at_least=0)
    seed: int = field(0, "The seed of cards and of the policy's moves.", check=checks.seed)

    def __post_init__(self) -> None:
        check(self)
        _check_folder(self.checkpoint)


@dataclasses.dataclass(frozen=True)
class Report:
    """Which runs a page shows, and where it is written."""

    checkpoint: str = field("runs/game", "The folder of a run.", topic="What is shown")
    against: str = field("", "The folder of another run, to be shown beside it.", shown="none")
    max_histories: int = field(
        500_000, "Games with more are not compiled: the page then has no states.", at_least=1
    )
    output: str = field("report.html", "The page.", topic="Where to")

    def __post_init__(self) -> None:
        check(self)
        for folder in (self.checkpoint, *([self.against] if self.against else [])):
            _check_folder(folder)
        if not self.output or pathlib.Path(self.output).is_dir():
            raise ValueError(f"output must be a file, but is {self.output!r}.")
