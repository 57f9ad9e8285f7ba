"""The single-agent experiment: its rows, its resume to the bit, its independence of devices."""

import dataclasses
import json
import os
import shutil
import signal

import numpy as np
import pytest

from pohp_neurd import checkpoint, checks
from pohp_neurd.experiment import executor, run, single_agent
from pohp_neurd.online import lifetimes
from pohp_neurd.results import table

CONFIG = single_agent.Config(
    explorations=(0.0, 1.0),
    learning_rates=(0.001,),
    seeds=2,
    num_steps=240,
    interval=40,
    checkpoint_every=2,
    width=8,
)


def timeless(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def newest(folder, config):
    """The arrays of the newest checkpoint, by its own description."""
    step = checkpoint.steps(folder / "checkpoints")[-1]
    with np.load(folder / "checkpoints" / f"step_{step:09d}.npz") as file:
        return step, [file[name] for name in sorted(file.files)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return folder, single_agent.run(CONFIG, folder)


def test_a_run_leaves_its_files(finished):
    folder, figures = finished
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "metrics.csv",
        "checkpoints",
        "curve.png",
    }
    rows = table.read(folder / "metrics.csv")
    assert len(rows) == 6 * 4
    assert list(rows[0]) == list(single_agent.COLUMNS)
    for setting in CONFIG.settings():
        here = [r for r in rows if (r["learning_rate"], r["exploration"], r["seed"]) == setting]
        assert [row["steps"] for row in here] == [40, 80, 120, 160, 200, 240]
        assert [row["updates"] for row in here] == [8, 48, 88, 128, 168, 208]
        assert here[-1]["total_reward"] == sum(row["reward"] for row in here) <= 0
    assert figures["steps"] == 240
    assert [s["exploration"] for s in figures["settings"]] == [0.0, 1.0]
    totals = [row["total_reward"] for row in rows if row["steps"] == 240 and row["exploration"] == 1.0]
    assert figures["settings"][1]["total_reward_mean"] == np.mean(totals)
    json.dumps(figures)


def test_rows_of_rollouts_are_means_over_their_updates(tmp_path):
    config = dataclasses.replace(
        CONFIG,
        explorations=(1.0,),
        learning_rates=(1e-9,),
        seeds=1,
        updated="rollout",
        num_steps=640,
        interval=320,
    )
    single_agent.run(config, tmp_path / "run")
    first, second = table.read(tmp_path / "run" / "metrics.csv")
    # The update of step 320 comes with step 321.
    assert (first["updates"], second["updates"]) == (9, 19)
    # A network that hardly moves plays much as it began: near uniform, at all of an interval's updates.
    assert second["entropy"] == pytest.approx(np.log(3), rel=0.1)
    assert first["entropy"] == pytest.approx(0.9 * second["entropy"], rel=0.1)


def test_a_resumed_run_is_the_same_to_the_bit(finished, tmp_path):
    folder = tmp_path / "cut"
    single_agent.run(CONFIG, folder, stop_after=3)
    assert checkpoint.steps(folder / "checkpoints") == [80, 120]
    # Rows that were written after the newest whole checkpoint must not appear twice.
    newest_file = folder / "checkpoints" / "step_000000120.npz"
    newest_file.write_bytes(newest_file.read_bytes()[:100])
    single_agent.run(CONFIG, folder, resume=True)
    whole, cut = (table.read(path / "metrics.csv") for path in (finished[0], folder))
    assert timeless(whole) == timeless(cut)
    (step, left), (other, right) = newest(finished[0], CONFIG), newest(folder, CONFIG)
    assert step == other == 240
    for one, two in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_finished_run_can_be_resumed_to_no_effect(finished):
    folder, figures = finished
    again = single_agent.run(CONFIG, folder, resume=True)
    assert again == figures


@pytest.mark.slow
def test_seeds_and_settings_do_not_depend_on_what_runs_beside_them(finished, tmp_path):
    config = dataclasses.replace(CONFIG, explorations=(1.0,), seeds=1, first_seed=1)
    single_agent.run(config, tmp_path / "alone")
    alone = table.read(tmp_path / "alone" / "metrics.csv")
    beside = [
        row
        for row in table.read(finished[0] / "metrics.csv")
        if (row["exploration"], row["seed"]) == (1.0, 1)
    ]
    assert timeless(alone) == timeless(beside)


@pytest.mark.slow
def test_cores_change_nothing(finished, tmp_path):
    """Two processes of two runs each, where one process had all four."""
    single_agent.run(CONFIG, tmp_path / "two", num_cores=2)
    one, two = (table.read(path / "metrics.csv") for path in (finished[0], tmp_path / "two"))
    assert timeless(one) == timeless(two)
    for left, right in zip(newest(finished[0], CONFIG)[1], newest(tmp_path / "two", CONFIG)[1], strict=True):
        np.testing.assert_array_equal(left, right)


def test_dealing_and_gathering_are_inverse():
    tree = {"a": np.arange(10).reshape(5, 2), "b": np.arange(5)}
    dealt = single_agent.deal(tree, 2)
    assert [len(lane["b"]) for lane in dealt] == [3, 2]
    np.testing.assert_array_equal(single_agent.gather(dealt)["a"], tree["a"])


def test_another_configuration_is_not_resumed(finished):
    other = dataclasses.replace(CONFIG, learning_rates=(0.002,))
    with pytest.raises(ValueError, match=r"learning_rates was \[0.001\] and is now \[0.002\]"):
        single_agent.run(other, finished[0], resume=True)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("environment", "pong", "environment must be one of catch, cart_pole, but is 'pong'."),
        ("learner", "ppo", "learner must be one of spg, neurd, neurd_cix, but is 'ppo'."),
        ("explorations", (1.5,), r"exploration must lie in \[0, 1\], but is 1.5."),
        ("explorations", (), "explorations must hold at least one number, but is empty."),
        ("learning_rates", (0.1, 0.1), "learning_rates must differ, but are 0.1, 0.1."),
        ("learning_rates", (0.0,), "learning_rate must be a finite number above 0, but is 0."),
        ("seeds", 0, "seeds must be at least 1, but is 0."),
        ("num_steps", 1_500, "num_steps must be a multiple of interval, but 1500 is none of 1000."),
        ("horizon", 0, "horizon must be at least 1, but is 0."),
        ("swap_every", 0, "swap_every must be at least 1, but is 0."),
        ("epsilon", -1.0, "epsilon must be a finite number above 0, but is -1."),
        ("first_seed", -1, "first_seed must be a whole number from 0 to 2147483647, but is -1."),
    ],
)
def test_wrong_configurations_are_refused(field, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        single_agent.Config(**{field: value})


def test_only_catch_swaps_its_actions():
    with pytest.raises(ValueError, match="swap_every is for environment=catch"):
        single_agent.Config(environment="cart_pole", swap_every=10)


def test_a_run_that_diverges_says_so_and_keeps_its_last_checkpoint(tmp_path):
    """A learning rate beyond reason, in a wider interval than the run needs to leave the numbers."""
    config = dataclasses.replace(CONFIG, learning_rates=(1e30,))
    with pytest.raises(checks.Diverged, match=r"a value of seed 0 at learning rate 1e\+30 .* was not finite"):
        single_agent.run(config, tmp_path / "wild")
    assert all(step < 240 for step in checkpoint.steps(tmp_path / "wild" / "checkpoints"))


def test_seeds_rates_and_explorations_compile_nothing_new(finished, tmp_path, count_compilations):
    other = dataclasses.replace(CONFIG, explorations=(0.3, 0.5), learning_rates=(0.01,), first_seed=5)
    with count_compilations() as seen:
        single_agent.run(other, tmp_path / "other")
    assert seen.count == 0


def test_cores_are_checked():
    assert executor.available(None) >= 1
    with pytest.raises(ValueError, match="cores must be between 1 and"):
        executor.available(0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_and_the_run_goes_on_to_the_bit(number, finished, tmp_path, monkeypatch):
    """It comes in the third interval, and checkpoints are due after every second."""
    advanced, calls = single_agent.advance, []

    def stopping(config, lane):
        calls.append(lane)
        if len(calls) == 1 + 3:  # the first call begins the lives
            os.kill(os.getpid(), number)
        return advanced(config, lane)

    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(single_agent, "advance", stopping)
        with pytest.raises(run.Interrupted, match=r"after 120 steps; go on with --resume in") as stop:
            single_agent.run(CONFIG, folder)
    assert stop.value.exit_code == 128 + number
    assert checkpoint.steps(folder / "checkpoints") == [80, 120]
    single_agent.run(CONFIG, folder, resume=True)
    whole, cut = (table.read(path / "metrics.csv") for path in (finished[0], folder))
    assert timeless(whole) == timeless(cut)


def test_rows_and_checkpoints_of_another_run_are_refused(finished, tmp_path):
    other = dataclasses.replace(CONFIG, first_seed=7)
    single_agent.run(other, tmp_path / "other", stop_after=2)
    for part, sentence in (
        ("checkpoints", "is of another run"),
        ("metrics.csv", "must have 4 rows of each of 6 evaluations"),
    ):
        place = tmp_path / part / "run"
        shutil.copytree(finished[0], place)
        if part == "checkpoints":
            shutil.rmtree(place / part)
            shutil.copytree(tmp_path / "other" / part, place / part)
        else:
            shutil.copy(tmp_path / "other" / part, place / part)
        with pytest.raises(ValueError, match=sentence):
            single_agent.run(CONFIG, place, resume=True)


def test_a_frozen_optimizer_is_a_divergence():
    """All that the run said is finite; its optimizer, in the third of four runs, is not."""
    numbers = np.zeros(len(CONFIG.settings()))
    diverged = np.arange(len(numbers)) == 2
    totals = lifetimes.Totals(numbers, numbers.astype(int), numbers, numbers, diverged)
    rate, exploration, seed = CONFIG.settings()[2]
    found = f"seed {seed} at learning rate {rate:g} and exploration {exploration:g}"
    state = single_agent.State([], 3, totals)
    loss = single_agent.diverged(CONFIG, state)
    assert loss == (f"a value of {found}", "120 steps", "learning_rate")
    fine = state._replace(totals=totals._replace(diverged=diverged & False))
    assert single_agent.diverged(CONFIG, fine) is None
