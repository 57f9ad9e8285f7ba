"""Settings of a sweep that differ in their seed alone are different runs."""

import csv
import itertools

import pytest

from pohp_neurd.experiment import grid

TINY = {
    "bandit": ["estimators=cix", "horizon=64", "seeds=5", "arms=3"],
    "train_game": ["game=kuhn_poker", "episodes=256", "batch_size=64", "eval_every=2"],
    "train_single_agent": ["num_steps=400", "interval=400", "width=4", "learning_rate=0.001"],
}


@pytest.mark.thorough
@pytest.mark.parametrize("script", TINY)
def test_every_seed_is_a_run_of_its_own(script, tmp_path):
    assert set(TINY) == set(grid.JOBS)
    settings = grid.settings([grid.parse(script, [*TINY[script], "seed=0:3"])])
    assert [setting.flags["seed"] for setting in settings] == [0, 1, 2]
    found = []
    for setting in settings:
        outcome = grid.attempt(script, setting.flags, tmp_path / setting.id)
        assert outcome.figures is not None, outcome.sentence
        with (tmp_path / setting.id / "metrics.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        # Counts may agree by accident; of what is measured in real numbers, not all can.
        found.append([{name: row[name] for name in row.keys() - {"seconds", "seed"}} for row in rows])
    for (one, first), (other, second) in itertools.combinations(enumerate(found), 2):
        assert first != second, f"seeds {one} and {other} of {script} came to the same: {first}"
