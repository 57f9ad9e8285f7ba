r"""Trains the paper's online actor-critic in catch or cart pole, many seeds and settings at once.

Writes config.json, metrics.csv, checkpoints/ and curve.png into --output_dir, and ends with one line of JSON.
Ctrl-C saves a checkpoint; the same command with --resume goes on from it.

    python run_scripts/train_single_agent.py --environment=catch --learner=neurd_cix --exploration=1 \
        --learning_rate=0.00003 --num_steps=300000 --seeds=20 --output_dir=runs/catch
"""

import dataclasses
import json

from pohp_neurd.experiment import command_line, configs

command_line.define(configs.SingleAgent)
command_line.define(configs.Folder, output_dir="runs/single_agent")
command_line.define(configs.Cores)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    config = command_line.config(configs.SingleAgent)
    folder = dataclasses.asdict(command_line.config(configs.Folder))
    command_line.opening(
        f"Training in {config.environment}, {config.seeds:,} seeds, {config.num_steps:,} steps each: "
        "loading and compiling take some seconds, then it counts"
    )
    from pohp_neurd.experiment import executor, single_agent

    num_cores = executor.available(command_line.config(configs.Cores).cores)
    executor.use_one_core()
    path = folder.pop("output_dir")
    figures = single_agent.run(config, path, num_cores=num_cores, **folder)
    command_line.closing(f"All files are in {path}. Next: `pohp-neurd report --checkpoint={path}`.")
    print(json.dumps(figures))


if __name__ == "__main__":
    command_line.run(main, __doc__)
