"""Judges a policy that train_game.py has trained.

    python run_scripts/evaluate.py --checkpoint=runs/game
    python run_scripts/evaluate.py --checkpoint=runs/game --use=current --opponent=uniform
    python run_scripts/evaluate.py --checkpoint=runs/phantom --opponent=runs/other --response_updates=200

NashConv and head-to-head returns are exact wherever the game compiles. In larger games play is sampled, and
--response_updates trains a learner against the frozen policy: what it gains is a lower bound on NashConv.
Ends with one line of JSON.
"""

import json

import command_line

from pohp_neurd.experiment import judgement_config

TOPICS = {
    "What is judged": {
        "checkpoint": "The folder of a run.",
        "use": "Its average or current policy.",
    },
    "How": {
        "opponent": "Play head to head against uniform, or against the folder of another run.",
        "episodes": "Episodes of sampled play.",
        "response_updates": "Updates of a learner trained to respond; 0 for none.",
        "max_histories": "Games with more are not compiled.",
        "seed": "The seed of sampled play and of responders.",
    },
}


command_line.define(judgement_config.Config, TOPICS)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and judges."""
    config = command_line.config(judgement_config.Config, TOPICS)
    from pohp_neurd.experiment import judgement

    print(json.dumps(judgement.judge(config)))


if __name__ == "__main__":
    command_line.run(main, __doc__, TOPICS, {"checkpoint": "none, it must be given", "opponent": "none"})
