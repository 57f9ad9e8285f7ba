"""What makes a run of self-play in the one-shot game: one frozen config, without JAX."""

import dataclasses

from pohp_neurd import checks
from pohp_neurd.experiment.schema import field

ROWS = 20
"""Of metrics.csv."""


@dataclasses.dataclass(frozen=True)
class Config:
    """One run of two agents in biased rock-paper-scissors."""

    learner: str = field("neurd_cix", "spg, neurd or neurd_cix.", "What is trained")
    exploration: float = field(
        0.1, "η of NeuRD-CIX, in [0, 1].", "What is trained", only_for={"learner": "neurd_cix"}
    )
    step_size: float = field(0.05, "α, of every update.", "What is trained")
    magnet_strength: float = field(0.2, "Pull to a slowly moving policy.", "What is trained")
    magnet_speed: float = field(0.02, "How fast that policy follows, in [0, 1].", "What is trained")
    batch_size: int = field(64, "Episodes of one update.", "What is trained")
    episodes: int = field(640_000, "Episodes in all.", "What is trained")
    seed: int = field(0, "The seed of everything random.", "What is trained")

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
