"""Throughput of the local executor on a sweep in catch: a worker for each core, beside one worker.

    python benchmarks/sweep.py

Both sides run the same settings with the paper's network, start their own workers and compile; by the clock.
"""

import pathlib
import tempfile
import time

from pohp_neurd.experiment import executor, grid, sweep

SETTINGS = 8
STEPS = 300_000


def seconds(cores: int) -> float:
    texts = [f"num_steps={STEPS}", "interval=5000", "common_mode=dropped", f"seed=0:{SETTINGS}"]
    settings = grid.settings([grid.parse("train_single_agent", texts)])
    with tempfile.TemporaryDirectory() as place:
        begun = time.perf_counter()
        finished = sweep.run(settings, pathlib.Path(place) / "sweep", executor.build("local", cores=cores))
        assert not sweep.failures(finished)
        return time.perf_counter() - begun


def main() -> None:
    cores = min(2, executor.available(None))
    one, many = seconds(1), seconds(cores)
    print(f"catch, {SETTINGS} settings of {STEPS:,} steps, set-up and compilation included")
    print(f"  one worker     {one:6.1f} s  ({SETTINGS * STEPS / one:,.0f} steps/s)")
    print(f"  {cores} workers      {many:6.1f} s  ({SETTINGS * STEPS / many:,.0f} steps/s)")
    print(f"  ratio {one / many:.2f}x (bar 1.7x)")


if __name__ == "__main__":
    main()
