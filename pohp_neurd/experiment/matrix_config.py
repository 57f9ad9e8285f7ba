"""What makes a run of self-play in the one-shot game: one frozen config, without JAX."""

import dataclasses

from pohp_neurd import checks

ROWS = 20
"""Of metrics.csv."""


@dataclasses.dataclass(frozen=True)
class Config:
    """One run of two agents in biased rock-paper-scissors."""

    learner: str = "neurd_cix"
    exploration: float = 0.1
    step_size: float = 0.05
    magnet_strength: float = 0.2
    magnet_speed: float = 0.02
    batch_size: int = 64
    episodes: int = 640_000
    seed: int = 0

    def __post_init__(self) -> None:
        checks.one_of("learner", self.learner, ("spg", "neurd", "neurd_cix"))
        checks.in_unit_interval("exploration", self.exploration)
        checks.non_negative("step_size", self.step_size)
        checks.non_negative("magnet_strength", self.magnet_strength)
        checks.in_unit_interval("magnet_speed", self.magnet_speed)
        checks.seed("seed", self.seed)
        checks.count("batch_size", self.batch_size)
        if self.episodes < self.batch_size * ROWS:
            raise ValueError(
                f"episodes must be at least {ROWS} batches of {self.batch_size}, but is {self.episodes}."
            )
