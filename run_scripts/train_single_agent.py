r"""Trains the paper's online actor-critic in catch or cart pole, many seeds and settings in one call.

Writes config.json, metrics.csv, checkpoints/ and curve.png into --output_dir, and ends with one line of JSON.
Ctrl-C saves a checkpoint; the same command with --resume goes on from it.

    python run_scripts/train_single_agent.py --environment=catch --learner=neurd_cix --exploration=1 \
        --common_mode=dropped --learning_rate=0.00003 --num_steps=300000 --seeds=20 --output_dir=runs/catch
"""

import json

import command_line
from absl import flags

from pohp_neurd.experiment import single_agent_config

TOPICS = {
    "What is trained": {
        "environment": "catch or cart_pole.",
        "learner": "spg, neurd or neurd_cix.",
        "exploration": "η of NeuRD-CIX in [0, 1]; several with commas. SPG and NeuRD have none.",
        "learning_rate": "Adam's learning rate; several with commas.",
        "exploration_decay": "p of exploration / (1 + t / decay_start)^p at update t; 0: constant.",
        "decay_start": "See --exploration_decay; in updates.",
        "horizon": "Decisions of an episode at most; by default the environment is continuing, as in the "
        "paper.",
        "swap_every": "Of catch: steps after which left and right swap, and again; by default never.",
        "width": "Units of each hidden layer.",
    },
    "How the paper is read": {
        "updated": "States of the 32-step window that learn at each step: oldest or all.",
        "baseline": "What is subtracted from returns: critic or none.",
        "common_mode": "paper, or dropped: directions centred over the actions.",
        "probability": "Whether the estimate's π(A) is that of acting or of the update.",
        "bootstrapped": "Whether the factor 0.9 is on every value in a target or on the last one.",
        "epsilon": "Adam's ε.",
    },
    "How long": {
        "seeds": "How many seeds, each with every learning rate and exploration.",
        "first_seed": "The first of them.",
        "num_steps": "Steps of each run.",
        "interval": "Steps between two rows of metrics.csv.",
        "checkpoint_every": "Intervals between two checkpoints.",
    },
}
_RUN = {"The run": {**command_line.RESUME, "cores": command_line.CORES}}
_RENAMED = {"exploration": "explorations", "learning_rate": "learning_rates"}
command_line.define(single_agent_config.Config, TOPICS, _RENAMED)
command_line.define_run("runs/single_agent", command_line.RESUME)
command_line.define_whole("cores", None, command_line.CORES)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    config = command_line.config(single_agent_config.Config, TOPICS, _RENAMED)
    from pohp_neurd.experiment import lanes, single_agent

    values = flags.FLAGS
    num_cores = lanes.cores(values.cores)
    lanes.use_one_core()
    chosen = {"resume": values.resume, "overwrite": values.overwrite}
    print(json.dumps(single_agent.run(config, values.output_dir, num_cores=num_cores, **chosen)))


if __name__ == "__main__":
    command_line.run(main, __doc__, {**TOPICS, **_RUN}, {"cores": "all"})
