"""Play a game in the terminal against a policy that train_game.py has trained.

    python run_scripts/play.py --checkpoint=runs/leduc --seat=0

Type an action's number or name, ? for the policy's own probabilities, q to leave.
"""

import dataclasses
import json
import pathlib

import command_line

from pohp_neurd import checks
from pohp_neurd.experiment import judgement_config

TOPICS = {
    "The game": {
        "checkpoint": "The folder of a run.",
        "use": "Its average or current policy.",
        "seat": "Your seat, from 0.",
        "seed": "The seed of cards and of the policy's moves.",
    }
}


@dataclasses.dataclass(frozen=True)
class Config:
    """Whom to play, and from which seat."""

    checkpoint: str = "runs/leduc"
    use: str = "average"
    seat: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        checks.one_of("use", self.use, judgement_config.WHICH)
        checks.seed("seed", self.seed)
        if self.seat < 0:
            raise ValueError(f"seat must be at least 0, but is {self.seat}.")
        if not pathlib.Path(self.checkpoint).is_dir():
            raise ValueError(f"{self.checkpoint} is not the folder of a run.")


command_line.define(Config, TOPICS)


@command_line.told
def main(_: list[str]) -> None:
    """Loads the policy and plays one game."""
    config = command_line.config(Config, TOPICS)
    from pohp_neurd.openspiel import saved, terminal

    trained = saved.load(config.checkpoint)
    policy = saved.openspiel_policy(trained, config.use)
    try:
        returns = terminal.play(trained.about.game, policy, config.seat, seed=config.seed)
    except (EOFError, KeyboardInterrupt):
        returns = None
    print(json.dumps({"game": trained.about.game, "seat": config.seat, "returns": returns}))


if __name__ == "__main__":
    command_line.run(main, __doc__, TOPICS, {})
