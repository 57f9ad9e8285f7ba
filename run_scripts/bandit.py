"""Plays a bandit problem thousands of times and holds the regret against Theorem 1's bound.

Prints a table (median, 95% and worst regret against the best arm, the bound, how many runs violated it) and
one line of JSON; writes config.json, metrics.csv and curve.png.

    python run_scripts/bandit.py --problem=adaptive --learner=regret_matching --horizon=10000
"""

import json
import sys

from absl import app, flags, logging

from pohp_neurd import checks
from pohp_neurd.bandit.reduction import ESTIMATORS
from pohp_neurd.experiment import bandit

_DEFAULTS = bandit.Config()

_PROBLEM = flags.DEFINE_enum("problem", _DEFAULTS.problem, bandit.PROBLEMS, "What the arms are worth.")
_LEARNER = flags.DEFINE_enum(
    "learner", _DEFAULTS.learner, bandit.LEARNERS, "The full-monitoring learner; `hedge` is the anytime one."
)
_ESTIMATORS = flags.DEFINE_list(
    "estimator",
    list(_DEFAULTS.estimators),
    f"One or several of {', '.join(ESTIMATORS)}, with commas between.",
)
_XI = flags.DEFINE_float("xi", None, "ξ of the exploration ξ / √(K t). By default the best one for --delta.")
_EXPLORATION = flags.DEFINE_float(
    "exploration", None, "A constant exploration, in (0, 1], in place of Theorem 1's schedule."
)
_DELTA = flags.DEFINE_float("delta", _DEFAULTS.delta, "The probability at which the bound may fail.")
_HORIZON = flags.DEFINE_integer("horizon", _DEFAULTS.horizon, "Rounds of each run.")
_SEEDS = flags.DEFINE_integer("seeds", _DEFAULTS.runs, "How many independent runs.")
_SEED = flags.DEFINE_integer("seed", _DEFAULTS.seed, "The seed that all of them come from.")
_ARMS = flags.DEFINE_integer(
    "arms", _DEFAULTS.arms, "Arms of bernoulli, switching and adaptive; the other problems have their own."
)
_OUTPUT = flags.DEFINE_string(
    "output_dir", "runs/bandit", "The folder for config.json, metrics.csv, curve.png."
)
_OVERWRITE = flags.DEFINE_bool("overwrite", False, "Throw away the run that is in --output_dir.")


def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    try:
        config = bandit.Config(
            problem=_PROBLEM.value,
            learner=_LEARNER.value,
            estimators=tuple(_ESTIMATORS.value),
            xi=_XI.value,
            exploration=_EXPLORATION.value,
            delta=_DELTA.value,
            horizon=_HORIZON.value,
            runs=_SEEDS.value,
            arms=_ARMS.value,
            seed=_SEED.value,
        )
        rows = bandit.run(config, _OUTPUT.value, overwrite=_OVERWRITE.value)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except checks.Diverged as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    print(bandit.table(rows))
    print(json.dumps(bandit.final_figures(config, rows)))


if __name__ == "__main__":
    app.run(main)
