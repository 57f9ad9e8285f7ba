"""What the ablation in catch runs: one frozen config, and the experiment of each setting, without JAX."""

import dataclasses
from collections.abc import Callable
from typing import Any

from pohp_neurd.experiment import configs

LEARNING_RATE = 0.001797
"""SPG's best in catch, according to the paper."""

MARKS = (1_000, 2_000, 5_000, 20_000, 60_000, 150_000, 300_000)
"""Steps at which networks are looked at; the collapse is early, so they are dense there."""

SETTINGS = (
    "spg",
    "spg,baseline=none",
    "spg,bootstrapped=last",
    "spg,epsilon=0.0001",
    "spg,epsilon=0.01",
    "spg,epsilon=0.1",
    "spg,updated=all",
    "neurd_cix",
    "neurd_cix,common_mode=dropped",
    "neurd_cix,baseline=none",
    "neurd_cix,probability=update",
    "neurd_cix,bootstrapped=last",
    "neurd_cix,epsilon=0.01",
    "neurd_cix,updated=all",
)
"""One option at a time. SPG's direction neither has a common mode nor reads the probability.

`updated=all` takes about five times as long as the others."""

_OPTIONS: dict[str, Callable[[str], Any]] = {
    "updated": str,
    "baseline": str,
    "common_mode": str,
    "probability": str,
    "bootstrapped": str,
    "epsilon": float,
}


@dataclasses.dataclass(frozen=True)
class Config:
    """The settings, and how far they are run. Wrong values raise a ValueError here, before any work."""

    settings: tuple[str, ...] = SETTINGS
    seeds: int = 5
    until: int = MARKS[-1]
    width: int = 256

    def __post_init__(self) -> None:
        if self.until not in MARKS:
            raise ValueError(f"until must be one of {', '.join(map(str, MARKS))}, but is {self.until}.")
        for setting in self.settings:
            self.experiment(setting)

    def experiment(self, setting: str) -> configs.SingleAgent:
        """The experiment of a setting, with exploration 1; a ValueError where the string names none."""
        learner, *changes = setting.split(",")
        options: dict[str, Any] = {"common_mode": "paper"}
        for change in changes:
            name, found, value = change.partition("=")
            if not found or name not in _OPTIONS:
                raise ValueError(f"a setting changes any of {', '.join(_OPTIONS)}, but one says {change!r}.")
            try:
                options[name] = _OPTIONS[name](value)
            except ValueError:
                raise ValueError(f"{name} must be a number, but is {value!r}.") from None
        return configs.SingleAgent(
            learner=learner,
            learning_rates=(LEARNING_RATE,),
            seeds=self.seeds,
            num_steps=MARKS[-1],
            interval=MARKS[0],
            width=self.width,
            **options,
        )
