"""What makes a single-agent experiment: one frozen config. Its checks do not load JAX; what is run does."""

import dataclasses
import itertools
from typing import Any

import numpy as np

from pohp_neurd import checks
from pohp_neurd.online import options as agent_options

ENVIRONMENTS = ("catch", "cart_pole")

_OPTIONS = (
    *("learner", "updated", "baseline", "common_mode", "probability", "bootstrapped", "epsilon"),
    *("exploration_decay", "decay_start"),
)


@dataclasses.dataclass(frozen=True)
class Config:
    """What makes a single-agent experiment. Wrong values raise a ValueError here, before any work."""

    environment: str = "catch"
    learner: str = "neurd_cix"
    explorations: tuple[float, ...] = (1.0,)
    learning_rates: tuple[float, ...] = (0.00003,)
    seeds: int = 20
    first_seed: int = 0
    num_steps: int = 300_000
    interval: int = 1_000
    """Steps between two rows of metrics."""
    checkpoint_every: int = 50
    """Intervals between two checkpoints."""
    horizon: int | None = None
    """None: continuing, as in the paper. Otherwise the decisions of an episode at most."""
    swap_every: int | None = None
    """Of catch: steps after which left and right change their meanings, and again; None: never."""
    updated: str = "oldest"
    baseline: str = "critic"
    common_mode: str = "paper"
    probability: str = "acting"
    bootstrapped: str = "every"
    epsilon: float = 1e-8
    exploration_decay: float = 0.0
    """p of the factor (1 + t / decay_start)^-p on the exploration at update t."""
    decay_start: int = 1_000
    width: int = 256
    """Units of each hidden layer."""

    def __post_init__(self) -> None:
        checks.one_of("environment", self.environment, ENVIRONMENTS)
        self.options()  # checks its own
        for name in ("explorations", "learning_rates"):
            values = getattr(self, name)
            if not values:
                raise ValueError(f"{name} must hold at least one number, but is empty.")
            if len(set(values)) < len(values):
                raise ValueError(f"{name} must differ, but are {', '.join(f'{v:g}' for v in values)}.")
        for exploration in self.explorations:
            checks.in_unit_interval("exploration", exploration)
        for rate in self.learning_rates:
            checks.positive("learning_rate", rate)
        for name in ("seeds", "num_steps", "interval", "checkpoint_every", "decay_start", "width"):
            checks.count(name, getattr(self, name))
        checks.seed("first_seed", self.first_seed)
        checks.seed("the last seed", self.first_seed + self.seeds - 1)
        if self.num_steps % self.interval:
            raise ValueError(
                f"num_steps must be a multiple of interval, but {self.num_steps} is none of {self.interval}."
            )
        for name in ("horizon", "swap_every"):
            if getattr(self, name) is not None:
                checks.count(name, getattr(self, name))
        if self.swap_every is not None and self.environment != "catch":
            raise ValueError("swap_every is for environment=catch.")

    def options(self) -> agent_options.Options:
        """The agent's options."""
        return agent_options.Options(**{name: getattr(self, name) for name in _OPTIONS})

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
