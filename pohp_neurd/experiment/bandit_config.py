"""What makes a bandit experiment: one frozen config, without JAX."""

import dataclasses

from pohp_neurd import checks

PROBLEMS = (
    "bernoulli",
    "switching",
    "adaptive",
    "rock_paper_scissors",
    "shifting_rock_paper_scissors",
    "kuhn",
    "kuhn_learning",
)
LEARNERS = ("hedge", "hedge_fixed", "regret_matching", "regret_matching_plus")
ESTIMATORS = ("importance", "ix", "cix")


@dataclasses.dataclass(frozen=True)
class Config:
    """What makes a bandit experiment. Wrong values raise a ValueError here, before any work."""

    problem: str = "bernoulli"
    learner: str = "hedge"
    estimators: tuple[str, ...] = ("importance", "ix", "cix")
    xi: float | None = None
    """ξ of the exploration ξ / √(K t); None for the best one by `delta`."""
    exploration: float | None = None
    """A constant exploration in place of Theorem 1's schedule."""
    delta: float = 0.05
    horizon: int = 10_000
    runs: int = 2_000
    arms: int = 5
    """Only where the problem leaves it open: bernoulli, switching, adaptive."""
    seed: int = 0

    def __post_init__(self) -> None:
        checks.one_of("problem", self.problem, PROBLEMS)
        checks.one_of("learner", self.learner, LEARNERS)
        if not self.estimators:
            raise ValueError(f"estimators must name at least one of {', '.join(ESTIMATORS)}, but is empty.")
        for estimator in self.estimators:
            checks.one_of("estimator", estimator, ESTIMATORS)
        if len(set(self.estimators)) < len(self.estimators):
            raise ValueError(f"estimators must differ, but are {', '.join(self.estimators)}.")
        for name, least in (("horizon", 1), ("runs", 1), ("arms", 2)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, but is {getattr(self, name)}.")
        checks.count("horizon", self.horizon)
        checks.seed("seed", self.seed)
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, but is {self.delta:g}.")
        if self.xi is not None and self.exploration is not None:
            raise ValueError("xi and exploration exclude each other: give one of them, or neither.")
        if self.xi is not None:
            checks.positive("xi", self.xi)
        if self.exploration is not None:
            checks.in_unit_interval("exploration", self.exploration)
            checks.positive("exploration", self.exploration)
