"""NashConv of the current policy of expected NeuRD over updates, for a step size and a speed of the magnet.

    python studies/self_play/schedules.py leduc_poker 32000 4,0.08 4,0.16

The magnet's strength at update t is 0.05 / (1 + t / 100), its speed the second number over the same.
"""

import sys
import time

from pohp_neurd import directions, openspiel


def run(game: str, updates: int, step_size: float, speed: float) -> str:
    """One line: the settings, milliseconds of an update, NashConv after each eighth of the updates."""
    solver = openspiel.NeuRDCIXSolver(
        game,
        step_size=step_size,
        magnet_strength=directions.decaying(0.05, power=1.0, start=100.0),
        magnet_speed=directions.decaying(speed, power=1.0, start=100.0),
    )
    solver.evaluate_and_update_policy()
    begun, found = time.process_time(), []
    for _ in range(8):
        solver.evaluate_and_update_policy(updates // 8)
        found.append(f"{solver.nash_conv('current'):.1e}")
    each = 1e3 * (time.process_time() - begun) / updates
    setting = f"{game}, step size {step_size:g}, speed {speed:g}, {updates:,} updates of {each:.3f} ms"
    return f"{setting}: {', '.join(found)}"


if __name__ == "__main__":
    for setting in sys.argv[3:]:
        print(run(sys.argv[1], int(sys.argv[2]), *map(float, setting.split(","))), flush=True)
