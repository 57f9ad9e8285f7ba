"""Blocks that others play: handed out, played again where a worker dies, and the same to the bit."""

import contextlib
import dataclasses
import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
import types

import jax
import numpy as np
import pytest

from pohp_neurd.experiment import (
    actors,
    executor,
    game,
    game_config,
    live,
    local_actors,
    ray_actors,
)
from pohp_neurd.experiment import run as run_loop
from pohp_neurd.openspiel.live import play, train
from pohp_neurd.results import records

CONFIG = game_config.Config(
    game="kuhn_poker",
    policy="neural",
    play="live",
    hidden_layers=(8,),
    episodes=20 * 64,
    batch_size=64,
    block_size=16,
    eval_every=5 * 64,
)
SCRIPT = str(pathlib.Path(__file__).resolve().parents[2] / "run_scripts" / "train_game.py")
TRAINER = types.SimpleNamespace(blocks=5)


class Hand:
    """A worker that answers with its job, or dies where `plan` says so."""

    def __init__(self, plan, log):
        self.plan, self.log, self.jobs = plan, log, []

    def take(self, job, order):
        self.log.append((job, order))
        self.jobs.append(job)
        assert len(self.jobs) <= 2

    def answer(self):
        job = self.jobs.pop(0)
        if self.plan.get(job, 0) > 0:
            self.plan[job] -= 1
            raise actors.Died("by signal 9")
        return job

    def end(self):
        self.jobs.clear()


def crew_of(count, plan=None, rng=None, own=None):
    log, hired = [], []

    def hire():
        hired.append(Hand(plan or {}, log))
        return hired[-1]

    def ready(busy, patient):
        assert busy or not patient, "this waits for ever"
        if rng and not patient and rng.random() < 0.5:
            return []
        return [busy[rng.randrange(len(busy))]] if rng and busy else busy[-1:]

    return actors.Crew(hire, count, ready, lambda order: order, own), log, hired


@pytest.mark.parametrize("count", [1, 2, 7])
def test_blocks_come_in_order_whoever_answers_first(count):
    made, log, _ = crew_of(count, rng=random.Random(0))
    for update in range(3):
        found = made.collect(TRAINER, f"known {update}", [1], update)
        assert found == [actors.Job(update, block) for block in range(5)]
    assert len(log) == 15
    assert all(order.known == f"known {job.update}" for job, order in log)
    assert made.status()["waiting"].endswith("%")


def test_a_block_whose_worker_dies_is_played_again_by_another():
    lost = actors.Job(0, 2)
    made, log, hired = crew_of(2, {lost: executor.TRIES - 1})
    assert made.collect(TRAINER, "known", [1], 0) == [actors.Job(0, block) for block in range(5)]
    assert len(hired) == 2 + executor.TRIES - 1
    assert [job for job, _ in log].count(lost) == executor.TRIES
    assert len(log) == 5 + executor.TRIES - 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [1, 3])
def test_this_process_plays_as_well(count, seed):
    """Whoever answers first; but nothing under which a worker has died, and nothing twice."""
    lost, mine = [actors.Job(0, 0), actors.Job(1, 0), actors.Job(2, 3)], []

    class Own:
        def play(self, job, order):
            assert order.known == f"known {job.update}"
            assert not made._tries[job]
            mine.append(job)
            return job

        def begin(self, job, order):
            assert job == actors.Job(mine[-1].update + 1, mine[-1].block)

    made, log, hired = crew_of(count, dict.fromkeys(lost, 1), random.Random(seed), Own())
    for update in range(3):
        following = f"known {update + 1}" if seed % 2 else None  # with staleness
        found = made.collect(TRAINER, f"known {update}", [1], update, True, following)
        assert found == [actors.Job(update, block) for block in range(5)]
    theirs = [job for job, _ in log]
    assert len(set(mine)) == len(mine) > 0
    assert len(hired) > count, "none has died"
    # A worker that dies may have had one more block, which it had not begun.
    assert len(theirs) + len(mine) - len({*theirs, *mine}) <= 2 * (len(hired) - count)
    for job in lost:
        assert (theirs.count(job) >= 2) != (job in mine)


def test_while_it_waits_for_others_this_process_deals_its_next_block():
    played, dealt = [], []
    own = types.SimpleNamespace(
        play=lambda job, order: played.append(job), begin=lambda job, order: dealt.append(job)
    )
    args = lambda: Hand({}, []), 1, lambda busy, patient: busy if patient else [], lambda order: order
    actors.Crew(*args, own).collect(TRAINER, "known", [1], 0)
    assert set(dealt) == {actors.Job(1, played[-1].block)}


def test_what_was_dealt_ahead_is_of_use_to_one_block_and_once():
    config = game_config.resolved(CONFIG, "live")
    trainer = live.trainer(config)
    state = train.init(trainer)
    known, words = train.shown(state.learner), play.words_of(state.key)
    player = actors.Player(config, trainer)
    order = actors.Order(known, words, True)
    for begun, played in ((1, 0), (1, 1), (1, 1), (None, 1)):
        if begun is not None:
            player.begin(actors.Job(begun, 2), order)
            player.begin(actors.Job(begun, 2), order)
        found = player.play(actors.Job(played, 2), order)
        alone = train.evidence(trainer, known, words, played, 2)
        jax.tree.map(np.testing.assert_array_equal, found, alone)


def test_a_block_that_kills_every_worker_ends_the_run():
    made, _, _ = crew_of(2, {actors.Job(0, 2): executor.TRIES})
    with pytest.raises(
        run_loop.Lost, match="Block 2 of update 1 was begun 3 times, and each time its worker"
    ):
        made.collect(TRAINER, "known", [1], 0)


def test_blocks_of_the_next_update_are_begun_before_it():
    made, log, _ = crew_of(7)
    assert made.collect(TRAINER, "before", [1], 0, True, "now") == [
        actors.Job(0, block) for block in range(5)
    ]
    begun = [job for job, order in log if order.known == "now"]
    assert begun[:2] == [actors.Job(1, 0), actors.Job(1, 1)]
    assert made.collect(TRAINER, "unread", [1], 1, True, "later") == [
        actors.Job(1, block) for block in range(5)
    ]
    assert all(order.known == "now" for job, order in log if job.update == 1)


def test_a_shelf_gives_back_what_was_put_there():
    like = actors.Order(
        {"w": np.zeros((2, 3)), "b": np.zeros((), np.int32)}, np.zeros(2, np.int64), np.zeros((), bool)
    )
    shelf = local_actors._Shelf(like)
    shelf.put(actors.Order({"w": np.arange(6.0).reshape(2, 3), "b": 7}, [1, 2], True))
    mine, shared = shelf.get(kept=True), shelf.get(kept=False)
    shelf.put(actors.Order({"w": -np.ones((2, 3)), "b": 8}, [3, 4], False))
    np.testing.assert_array_equal(mine.known["w"], np.arange(6.0).reshape(2, 3))
    assert int(mine.known["b"]) == 7
    assert list(mine.words) == [1, 2]
    assert mine.told
    assert not shared.told
    np.testing.assert_array_equal(shared.known["w"], -np.ones((2, 3)))
    assert list(shared.words) == [3, 4]
    with pytest.raises(ValueError, match="could not broadcast"):
        shelf.put(actors.Order({"w": np.zeros((3, 3)), "b": 7}, [1, 2], True))


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("magnet", [0.0, 0.1])
def test_shelves_are_of_the_form_of_what_blocks_are_played_with_and_of_what_they_say(separate, magnet):
    config = dataclasses.replace(CONFIG, shared=not separate, magnet_strength=magnet)
    trainer = live.trainer(game_config.resolved(config, "live"))
    state = train.init(trainer)
    known, words = train.shown(state.learner), play.words_of(state.key)
    evidence = train.evidence(trainer, known, words, 0, 0)
    for thing, form in zip((known, evidence), train.forms(trainer), strict=True):
        shelf = local_actors._Shelf(form)
        shelf.put(thing)
        jax.tree.map(np.testing.assert_array_equal, shelf.get(kept=True), thing)


@pytest.mark.thorough
def test_a_worker_for_every_core_has_a_core_of_its_own_and_so_has_who_comes_after_it():
    config, cores = game_config.resolved(CONFIG, "live"), os.sched_getaffinity(0)
    trainer = live.trainer(config)
    state = train.init(trainer)
    known, words = train.shown(state.learner), play.words_of(state.key)

    def seats():
        workers = [worker.process.pid for worker in made._jobs]
        return [os.sched_getaffinity(process) for process in (0, *workers)]

    with live.crew(config, game_config.Actors(workers=len(cores)), trainer) as made:
        first = made.collect(trainer, known, words, 0)
        assert sorted(map(min, seats())) == sorted(cores)
        assert all(len(each) == 1 for each in seats())
        victim = next(iter(made._jobs)).process
        victim.kill()
        victim.join()
        again = made.collect(trainer, known, words, 0)
        for one, other in zip(first, again, strict=True):
            np.testing.assert_array_equal(one.gradient, other.gradient)
        assert len({min(each) for each in seats()}) == len(cores)
    assert os.sched_getaffinity(0) == cores
    assert local_actors._own_cores(len(cores) + 1) == []  # with fewer, or more, nobody has one


@pytest.mark.thorough
def test_workers_that_go_leave_a_checkpoint_and_a_sentence(tmp_path):
    """The run is resumed without them, and nothing of it has changed."""
    plain = game.run(CONFIG, tmp_path / "plain")
    _, made = game.build(CONFIG)

    def advance(state, units, calls=[]):  # noqa: B006 (counts the calls)
        calls.append(units)
        if len(calls) == 4:
            raise run_loop.Lost("The Ray cluster has gone (test).")
        return made.advance(state, units)

    with pytest.raises(
        run_loop.Lost, match=r"has gone \(test\)\. Stopped after \d+ updates; go on with --resume"
    ):
        run_loop.finish(lambda: made._replace(advance=advance), tmp_path / "cut")
    assert run_loop.Lost("").exit_code == 1
    resumed = game.run(CONFIG, tmp_path / "cut", resume=True)
    assert without_seconds(tmp_path / "cut") == without_seconds(tmp_path / "plain")
    assert resumed["updates"] == plain["updates"]


def without_seconds(path):
    return [{**row, "seconds": ""} for row in records.read_csv(path / "metrics.csv")]


def policies(path):
    newest = max((path / "policy").glob("step_*.npz"))
    with np.load(newest) as found:
        return {name: found[name] for name in found.files}


def assert_same(path, other):
    assert without_seconds(path) == without_seconds(other)
    one, two = policies(path), policies(other)
    assert one.keys() == two.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name])


def test_workers_are_for_live_play(tmp_path):
    config = game_config.Config(game="kuhn_poker", episodes=256, batch_size=64)
    with pytest.raises(ValueError, match="executor, workers and address are for live play"):
        game.run(config, tmp_path / "run", where=game_config.Actors(workers=2))
    assert not (tmp_path / "run").exists()


def test_more_workers_than_cores_are_refused(tmp_path):
    with pytest.raises(ValueError, match="cores must be between 1 and"):
        game.run(CONFIG, tmp_path / "run", where=game_config.Actors(workers=10_000))


def test_an_address_that_nothing_listens_at_is_told_of(tmp_path):
    where = game_config.Actors(executor="ray", address="127.0.0.1:1")
    with pytest.raises(ValueError, match=r"there is no Ray cluster at 127\.0\.0\.1:1"):
        game.run(CONFIG, tmp_path / "run", where=where)


def test_another_version_on_the_cluster_is_told_of(monkeypatch):
    import ray

    theirs = {**actors.versions(), "pohp_neurd": "0.1.0"}
    monkeypatch.setattr(ray, "get", lambda answer: theirs)
    handle = types.SimpleNamespace(versions=types.SimpleNamespace(remote=lambda: None))
    with pytest.raises(ValueError, match=r"the Ray cluster has pohp_neurd 0\.1\.0, but this machine"):
        ray_actors._Actor(handle).check()


@pytest.mark.thorough
def test_two_local_workers_one_of_them_killed(tmp_path):
    """Whoever plays, and though a worker is killed: the same rows and the same parameters, to the bit."""
    game.run(CONFIG, tmp_path / "one")

    def kill():
        while not (tmp_path / "two" / "metrics.csv").exists():
            time.sleep(0.02)
        os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    game.run(CONFIG, tmp_path / "two", where=game_config.Actors(workers=2))
    killer.join(5)
    assert not killer.is_alive()
    assert_same(tmp_path / "one", tmp_path / "two")
    assert not multiprocessing.active_children()


def command(path, *more):
    """A run in Leduc poker in a process of its own."""
    flags = (
        "--game=leduc_poker --play=live --policy=neural --hidden_layers=8 --episodes=12800 --batch_size=64 "
        "--block_size=16 --eval_every=640 --checkpoint_every=1"
    )
    return [sys.executable, SCRIPT, *flags.split(), f"--output_dir={path}", *more]


@pytest.mark.slow
def test_two_workers_on_ray(tmp_path):
    for name, more in (("one", []), ("ray", ["--executor=ray", "--workers=2"])):
        subprocess.run(command(tmp_path / name, *more), check=True, capture_output=True)
    assert_same(tmp_path / "one", tmp_path / "ray")


def players_under(parent):
    """The ids of all processes below `parent` in which an actor of Ray plays blocks."""
    parents = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            told = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(told[1]), (folder / "cmdline").read_text()
    below, found = {parent}, []
    while more := {pid for pid, (above, _) in parents.items() if above in below} - below:
        below |= more
        found += [pid for pid in more if parents[pid][1].startswith("ray::Player")]
    return found


@pytest.mark.slow
def test_an_actor_on_ray_that_is_killed(tmp_path):
    """The process that plays, by kill -9, twice while rows are written: the same rows and parameters."""
    subprocess.run(command(tmp_path / "one"), check=True, capture_output=True)
    path, killed = tmp_path / "ray", set()
    process = subprocess.Popen(
        command(path, "--executor=ray", "--workers=2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for rows in (1, 4):
        while process.poll() is None and len(rows_of(path)) < rows:
            time.sleep(0.02)
        victim = next(pid for pid in players_under(process.pid) if pid not in killed)
        os.kill(victim, signal.SIGKILL)
        killed.add(victim)
    assert process.wait() == 0
    assert_same(tmp_path / "one", path)


def rows_of(path):
    return records.read_csv(path / "metrics.csv") if (path / "metrics.csv").exists() else []


OTHER_VERSION = """
import runpy, sys
from pohp_neurd.experiment import actors
ours = actors.versions()
actors.versions = lambda: {**ours, "pohp_neurd": "0.0.1"}  # here alone: actors import their own
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
def test_another_version_on_a_real_cluster_is_refused_and_nothing_lost(tmp_path):
    """A run that was killed is to be resumed there: it stays as it is, and goes on here."""
    whole, path = tmp_path / "whole", tmp_path / "run"
    subprocess.run(command(whole), check=True, capture_output=True)
    with subprocess.Popen(command(path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and len(rows_of(path)) < 3:
            time.sleep(0.02)
        process.kill()
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    _, *rest = command(path, "--resume", "--executor=ray", "--workers=1")
    refused = subprocess.run([sys.executable, "-c", OTHER_VERSION, *rest], capture_output=True, text=True)
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr
    assert "the Ray cluster has pohp_neurd" in refused.stderr
    assert "but this machine 0.0.1: a run needs the same everywhere." in refused.stderr
    assert before == {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    subprocess.run(command(path, "--resume"), check=True, capture_output=True)
    assert_same(whole, path)


@pytest.mark.slow
@pytest.mark.parametrize("staleness", [0, 1])
def test_a_run_that_is_killed_three_times_goes_on_to_the_bit(tmp_path, staleness):
    stale = f"--staleness={staleness}"
    subprocess.run(command(tmp_path / "whole", stale), check=True, capture_output=True)
    rng, path = random.Random(staleness), tmp_path / "killed"
    again = []
    for _ in range(3):
        process = subprocess.Popen(
            command(path, stale, "--workers=2", *again),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        known = set((path / "checkpoints").glob("*.npz"))
        while process.poll() is None and set((path / "checkpoints").glob("*.npz")) <= known:
            time.sleep(0.05)
        time.sleep(2 * rng.random())
        process.kill()
        process.wait()
        again = ["--resume"]
    subprocess.run(command(path, stale, "--workers=2", *again), check=True, capture_output=True)
    assert_same(tmp_path / "whole", path)


@pytest.mark.slow
def test_a_worker_out_of_memory_ends_the_run_with_a_sentence(tmp_path, monkeypatch):
    """Every worker process has 600 MiB of addresses: it dies as it begins, or says so."""
    import resource

    def hire(*args):
        made = worker(*args)
        resource.prlimit(made.process.pid, resource.RLIMIT_AS, (600 * 2**20, 600 * 2**20))
        return made

    worker = local_actors._Worker
    monkeypatch.setattr(local_actors, "_Worker", hire)
    with pytest.raises(run_loop.Lost, match="Stopped after 0 updates; go on with --resume"):
        game.run(CONFIG, tmp_path / "run", where=game_config.Actors(workers=2))
