"""Plays a bandit problem thousands of times and holds the regret against Theorem 1's bound.

Prints a table (median, 95% and worst regret against the best arm, the bound, how many runs violated it) and
one line of JSON; writes config.json, metrics.csv and curve.png.

    python run_scripts/bandit.py --problem=adaptive --learner=regret_matching --horizon=10000
"""

import json

import command_line
from absl import flags

from pohp_neurd.experiment import bandit_config

TOPICS = {
    "What is played": {
        "problem": f"What the arms are worth: {', '.join(bandit_config.PROBLEMS)}.",
        "learner": f"The full-monitoring learner, {', '.join(bandit_config.LEARNERS)}; hedge is the anytime "
        "one.",
        "estimator": f"One or several of {', '.join(bandit_config.ESTIMATORS)}, with commas between.",
        "xi": "ξ of the exploration ξ / √(K t). By default the best one for --delta.",
        "exploration": "A constant exploration, in (0, 1], in place of Theorem 1's schedule.",
        "delta": "The probability at which the bound may fail.",
        "horizon": "Rounds of each run.",
        "seeds": "How many independent runs.",
        "seed": "The seed that all of them come from.",
        "arms": "Arms of bernoulli, switching and adaptive; the other problems have their own.",
    }
}
_RENAMED = {"estimator": "estimators", "seeds": "runs"}
command_line.define(bandit_config.Config, TOPICS, _RENAMED)
command_line.define_run("runs/bandit", command_line.OVERWRITE)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    config = command_line.config(bandit_config.Config, TOPICS, _RENAMED)
    from pohp_neurd.experiment import bandit

    rows = bandit.run(config, flags.FLAGS.output_dir, overwrite=flags.FLAGS.overwrite)
    print(bandit.table(rows))
    print(json.dumps(bandit.final_figures(config, rows)))


if __name__ == "__main__":
    command_line.run(main, __doc__, {**TOPICS, "The run": command_line.OVERWRITE}, {})
