"""Changes one option of the online agent at a time in catch, at the paper's learning rate, and looks inside.

    python run_scripts/ablate_catch.py --output_dir=runs/catch_ablation
    python run_scripts/ablate_catch.py --output_dir=runs/catch_ablation --setting=spg,epsilon=0.1

Writes ablation.csv, a row for every seed at every mark, as it is reached, and a picture of the last marks.
Called again with more settings or a later --until, it goes on with what is there.
"""

import dataclasses

from pohp_neurd.experiment import catch_ablation_config, command_line, configs, run_folder, schema

_WHAT = "What is run"
_DEFAULT = catch_ablation_config.Config()


@dataclasses.dataclass(frozen=True)
class Config:
    """The flags of the study."""

    setting: tuple[str, ...] = schema.field(
        (),
        "A learner and its changed options, as spg,epsilon=0.01; repeat it for several.",
        _WHAT,
        repeated=True,
        shown="one option at a time",
    )
    seeds: int = schema.field(_DEFAULT.seeds, "Seeds of each setting.", _WHAT)
    until: int = schema.field(
        _DEFAULT.until, f"The last mark: {', '.join(map(str, catch_ablation_config.MARKS))}.", _WHAT
    )
    width: int = schema.field(_DEFAULT.width, "Units of each hidden layer.", _WHAT)
    output_dir: str = schema.field("runs/catch_ablation", "The folder of the study.", "Where")


command_line.define(Config)
command_line.define(configs.Cores)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into the study, and draws it."""
    given = command_line.config(Config)
    settings = given.setting or catch_ablation_config.SETTINGS
    config = catch_ablation_config.Config(settings, given.seeds, given.until, given.width)
    run_folder.check_writable(given.output_dir)
    from pohp_neurd.experiment import catch_ablation, lanes
    from pohp_neurd.experiment.plot import ablation

    num_cores = lanes.cores(command_line.config(configs.Cores).cores)
    lanes.use_one_core()
    rows = catch_ablation.run(given.output_dir, config, num_cores=num_cores)
    ablation.draw(f"{given.output_dir}/ablation.png", rows)


if __name__ == "__main__":
    command_line.run(main, __doc__)
