"""Plays a bandit problem thousands of times and compares the regret with Theorem 1's bound.

Prints a table (median, 95% and worst regret against the best arm, the bound, how many runs violated it) and
one line of JSON; writes config.json, metrics.csv, checkpoints/ and curve.png into --output_dir. Ctrl-C saves
a checkpoint; the same command with --resume goes on from it.

    python run_scripts/bandit.py --problem=adaptive --learner=regret_matching --horizon=10000
"""

import dataclasses
import json
import pathlib

from pohp_neurd.experiment import command_line, configs

command_line.define(configs.Bandit)
command_line.define(configs.Folder, output_dir="runs/bandit")


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    config = command_line.config(configs.Bandit)
    folder = dataclasses.asdict(command_line.config(configs.Folder))
    command_line.opening(
        f"Playing {config.seeds:,} runs of {config.horizon:,} rounds: seconds, or minutes for many"
    )
    from pohp_neurd.experiment import bandit
    from pohp_neurd.results import table

    path = pathlib.Path(folder.pop("output_dir"))
    figures = bandit.run(config, path, **folder)
    print(bandit.table(table.read(path / "metrics.csv")))
    command_line.closing(f"All files are in {path}; {path / 'curve.png'} shows the regret over time.")
    print(json.dumps(figures))


if __name__ == "__main__":
    command_line.run(main, __doc__)
