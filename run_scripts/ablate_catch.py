"""Changes one option of the online agent at a time in catch, at the paper's learning rate, and looks inside.

    python run_scripts/ablate_catch.py --output_dir=runs/catch_ablation
    python run_scripts/ablate_catch.py --output_dir=runs/catch_ablation --setting=spg,epsilon=0.1

Writes ablation.csv, a row for every seed at every mark, as it is reached, and a picture of the last marks.
Called again with more settings or a later --until, it goes on with what is there.
"""

import command_line
from absl import flags

from pohp_neurd.experiment import catch_ablation_config, run_folder

TOPICS = {
    "What is run": {
        "setting": "A learner and its changed options, as spg,epsilon=0.01; repeat it for several.",
        "seeds": "Seeds of each setting.",
        "until": f"The last mark: {', '.join(map(str, catch_ablation_config.MARKS))}.",
        "width": "Units of each hidden layer.",
    },
    "Where": {"output_dir": "The folder of the study.", "cores": command_line.CORES},
}
_MEANINGS = {name: meaning for names in TOPICS.values() for name, meaning in names.items()}
flags.DEFINE_multi_string("setting", [], _MEANINGS["setting"])
for _name in ("seeds", "until", "width"):
    command_line.define_whole(_name, getattr(catch_ablation_config.Config, _name), _MEANINGS[_name])
flags.DEFINE_string("output_dir", "runs/catch_ablation", _MEANINGS["output_dir"])
command_line.define_whole("cores", None, _MEANINGS["cores"])


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into the study, and draws it."""
    values = flags.FLAGS
    settings = tuple(values.setting) or catch_ablation_config.SETTINGS
    chosen = {name: values[name].value for name in ("seeds", "until", "width")}
    config = catch_ablation_config.Config(settings, **chosen)
    run_folder.check_writable(values.output_dir)
    from pohp_neurd.experiment import catch_ablation, lanes
    from pohp_neurd.experiment.plot import ablation

    num_cores = lanes.cores(values.cores)
    lanes.use_one_core()
    rows = catch_ablation.run(values.output_dir, config, num_cores=num_cores)
    ablation.draw(f"{values.output_dir}/ablation.png", rows)


if __name__ == "__main__":
    command_line.run(main, __doc__, TOPICS, {"setting": "one option at a time", "cores": "all"})
