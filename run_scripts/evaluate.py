"""Evaluates a policy that train_game.py has trained: NashConv, returns, head-to-head play.

    python run_scripts/evaluate.py --checkpoint=runs/game
    python run_scripts/evaluate.py --checkpoint=runs/game --use=current --opponent=uniform
    python run_scripts/evaluate.py --checkpoint=runs/phantom --opponent=runs/other
    python run_scripts/evaluate.py --checkpoint=runs/phantom --response_updates=200 --response_seeds=3
    python run_scripts/evaluate.py --checkpoint=runs/poker --search_simulations=200

NashConv and head-to-head returns are exact wherever the game compiles. In larger games play is sampled.
Opponents that try give a lower bound on NashConv, by what they gain against the frozen policy: learners that
--response_updates trains, and OpenSpiel's tree search with --search_simulations a move.
Ends with one line of JSON.
"""

import json

from pohp_neurd.experiment import command_line, configs

command_line.define(configs.Evaluation)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and evaluates."""
    config = command_line.config(configs.Evaluation)
    command_line.opening(f"Evaluating {config.checkpoint}: seconds, or minutes for a large game")
    from pohp_neurd.experiment import evaluation

    figures = evaluation.evaluate(config)
    command_line.closing(
        f"Next: `pohp-neurd report --checkpoint={config.checkpoint}` shows it state by state."
    )
    print(json.dumps(figures))


if __name__ == "__main__":
    command_line.run(main, __doc__)
