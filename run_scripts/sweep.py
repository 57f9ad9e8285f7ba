r"""Runs a training script over a grid of flags, on the cores of this machine or on a Ray cluster.

    python run_scripts/sweep.py --script=train_single_agent --sweep=environment=catch \
        --sweep=exploration=0,0.01,0.1,1 --sweep=seed=0:20 --output_dir=runs/catch_sweep
    python run_scripts/sweep.py --script=train_game --sweep=game=kuhn_poker,leduc_poker \
        --sweep=exploration=0,0.1,1 --sweep=seed=0:10 --output_dir=runs/games --executor=ray

Every value of each flag is run with every value of the others. The same command again goes on where it was
killed and runs nothing twice. Writes results.csv (a row for each setting), curves.csv (their metrics),
failures.csv if there are any, and runs/; ends with one line of JSON, and exit code 1 if a setting failed.
"""

import dataclasses
import json
import sys

from pohp_neurd.experiment import command_line, configs, executor, grid, schema, sweep

_SWEPT = "What is swept"
_FIGURES = ("nash_conv_average", "nash_conv", "return_against_uniform", "mean_return", "total_reward")


@dataclasses.dataclass(frozen=True)
class Config:
    """Which settings, and where their folder is."""

    script: str | None = schema.field(None, f"The training script: {', '.join(grid.JOBS)}.", _SWEPT)
    sweep: tuple[str, ...] = schema.field(
        (),
        "A flag and its values, name=value,value,... or name=first:end; once for each flag.",
        _SWEPT,
        repeated=True,
        shown="none",
    )
    grid: str | None = schema.field(
        None, 'Instead, a JSON file: {"script": name, "sweep": {flag: [values]}}, or a list of such.', _SWEPT
    )
    output_dir: str = schema.field("runs/sweep", "The folder of the sweep.", _SWEPT)


def grids(config: Config) -> list[grid.Grid]:
    """The grids that the flags name."""
    if config.grid and (config.script or config.sweep):
        raise ValueError("grid says what is swept: it excludes script and sweep.")
    if config.grid:
        return grid.read(config.grid)
    if not config.script:
        raise ValueError(f"script must be given: one of {', '.join(grid.JOBS)}.")
    return [grid.parse(config.script, config.sweep)]


def next_command(finished: list[sweep.Finished], results: str) -> str:
    """How the statistics of a sweep are had; nothing where it has no figure to summarise."""
    figures = next((each.figures for each in finished if each.figures), {})
    value = next((name for name in _FIGURES if figures.get(name) is not None), None)
    if value is None:
        return ""
    values = {name: {str(each.flags.get(name)) for each in finished} for name in finished[0].flags}
    varied = [name for name, found in values.items() if len(found) > 1 and name != "seed"]
    by = ",".join(varied or list(values)[:1])
    return f" Next: `pohp-neurd summarise --input={results} --by={by} --value={value}`."


command_line.define(Config)
command_line.define(configs.Executor)


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into settings and runs them."""
    config, where = command_line.config(Config), command_line.config(configs.Executor)
    settings = grid.settings(grids(config))
    execute = executor.build(where.executor, cores=where.cores, address=where.address)
    command_line.opening(
        f"Running {len(settings):,} settings in {config.output_dir}: progress counts those that are finished"
    )
    try:
        finished = sweep.run(
            *(settings, config.output_dir, execute), retry_failed=where.retry_failed, known_from=where.known
        )
    except KeyboardInterrupt:
        print(f"Stopped; the same command goes on in {config.output_dir}.", file=sys.stderr)
        sys.exit(130)
    for line in sweep.failures(finished):
        print(f"Failed: {line}", file=sys.stderr)
    report = sweep.report(finished, config.output_dir)
    results = report["results"]
    command_line.closing(f"Tables: {results}, curves.csv beside it.{next_command(finished, results)}")
    print(json.dumps(report))
    sys.exit(1 if report["failed"] else 0)


if __name__ == "__main__":
    command_line.run(main, __doc__)
