"""Reproduces the paper's experiment: SPG's best learning rate, then NeuRD-CIX over exploration at that rate.

    python run_scripts/reproduce_paper.py --environment=catch --scale=small
    python run_scripts/reproduce_paper.py --environment=cart_pole --learning_rate=paper
    python run_scripts/reproduce_paper.py --environment=catch --scale=full --executor=ray --address=auto

Writes learning_rates.{csv,md,png}, explorations_RATE.{csv,md,png}, and all runs with results.csv and
curves.csv into --output_dir, and ends with one line of JSON, and exit code 1 if a run failed. The same
command again goes on where it was killed.
"""

import dataclasses
import json
import sys

from pohp_neurd.experiment import command_line, configs, executor, reproduction, schema


@dataclasses.dataclass(frozen=True)
class Where:
    """The folder of all runs."""

    output_dir: str | None = schema.field(
        None, "The folder of all runs.", "Where it runs", shown="runs/paper_ENVIRONMENT_SCALE"
    )


command_line.define(reproduction.Config)
command_line.define(Where)
command_line.define(configs.Executor)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    config, where = command_line.config(reproduction.Config), command_line.config(configs.Executor)
    folder = command_line.config(Where).output_dir or f"runs/paper_{config.environment}_{config.scale}"
    execute = executor.build(where.executor, cores=where.cores, address=where.address)
    time = {"smoke": "a minute", "small": "an hour on two cores", "full": "many hours"}[config.scale]
    command_line.opening(
        f"Running the paper's experiment in {folder}: {time}; progress counts the runs that are finished"
    )
    try:
        figures = reproduction.run(
            config, folder, execute, retry_failed=where.retry_failed, known_from=where.known
        )
    except KeyboardInterrupt:
        print(f"Stopped; the same command goes on in {folder}.", file=sys.stderr)
        sys.exit(130)
    failed = figures["failed"]
    for line in failed:
        print(f"Failed: {line}", file=sys.stderr)
    command_line.closing(f"Tables, figures and all runs are in {folder}: begin with {figures['picture']}.")
    print(json.dumps({**figures, "failed": len(failed)}))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    command_line.run(main, __doc__)
