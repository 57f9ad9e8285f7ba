"""Play a game in the terminal against a policy that train_game.py has trained.

    python run_scripts/play.py --checkpoint=runs/leduc --seat=0

Type an action's number or name, ? for the policy's own probabilities, q to leave.
"""

import dataclasses
import json
import pathlib

import command_line

from pohp_neurd.openspiel import saved, terminal

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


command_line.define(Config, TOPICS)


def main(_: list[str]) -> None:
    """Loads the policy and plays one game."""
    config = command_line.config(Config, TOPICS)
    try:
        if not pathlib.Path(config.checkpoint).is_dir():
            raise ValueError(f"{config.checkpoint} is not the folder of a run.")
        trained = saved.load(config.checkpoint)
        policy = saved.openspiel_policy(trained, config.use)
        returns = terminal.play(trained.about.game, policy, config.seat, seed=config.seed)
    except (ValueError, OSError) as error:
        command_line.refused(error)
    except (EOFError, KeyboardInterrupt):
        returns = None
    print(json.dumps({"game": trained.about.game, "seat": config.seat, "returns": returns}))


if __name__ == "__main__":
    command_line.run(main, __doc__, TOPICS, {})
