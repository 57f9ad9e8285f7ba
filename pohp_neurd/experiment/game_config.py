"""What makes a run of self-play in a game: one frozen config, with good defaults for each kind of run.

Nothing here loads JAX: a wrong flag is told of at once. `game_schedules` has its numbers over time.
"""

import dataclasses
from typing import Any

from pohp_neurd import checks, defaults

POLICIES = ("tabular", "neural")
UPDATES = ("sampled", "expected")
PLAYS = ("auto", "compiled", "live")

_TABLE: dict[str, Any] = {
    "exploration": 0.02,
    "batch_size": 2048,
    "step_size": 2.0,
    "step_size_decay": 0.5,
    "cooling": 1.0,
    "decay_start": 540,
    "magnet_strength": 0.016,
    "magnet_speed": 1.0,
    "magnet_speed_decay": 1.0,
    "average_power": 1.0,
}
_EXACT_TABLE: dict[str, Any] = {
    "exploration": 0.0,
    "batch_size": 1,
    "step_size": 0.4,
    "step_size_decay": 0.0,
    "cooling": 0.0,
    "decay_start": 100,
    "magnet_strength": 0.01,
    "magnet_speed": 0.04,
    "magnet_speed_decay": 0.0,
    "average_power": 2.0,
}
_NETWORK = {
    "exploration": 0.1,
    "batch_size": 4096,
    "step_size": 0.0047,
    "step_size_decay": 0.5,
    "cooling": 1.0,
    "decay_start": 900,
    "magnet_strength": 0.012,
    "magnet_speed": 2.0,
    "magnet_speed_decay": 1.0,
    "average_power": 0.0,
}
_LIVE = {
    "exploration": 0.1,
    "batch_size": 256,
    "step_size": 0.01,
    "step_size_decay": 0.0,
    "cooling": 0.0,
    "decay_start": 100,
    "magnet_strength": 0.05,
    "magnet_speed": 1.0,
    "magnet_speed_decay": 0.0,
    "average_power": 0.0,
}

DEFAULTS: dict[tuple[str, str, str], dict[str, Any]] = {
    ("compiled", "tabular", "sampled"): _TABLE,
    ("compiled", "tabular", "expected"): _EXACT_TABLE,
    ("compiled", "neural", "sampled"): _NETWORK,
    ("compiled", "neural", "expected"): {**_NETWORK, "exploration": 0.0, "batch_size": 1},
    ("live", "neural", "sampled"): _LIVE,
}
"""For each way to play, policy and update, what is used where the user says nothing."""

_EPISODES = {"tabular": 10_000_000, "neural": 60_000_000}
_LIVE_EPISODES = 200_000
_ITERATIONS = {"tabular": 50_000, "neural": 5_000}


@dataclasses.dataclass(frozen=True)
class Config:
    """One run; None is the default of that kind of run. Wrong values raise a ValueError, before any work."""

    game: str = "leduc_poker"
    policy: str = "tabular"
    learner: str = "neurd_cix"
    update: str = "sampled"
    play: str = "auto"
    """On the compiled game, on live states, or compiled if the game is small enough."""
    episodes: int | None = None
    iterations: int | None = None
    exploration: float | None = None
    exploration_decay: float = 0.0
    """Schedules are value / (1 + t / decay_start)^decay at update t."""
    batch_size: int | None = None
    """Episodes of one update."""
    step_size: float | None = None
    """Of returns that are scaled to [-1, 0]. A network's is Adam's learning rate."""
    step_size_decay: float | None = None
    cooling: float | None = None
    """The step size is also times (1 − t / T)^cooling, with T the updates of the whole run."""
    decay_start: int | None = None
    """Updates."""
    magnet_strength: float | None = None
    """Of returns that are scaled to [-1, 0]."""
    magnet_decay: float = 0.0
    magnet_speed: float | None = None
    """The magnet moves speed / decay_start · (1 + t / decay_start)^-decay of its way to the current policy at
    update t; with speed 0 it stays where it began, which for a table is the uniform policy."""
    magnet_speed_decay: float | None = None
    threshold: float | None = None
    """Beyond which no centred logit is pushed (Hennes et al. 2020); None for none."""
    entropy_cost: float = 0.0
    """Of the pull to the uniform policy, of returns that are scaled to [-1, 0]."""
    average_over: str = "visits"
    """A table's direction at a state is a mean over its visits, or a sum over them divided by episodes."""
    baseline: bool = True
    """A learned state value is subtracted from returns."""
    weights: str = "counterfactual"
    """Of expected updates: counterfactual or realization."""
    alternating: bool = False
    shared: bool = True
    """One network for all seats."""
    hidden_layers: tuple[int, ...] = (128, 128)
    optimizer: str = "adam_without_momentum"
    common_mode: str = defaults.COMMON_MODE
    average_power: float | None = None
    """Of time, in the weights of the average policy: 0 uniform, 1 linear."""
    average_forgetting: float = 0.0
    """Fades what was before at every update: geometric weights. For networks, the rate of their average."""
    eval_every: int | None = None
    """Episodes (sampled) or iterations (expected) between two evaluations; by default a thirtieth."""
    checkpoint_every: int = 10
    """Evaluations between two checkpoints."""
    max_histories: int = 2_000_000
    """Games with more are played live."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.game:
            raise ValueError("game must be the name of an OpenSpiel game, but is empty.")
        for name, choices in (
            *(("policy", POLICIES), ("update", UPDATES), ("play", PLAYS), ("optimizer", defaults.OPTIMIZERS)),
            ("learner", defaults.LEARNERS),
            ("weights", ("counterfactual", "realization")),
            ("common_mode", defaults.COMMON_MODES),
            ("average_over", ("visits", "episodes")),
        ):
            checks.one_of(name, getattr(self, name), choices)
        if self.exploration is not None:
            checks.in_unit_interval("exploration", self.exploration)
        whole = ("episodes", "iterations", "batch_size", "decay_start", "eval_every")
        for name in (*whole, "checkpoint_every", "max_histories"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, but is {value}.")
        magnets = ("magnet_strength", "magnet_decay", "magnet_speed", "magnet_speed_decay")
        for name in ("step_size", "step_size_decay", "cooling", "exploration_decay", *magnets):
            if getattr(self, name) is not None:
                checks.non_negative(name, getattr(self, name))
        if self.threshold is not None:
            checks.positive("threshold", self.threshold)
        checks.non_negative("entropy_cost", self.entropy_cost)
        checks.seed("seed", self.seed)
        checks.non_negative("average_power", self.average_power or 0.0)
        checks.in_unit_interval("average_forgetting", self.average_forgetting)
        if not self.hidden_layers or min(self.hidden_layers) < 1:
            raise ValueError(f"hidden_layers must be sizes of at least 1, but are {self.hidden_layers}.")
        sampled = self.update == "sampled"
        if sampled and self.iterations is not None:
            raise ValueError("iterations is for update=expected: sampled updates are counted in episodes.")
        if not sampled and self.episodes is not None:
            raise ValueError("episodes is for update=sampled: expected updates are counted in iterations.")
        if not sampled and self.batch_size not in (None, 1):
            raise ValueError(f"batch_size is for update=sampled, but is {self.batch_size}.")
        if self.play == "live" and (self.policy, self.update) != ("neural", "sampled"):
            raise ValueError(
                f"live play trains policy=neural with update=sampled, but policy is {self.policy} "
                f"and update is {self.update}."
            )

    @property
    def budget(self) -> int:
        """Episodes, or iterations of expected updates."""
        found = self.episodes if self.update == "sampled" else self.iterations
        assert found is not None, "a config is resolved before it is run"
        return found


def resolved(config: Config, play: str, table_size: int = 0) -> Config:
    """`config` for compiled or live `play`, with nothing left open.

    An update costs a pass over the whole table, of `table_size` entries: a large one wants larger batches.
    """
    config = dataclasses.replace(config, play=play)
    kind = (play, config.policy, config.update)
    filled = {name: value for name, value in DEFAULTS[kind].items() if getattr(config, name) is None}
    if config.update == "sampled" and config.episodes is None:
        filled["episodes"] = _LIVE_EPISODES if play == "live" else _EPISODES[config.policy]
    if config.update == "expected" and config.iterations is None:
        filled["iterations"] = _ITERATIONS[config.policy]
    if config.policy == "tabular" and config.update == "sampled" and config.batch_size is None:
        filled["batch_size"] = max(_TABLE["batch_size"], 2 ** (table_size // 20).bit_length())
    config = dataclasses.replace(config, **filled)
    if config.eval_every is None:
        config = dataclasses.replace(config, eval_every=max(1, config.budget // 30))
    _check_that_it_learns(config)
    checks.count("the number of updates", updates(config))
    return config


def between(config: Config) -> int:
    """Updates between two evaluations."""
    return max(1, (config.eval_every or 1) // (config.batch_size or 1))


def _check_that_it_learns(config: Config) -> None:
    """Raises where a schedule or the magnet leaves a run no way to move."""
    total, start = updates(config), config.decay_start or 1
    # The factors (1 − t / T)^c add up to T / (c + 1), and those of a decay d to start / (d − 1): beyond these
    # bounds to no more than the first. A magnet of strength τ lets a logit move by 1 / τ of its direction.
    bounds = {"cooling": (total, "updates of the run"), "step_size_decay": (start, "updates of decay_start")}
    bounds["magnet_strength"] = bounds["cooling"]
    for name, (bound, what) in bounds.items():
        if getattr(config, name) > bound:
            raise ValueError(
                f"{name} must be at most the {bound:,} {what}, or nothing is learnt, "
                f"but is {getattr(config, name):g}."
            )


def updates(config: Config) -> int:
    """Updates of the whole run."""
    return -(-config.budget // (config.batch_size or 1))
