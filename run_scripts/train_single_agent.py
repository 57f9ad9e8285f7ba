"""Trains the paper's online actor-critic in catch or cart pole, many seeds and settings in one call.

Writes config.json, metrics.csv, checkpoints/ and curve.png into --output_dir, and ends with one line of JSON.

    python run_scripts/train_single_agent.py --environment=catch --learner=neurd_cix --exploration=1 \
        --common_mode=dropped --learning_rate=0.00003 --num_steps=300000 --seeds=20 --output_dir=runs/catch
"""

import json
import sys

from absl import app, flags, logging

from pohp_neurd import checks
from pohp_neurd.experiment import lanes, single_agent

_DEFAULTS = single_agent.Config()

_NUMBERS = {
    "exploration": (
        "explorations",
        "η of NeuRD-CIX in [0, 1]; several with commas. SPG and NeuRD ignore it.",
    ),
    "learning_rate": ("learning_rates", "Adam's learning rate; several with commas."),
}
_STRINGS = {
    "environment": "catch or cart_pole.",
    "learner": "spg, neurd or neurd_cix.",
    "updated": "States of the 32-step window that learn at each step: oldest or all.",
    "baseline": "What is subtracted from returns: critic or none.",
    "common_mode": "paper, or dropped: directions centred over the actions.",
    "probability": "Whether the estimate's π(A) is that of acting or of the update.",
    "bootstrapped": "Whether the factor 0.9 is on every value in a target or on the last one.",
}
_INTEGERS = {
    "seeds": "How many seeds, each with every learning rate and exploration.",
    "first_seed": "The first of them.",
    "num_steps": "Steps of each run.",
    "interval": "Steps between two rows of metrics.csv.",
    "checkpoint_every": "Intervals between two checkpoints.",
    "horizon": "Decisions of an episode at most; by default the environment is continuing, as in the paper.",
    "swap_every": "Of catch: steps after which left and right swap, and again; by default never.",
    "decay_start": "See --exploration_decay; in updates.",
    "width": "Units of each hidden layer.",
}
for _name, (_field, _help) in _NUMBERS.items():
    flags.DEFINE_list(_name, [f"{value:g}" for value in getattr(_DEFAULTS, _field)], _help)
for _name, _help in _STRINGS.items():
    flags.DEFINE_string(_name, getattr(_DEFAULTS, _name), _help)
for _name, _help in _INTEGERS.items():
    flags.DEFINE_integer(_name, getattr(_DEFAULTS, _name), _help)
_FLOATS = {
    "epsilon": "Adam's ε.",
    "exploration_decay": "p of exploration / (1 + t / decay_start)^p at update t; 0: constant.",
}
for _name, _help in _FLOATS.items():
    flags.DEFINE_float(_name, getattr(_DEFAULTS, _name), _help)
_OUTPUT = flags.DEFINE_string("output_dir", "runs/single_agent", "The folder of the run.")
_RESUME = flags.DEFINE_bool("resume", False, "Go on with the run in --output_dir from its newest checkpoint.")
_OVERWRITE = flags.DEFINE_bool("overwrite", False, "Throw away the run that is in --output_dir.")
_CORES = flags.DEFINE_integer("cores", None, "Cores to use; by default all. No figure depends on it.")


def main(_: list[str]) -> None:
    """Turns flags into a config and runs it."""
    logging.set_verbosity(logging.WARNING)  # JAX tells of every backend that is not there
    values = flags.FLAGS
    try:
        chosen = {name: values[name].value for name in (*_STRINGS, *_INTEGERS, *_FLOATS)}
        for name, (field, _) in _NUMBERS.items():
            chosen[field] = tuple(map(float, values[name].value))
        config = single_agent.Config(**chosen)
        num_cores = lanes.cores(_CORES.value)
        lanes.use_one_core()
        folder = {"resume": _RESUME.value, "overwrite": _OVERWRITE.value}
        figures = single_agent.run(config, _OUTPUT.value, num_cores=num_cores, **folder)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except checks.Diverged as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    print(json.dumps(figures))


def _parse(arguments: list[str]) -> list[str]:
    try:
        return flags.FLAGS(arguments)
    except flags.Error as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    app.run(main, flags_parser=_parse)
