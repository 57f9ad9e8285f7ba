"""Plays a game with you in the terminal, against a policy that train_game.py has trained.

    python run_scripts/play.py --checkpoint=runs/leduc --seat=0
    python run_scripts/play.py --checkpoint=runs/leduc --opponent=best_response

Type an action's number or name, ? for the policy's own probabilities, q to leave.
"""

import json

from pohp_neurd.experiment import command_line, configs

command_line.define(configs.Play)


@command_line.told
def main(_: list[str]) -> None:
    """Loads the policy and plays one game."""
    config = command_line.config(configs.Play)
    command_line.opening(f"Reading {config.checkpoint}: seconds, or a minute for a large game")
    from pohp_neurd.experiment import evaluation
    from pohp_neurd.openspiel import players

    game, policy, opponent = evaluation.at_table(config)
    try:
        returns = players.play_in_terminal(game, policy, config.seat, seed=config.seed, opponent=opponent)
    except (EOFError, KeyboardInterrupt):
        returns = None
    if returns is None:
        print()  # what was left unanswered has no end of line
    print(json.dumps({"game": game, "seat": config.seat, "returns": returns}))


if __name__ == "__main__":
    command_line.run(main, __doc__)
