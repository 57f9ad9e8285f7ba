r"""Runs a training script over a grid of flags, on the cores of this machine or on a Ray cluster.

    python run_scripts/sweep.py --script=train_single_agent --sweep=environment=catch \
        --sweep=exploration=0,0.01,0.1,1 --sweep=seed=0:20 --output_dir=runs/catch_sweep
    python run_scripts/sweep.py --script=train_game --sweep=game=kuhn_poker,leduc_poker \
        --sweep=exploration=0,0.1,1 --sweep=seed=0:10 --output_dir=runs/games --executor=ray

Every value of each flag is run with every value of the others. The same command again goes on where it was
killed and runs nothing twice. Writes results.csv (a row for each setting), curves.csv (their metrics),
failures.csv if there are any, and runs/; ends with one line of JSON, and exit code 1 if a setting failed.
"""

import json
import sys

import command_line
from absl import flags

from pohp_neurd.experiment import executor, grid, jobs, sweep

TOPICS = {
    "What is swept": {
        "script": f"The training script: {', '.join(jobs.JOBS)}.",
        "sweep": "A flag and its values, name=value,value,... or name=first:end; once for each flag.",
        "grid": 'Instead, a JSON file: {"script": name, "sweep": {flag: [values]}}, or a list of such.',
    },
    "The sweep": {
        "output_dir": "The folder of the sweep.",
        "retry_failed": command_line.RETRY_FAILED,
        **command_line.EXECUTOR,
    },
}
_DEFAULTS = {"cores": "all", "sweep": "none"}
_SCRIPT = flags.DEFINE_string("script", None, TOPICS["What is swept"]["script"])
_SWEEP = flags.DEFINE_multi_string("sweep", [], TOPICS["What is swept"]["sweep"])
_GRID = flags.DEFINE_string("grid", None, TOPICS["What is swept"]["grid"])
_OUTPUT = flags.DEFINE_string("output_dir", "runs/sweep", TOPICS["The sweep"]["output_dir"])
_RETRY = flags.DEFINE_bool("retry_failed", False, command_line.RETRY_FAILED)
command_line.define_executor()


@command_line.told
def main(_: list[str]) -> None:
    """Turns flags into settings and runs them."""
    try:
        finished = sweep.run(
            grid.settings(_grids()),
            _OUTPUT.value,
            executor.build(**command_line.executor()),
            retry_failed=_RETRY.value,
        )
    except KeyboardInterrupt:
        print(f"Stopped; the same command goes on in {_OUTPUT.value}.", file=sys.stderr)
        sys.exit(130)
    for line in sweep.failures(finished):
        print(f"Failed: {line}", file=sys.stderr)
    report = sweep.report(finished, _OUTPUT.value)
    print(json.dumps(report))
    sys.exit(1 if report["failed"] else 0)


def _grids() -> list[grid.Grid]:
    if _GRID.value and (_SCRIPT.value or _SWEEP.value):
        raise ValueError("grid says what is swept: it excludes script and sweep.")
    if _GRID.value:
        return grid.read(_GRID.value)
    if not _SCRIPT.value:
        raise ValueError(f"script must be given: one of {', '.join(jobs.JOBS)}.")
    return [grid.parse(_SCRIPT.value, _SWEEP.value)]


if __name__ == "__main__":
    command_line.run(main, __doc__, TOPICS, _DEFAULTS)
