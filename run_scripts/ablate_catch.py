"""Changes one option of the online agent at a time in catch, at the paper's learning rate, and looks inside.

    python run_scripts/ablate_catch.py --output_dir=runs/catch_ablation
    python run_scripts/ablate_catch.py --output_dir=runs/catch_ablation --setting=spg,epsilon=0.1

Writes ablation.csv, a row for every seed at every mark, as it is reached, and a picture of the last marks.
Called again with more settings or a later --until, it goes on with what is there.
"""

import sys

from absl import app, flags, logging

from pohp_neurd.experiment import catch_ablation, lanes
from pohp_neurd.experiment.plot import ablation

_OUTPUT = flags.DEFINE_string("output_dir", "runs/catch_ablation", "The folder of the study.")
_SETTINGS = flags.DEFINE_multi_string(
    "setting", None, "A learner and its changed options, as spg,epsilon=0.01; repeat it for several."
)
_SEEDS = flags.DEFINE_integer("seeds", 5, "Seeds of each setting.")
_UNTIL = flags.DEFINE_integer("until", catch_ablation.MARKS[-1], f"The last mark: {catch_ablation.MARKS}.")
_WIDTH = flags.DEFINE_integer("width", 256, "Units of each hidden layer.")
_CORES = flags.DEFINE_integer("cores", None, "Cores to use; by default all. No figure depends on it.")


def main(_: list[str]) -> None:
    """Turns flags into the study, and draws it."""
    logging.set_verbosity(logging.WARNING)
    try:
        num_cores = lanes.cores(_CORES.value)
        lanes.use_one_core()
        rows = catch_ablation.run(
            _OUTPUT.value,
            _SETTINGS.value or catch_ablation.SETTINGS,
            seeds=_SEEDS.value,
            until=_UNTIL.value,
            width=_WIDTH.value,
            num_cores=num_cores,
        )
        ablation.draw(f"{_OUTPUT.value}/ablation.png", rows)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    app.run(main)
