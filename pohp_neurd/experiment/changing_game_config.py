"""What makes the study of a game that changes: one frozen config, without JAX."""

import dataclasses

from pohp_neurd import checks
from pohp_neurd.experiment.schema import field

BASELINES = ("none", "mean", "value")
"""None, as in Theorem 1; the running mean of own returns; the exact value of the policies of the moment."""

POINTS = 20
"""Points of a phase that are kept, each a mean over a twentieth of it; a multiple of 4 for the quarters."""


@dataclasses.dataclass(frozen=True)
class Config:
    """The whole study: every learner in every world, over exploration and step sizes."""

    bias: float = field(5.0, "How many times the favoured win counts.", "The game")
    jump_every: int = field(1_000, "Updates between two jumps; a multiple of 20.", "The game")
    cycles: int = field(4, "How often the three phases are gone through.", "The game")
    batch_size: int = field(4, "Games of one update.", "The game")
    explorations: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
    """Constant ones; 0 is NeuRD."""
    decreasing: tuple[float, ...] = (0.1, 0.3, 1.0)
    """First values of explorations that fall as 1 / √(1 + t / decay_start), the rate of Theorem 1."""
    decay_start: float = field(
        100.0, "Decreasing exploration falls as 1 / sqrt(1 + t / decay_start) at update t.", "The learners"
    )
    step_sizes: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
    """On returns that are scaled to [−1, 0]."""
    magnet_strengths: tuple[float, ...] = (0.0, 0.05)
    """For self-play; the bandit has none."""
    baselines: tuple[str, ...] = BASELINES
    magnet_speed: float = field(0.02, "How far the magnet moves to the policy in an update.", "The learners")
    baseline_speed: float = field(
        0.05, "How far the running mean of returns moves in an update.", "The learners"
    )
    """Of the running mean of returns."""
    seeds: int = field(20, "Reported seeds, a multiple of --tuning_seeds.", "Seeds")
    tuning_seeds: int = field(10, "Seeds after those, on which step sizes are chosen.", "Seeds")
    """Seeds on which step sizes are chosen; others than those that are reported."""
    seed: int = field(0, "The first seed.", "Seeds")

    def __post_init__(self) -> None:
        checks.positive("bias", self.bias)
        checks.positive("decay_start", self.decay_start)
        for name in ("explorations", "decreasing"):
            checks.in_unit_interval(name, getattr(self, name))
        for name in ("magnet_speed", "baseline_speed"):
            checks.in_unit_interval(name, getattr(self, name))
        checks.positive("step_sizes", self.step_sizes)
        checks.non_negative("magnet_strengths", self.magnet_strengths)
        for baseline in self.baselines:
            checks.one_of("baselines", baseline, BASELINES)
        for name in ("explorations", "step_sizes", "magnet_strengths", "baselines"):
            if not getattr(self, name):
                raise ValueError(f"{name} must hold at least one entry, but is empty.")
        for name in ("explorations", "decreasing", "step_sizes", "magnet_strengths", "baselines"):
            entries = getattr(self, name)
            if len(set(entries)) < len(entries):
                raise ValueError(f"{name} must differ, but are {', '.join(map(str, entries))}.")
        for name in ("jump_every", "cycles", "batch_size", "seeds", "tuning_seeds"):
            checks.count(name, getattr(self, name))
        checks.seed("seed", self.seed)
        checks.seed("the last tuning seed", self.seed + self.seeds + self.tuning_seeds - 1)
        if self.seeds % self.tuning_seeds:
            raise ValueError(
                f"seeds must be a multiple of tuning_seeds, {self.tuning_seeds}, but is {self.seeds}."
            )
        if self.jump_every % POINTS:
            raise ValueError(f"jump_every must be a multiple of {POINTS}, but is {self.jump_every}.")
