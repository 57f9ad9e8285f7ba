"""The paper's experiment, end to end: SPG's best learning rate, then NeuRD-CIX over exploration at that rate.

    python run_scripts/reproduce_paper.py --environment=catch --scale=small
    python run_scripts/reproduce_paper.py --environment=cart_pole --learning_rate=paper
    python run_scripts/reproduce_paper.py --environment=catch --scale=full --executor=ray --address=auto

Writes learning_rates.{csv,md,png}, explorations_RATE.{csv,md,png}, and all runs with results.csv and
curves.csv into --output_dir, and ends with one line of JSON, and exit code 1 if a run failed. The same
command again goes on where it was killed.
"""

import json
import sys

import command_line
from absl import flags

from pohp_neurd.experiment import executor, reproduction

TOPICS = {
    "What is run": {
        "environment": "catch or cart_pole.",
        "scale": "smoke (a minute), small (an hour on 2 cores: 28 rates x 5 seeds, 6 explorations x 20) "
        "or full (28 rates x 20 seeds, 11 explorations x 20 seeds).",
        "learning_rate": "best (of the sweep), paper (0.001797 in catch, 0.00005 in cart pole) or a number.",
    },
    "How the paper is read": {
        "updated": "States of the 32-step window that learn at each step: oldest or all.",
        "baseline": "What is subtracted from returns: critic or none.",
        "common_mode": "paper, or dropped: directions centred over the actions.",
        "probability": "Whether the estimate's π(A) is that of acting or of the update.",
        "bootstrapped": "Whether the factor 0.9 is on every value in a target or on the last one.",
        "epsilon": "Adam's ε.",
    },
}
_OWN = {
    "Where": {
        "output_dir": "The folder of all runs.",
        "retry_failed": command_line.RETRY_FAILED,
        **command_line.EXECUTOR,
    }
}
command_line.define(reproduction.Config, TOPICS)
_OUTPUT = flags.DEFINE_string("output_dir", None, _OWN["Where"]["output_dir"])
_RETRY = flags.DEFINE_bool("retry_failed", False, command_line.RETRY_FAILED)
command_line.define_executor()


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    config = command_line.config(reproduction.Config, TOPICS)
    folder = _OUTPUT.value or f"runs/paper_{config.environment}_{config.scale}"
    execute = executor.build(**command_line.executor())
    try:
        figures = reproduction.run(config, folder, execute, retry_failed=_RETRY.value)
    except KeyboardInterrupt:
        print(f"Stopped; the same command goes on in {folder}.", file=sys.stderr)
        sys.exit(130)
    failed = figures["failed"]
    for line in failed:
        print(f"Failed: {line}", file=sys.stderr)
    print(json.dumps({**figures, "failed": len(failed)}))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    command_line.run(
        main, __doc__, {**TOPICS, **_OWN}, {"output_dir": "runs/paper_ENVIRONMENT_SCALE", "cores": "all"}
    )
