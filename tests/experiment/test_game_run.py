"""Runs of self-play: their folder, resumption to the bit, damage, divergence, and run."""

import dataclasses
import json
import os
import signal
import threading

import jax
import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import evaluate_bots

from pohp_neurd import checkpoint, checks, exact, openspiel
from pohp_neurd.experiment import game, game_config, run
from pohp_neurd.openspiel import saved
from pohp_neurd.results import records, table

SMALL = game_config.Config(
    game="kuhn_poker", episodes=64 * 40, batch_size=64, eval_every=64 * 8, checkpoint_every=2
)
NEURAL = dataclasses.replace(SMALL, policy="neural", hidden_layers=(8,))


def leaves_of(folder, config):
    _, task = game.build(config)
    restored = checkpoint.restore(folder / "checkpoints", task.kept(task.begin()))
    return restored.step, jax.tree.leaves(restored.tree)


def without_seconds(folder):
    return [
        {k: v for k, v in row.items() if k != "seconds"} for row in records.read_csv(folder / "metrics.csv")
    ]


def assert_same_run(one, other, config):
    assert without_seconds(one) == without_seconds(other)
    (step, mine), (also, theirs) = leaves_of(one, config), leaves_of(other, config)
    assert step == also
    for a, b in zip(mine, theirs, strict=True):
        is_key = jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key)
        np.testing.assert_array_equal(*(map(jax.random.key_data, (a, b)) if is_key else (a, b)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder / "run", game.run(SMALL, folder / "run")


def test_a_run_leaves_its_folder(whole):
    folder, figures = whole
    rows = records.read_csv(folder / "metrics.csv")
    figures_of_updates = ["entropy", "mean_weight", "max_weight", "capped", "advantage_scale"]
    named = ["updates", "episodes", "steps", "seconds", "nash_conv", "nash_conv_average"]
    assert list(rows[0]) == named + figures_of_updates
    assert [int(row["updates"]) for row in rows] == [8, 16, 24, 32, 40]
    assert figures["episodes"] == int(rows[-1]["episodes"]) == 64 * 40
    assert 2 * 64 * 40 <= figures["steps"] <= 3 * 64 * 40
    assert figures["nash_conv"] == float(rows[-1]["nash_conv"])
    assert (folder / "curve.png").stat().st_size > 1_000
    assert checkpoint.steps(folder / "checkpoints") == [32, 40]
    config = json.loads((folder / "config.json").read_text())
    assert None not in {config[name] for name in ("step_size", "exploration", "eval_every")}
    policies = saved.load(folder)
    assert policies.about == saved.About("kuhn_poker", "tabular")
    tree = openspiel.compile_game("kuhn_poker")
    judged = [float(row[name]) for row in rows for name in ("nash_conv", "nash_conv_average")]
    assert figures["nash_conv_best"] == min(judged)
    names = {"current": "nash_conv", "average": "nash_conv_average", "best": "nash_conv_best"}
    assert tuple(names) == saved.WHICH
    for which, name in names.items():
        found = exact.nash_conv(tree, saved.table(policies, tree, which))
        assert found == pytest.approx(figures[name], abs=1e-6)


def updates_of(state):
    live = hasattr(state.loop, "decisions")
    return int((state.loop.learner if live else state.loop).updates)


class Stop:
    """A task that asks for a signal after some updates."""

    def __init__(self, task, at, number):
        self.task, self.at, self.number = task, at, number

    def advance(self, state, updates):
        state = self.task.advance(state, updates)
        if self.at is not None and updates_of(state) >= self.at:
            self.at = None
            os.kill(os.getpid(), self.number)
        return state


def run_until(monkeypatch, config, folder, at, number, **options):
    build = game.build

    def stopping(config):
        config, task = build(config)
        return config, task._replace(advance=Stop(task, at, number).advance)

    with monkeypatch.context() as patch:
        patch.setattr(game, "build", stopping)
        with pytest.raises(run.Interrupted) as stop:
            game.run(config, folder, **options)
    return stop.value


@pytest.mark.thorough
@pytest.mark.parametrize("config", [SMALL, NEURAL], ids=["tabular", "neural"])
def test_signals_save_and_a_resumed_run_is_the_same_run(config, whole, tmp_path, monkeypatch):
    if config is SMALL:
        expected = whole[0]
    else:
        expected = tmp_path / "whole"
        game.run(config, expected)
    folder = tmp_path / "run"
    stop = run_until(monkeypatch, config, folder, 3, signal.SIGTERM)
    assert stop.exit_code == 143
    assert str(stop).startswith("Stopped by SIGTERM after ")
    assert "--resume" in str(stop)
    assert run_until(monkeypatch, config, folder, 21, signal.SIGINT, resume=True).exit_code == 130
    game.run(config, folder, resume=True)
    assert_same_run(folder, expected, config)
    # A finished run that is resumed has nothing left to do.
    game.run(config, folder, resume=True)
    assert_same_run(folder, expected, config)


def test_a_damaged_checkpoint_is_named_and_the_one_before_used(whole, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "run"
    run_until(monkeypatch, SMALL, folder, 35, signal.SIGTERM)
    newest = max((folder / "checkpoints").glob("*.npz"))
    newest.write_bytes(newest.read_bytes()[:-20])
    game.run(SMALL, folder, resume=True)
    assert f"{newest.name} does not match its checksum" in capsys.readouterr().err
    assert_same_run(folder, whole[0], SMALL)


def test_divergence_stops_with_the_update_and_keeps_the_last_good_checkpoint(tmp_path, monkeypatch):
    build = game.build

    def exploding(config):
        config, task = build(config)

        def advance(state, updates):
            state = task.advance(state, updates)
            if updates_of(state) < 20:
                return state
            return state._replace(loop=state.loop._replace(diverged=np.int32(19)))

        return config, task._replace(advance=advance)

    monkeypatch.setattr(game, "build", exploding)
    with pytest.raises(
        checks.Diverged, match="not finite after update 20; the checkpoint of update 16 is good"
    ):
        game.run(SMALL, tmp_path / "run")
    assert checkpoint.steps(tmp_path / "run" / "checkpoints") == [16]


@pytest.mark.thorough
def test_a_step_size_without_bounds_diverges_for_real(tmp_path):
    """A learning rate of 1e38 overflows float32 at once."""
    config = dataclasses.replace(NEURAL, step_size=1e38, optimizer="sgd", magnet_strength=0.0)
    with pytest.raises(checks.Diverged, match=r"not finite after update [1-4];"):
        game.run(config, tmp_path / "run")


def test_runs_are_not_overwritten_or_resumed_with_other_settings(whole):
    folder, _ = whole
    with pytest.raises(ValueError, match="already holds a run"):
        game.run(SMALL, folder)
    with pytest.raises(ValueError, match=r"step_size was .* and is now 3\.0"):
        game.run(dataclasses.replace(SMALL, step_size=3.0), folder, resume=True)


def test_signals_are_left_alone_outside_the_main_thread(tmp_path):
    found = []
    work = threading.Thread(target=lambda: found.append(game.run(SMALL, tmp_path / "run")))
    work.start()
    work.join()
    assert found[0]["episodes"] == 64 * 40


def test_event_files(tmp_path):
    game.run(SMALL, tmp_path / "run", tensorboard=True)
    (file,) = (tmp_path / "run" / "events").iterdir()
    assert b"nash_conv_average" in file.read_bytes()


@pytest.mark.thorough
def test_separate_networks_and_alternating_updates_run(tmp_path):
    config = dataclasses.replace(NEURAL, shared=False, alternating=True, learner="spg", episodes=64 * 8)
    game.run(config, tmp_path / "run")
    policies = saved.load(tmp_path / "run")
    assert policies.about.num_networks == 2
    tree = openspiel.compile_game("kuhn_poker")
    rows = table.read(tmp_path / "run" / "metrics.csv")
    found = exact.nash_conv(tree, saved.table(policies, tree, "current"))
    assert found == pytest.approx(rows[-1]["nash_conv"], abs=1e-5)
    for row in rows:
        assert 0 < row["entropy"] < 0.7
        assert (row["mean_weight"], row["max_weight"], row["capped"]) == (1, 1, 1)  # SPG corrects nothing
        assert row["advantage_scale"] > 0


def test_expected_updates_are_counted_in_iterations(tmp_path):
    config = game_config.Config(game="kuhn_poker", update="expected", iterations=200, eval_every=100)
    figures = game.run(config, tmp_path / "run")
    assert (figures["updates"], figures["episodes"], figures["steps"]) == (200, 0, 0)
    assert figures["nash_conv_average"] < 0.3  # 0.917 of uniform play


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_regret_minimizers_resume_to_the_bit(precision, tmp_path, monkeypatch):
    config = game_config.Config(
        game="kuhn_poker", update="expected", learner="predictive_rm_plus", precision=precision,
        iterations=600, eval_every=100, checkpoint_every=1,
    )  # fmt: skip
    figures = game.run(config, tmp_path / "whole")
    run_until(monkeypatch, config, tmp_path / "run", 300, signal.SIGTERM)
    game.run(config, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole", config)
    # Known of this learner in Kuhn poker: below 1e-5 after 300 iterations already.
    assert figures["nash_conv_average"] < 1e-5
    assert figures["entropy"] is None


@pytest.mark.thorough
@pytest.mark.parametrize("flags", [{}, {"learner": "rm_plus"}, {"policy": "neural", "hidden_layers": (8,)}])
def test_values_of_histories_resume_to_the_bit(flags, tmp_path, monkeypatch):
    config = dataclasses.replace(SMALL, baseline_of="history", checkpoint_every=1, **flags)
    game.run(config, tmp_path / "whole")
    run_until(monkeypatch, config, tmp_path / "run", 13, signal.SIGTERM)
    game.run(config, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole", config)
    # The values are part of what was compared: every history's visits, of all episodes at the root.
    _, task = game.build(config)
    last = checkpoint.restore(tmp_path / "run" / "checkpoints", task.kept(task.begin())).tree
    assert last.loop.values.visits[0] == config.episodes


@pytest.mark.thorough
def test_a_live_run_resumes_to_the_bit(tmp_path, monkeypatch):
    config = game_config.Config(
        game="kuhn_poker", policy="neural", play="live", hidden_layers=(8,), episodes=6 * 32, batch_size=32,
        eval_every=64, checkpoint_every=1,
    )  # fmt: skip
    game.run(config, tmp_path / "whole")
    run_until(monkeypatch, config, tmp_path / "run", 3, signal.SIGTERM)
    figures = game.run(config, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole", config)
    assert figures["nash_conv"] is None
    assert np.isfinite(figures["return_against_uniform"])
    for row in table.read(tmp_path / "run" / "metrics.csv"):
        assert 0 < row["entropy"] < 0.7
        assert 1 <= row["mean_weight"] <= row["max_weight"] <= 10  # η = 0.1
        assert 0 <= row["capped"] <= 1
        assert row["advantage_scale"] > 0
    assert (tmp_path / "run" / "curve.png").is_file()


def test_a_runs_policy_plays_as_a_bot(whole):
    """100 games between the run's bot and a random one, in OpenSpiel's own loop: returns add up to zero."""
    game = pyspiel.load_game("kuhn_poker")
    rng = np.random.default_rng(0)
    bots = [openspiel.bot(str(whole[0]), 0), pyspiel.make_uniform_random_bot(1, 7)]
    for _ in range(100):
        returns = evaluate_bots.evaluate_bots(game.new_initial_state(), bots, rng)
        assert sum(returns) == 0
        assert abs(returns[0]) in (1, 2)


def test_a_closed_terminal_saves_as_sigterm_does(whole, tmp_path, monkeypatch):
    stop = run_until(monkeypatch, SMALL, tmp_path / "run", 3, signal.SIGHUP)
    assert stop.exit_code == 129
    assert str(stop).startswith("Stopped by SIGHUP after ")
    game.run(SMALL, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", whole[0], SMALL)


@pytest.mark.thorough
@pytest.mark.parametrize("optimizer", ["adam", "adam_without_momentum"])
def test_networks_that_move_in_turn_cool_by_the_clock_of_the_run(optimizer):
    """From one state, a run that cools moves 1 − t / T times as far as one that does not, at any update t."""
    hot = dataclasses.replace(
        NEURAL,
        **{"shared": False, "alternating": True, "optimizer": optimizer, "magnet_strength": 0.0},
        **{"episodes": 64 * 8, "cooling": 0.0, "step_size_decay": 0.0, "step_size": 0.01},
    )
    hot, warm = game.build(hot)
    _, cool = game.build(dataclasses.replace(hot, cooling=1.0))
    state = warm.begin()
    for update in range(5):
        following, cooled = warm.advance(state, 1), cool.advance(state, 1)
        start, far, near = (
            np.asarray(one.loop.learner.parameters[update % 2]["actor"]["w"])
            for one in (state, following, cooled)
        )
        moved = np.abs(far - start) > 1e-5
        assert moved.any()
        np.testing.assert_allclose(near[moved], (start + (1 - update / 8) * (far - start))[moved], atol=1e-6)
        still = one_of(state, following, 1 - update % 2)
        assert all(np.array_equal(old, new) for old, new in still)
        state = following


def one_of(state, following, seat):
    leaves = (jax.tree.leaves(one.loop.learner.parameters[seat]) for one in (state, following))
    return list(zip(*leaves, strict=True))


@pytest.mark.thorough
def test_alternating_reaches_live_play():
    """The second update is the second seat's, which decides once in every episode of Kuhn poker."""
    config = dataclasses.replace(NEURAL, play="live", alternating=True, batch_size=16, episodes=32)
    _, task = game.build(config)
    first = task.advance(task.begin(), 1)
    both = task.advance(first, 1)
    assert both.loop.decisions - first.loop.decisions == 16
