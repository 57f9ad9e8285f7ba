"""What is to be found out about a trained policy: one frozen config, without JAX."""

import dataclasses
import pathlib

from pohp_neurd import checks

UNIFORM = "uniform"
WHICH = ("average", "current")


@dataclasses.dataclass(frozen=True)
class Config:
    """What to find out. Wrong values raise a ValueError here, before any work."""

    checkpoint: str = ""
    """The folder of a run."""
    use: str = "average"
    """The average or the current policy."""
    opponent: str = ""
    """uniform, or the folder of another run: play it head to head."""
    episodes: int = 20_000
    """Of head-to-head play, and of judging responders."""
    response_updates: int = 0
    """Updates of a learner that is trained to respond, for a lower bound on NashConv."""
    max_histories: int = 2_000_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.checkpoint:
            raise ValueError("checkpoint must be the folder of a run, but is empty.")
        checks.one_of("use", self.use, WHICH)
        for name, least in (("episodes", 100), ("response_updates", 0), ("max_histories", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, but is {getattr(self, name)}.")
        for folder in (self.checkpoint, *([self.opponent] if self.opponent not in ("", UNIFORM) else [])):
            if not pathlib.Path(folder).is_dir():
                raise ValueError(f"{folder} is not the folder of a run.")
