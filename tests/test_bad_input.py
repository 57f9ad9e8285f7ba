"""Bad input, of every script, file and function: one sentence, nothing lost, no traceback, no warning.

Of scripts the exit code is 2, and the files that were there are there as they were, to the byte.
"""

import fcntl
import json
import pathlib
import shutil
import subprocess
import sys

import loaded_scripts
import numpy as np
import pyspiel
import pytest
from absl.testing import flagsaver
from pohp_neurd.games import cart_pole, catch, matrix_game

from pohp_neurd import (
    agent_state,
    averaging,
    bandit,
    checkpoint,
    checks,
    directions,
    estimators,
    exact,
    learners,
    neural,
    openspiel,
    optimizers,
    returns,
    shaping,
    tabular,
)
from pohp_neurd.experiment import game_config, game_run, grid, records, run_folder, sweep, table
from pohp_neurd.online import agent as online
from pohp_neurd.online import host
from pohp_neurd.openspiel import terminal
from pohp_neurd.openspiel.live import game as games
from pohp_neurd.openspiel.live import match, train

SCRIPTS = sorted(
    path.stem for path in (pathlib.Path(__file__).resolve().parents[1] / "run_scripts").glob("*.py")
)


def called(name, arguments):
    """Runs a script in this process as a shell would; its exit code."""
    with loaded_scripts.loaded(name) as script, flagsaver.flagsaver():
        try:
            script.main(script.command_line.parse([name, *arguments]))
        except SystemExit as stop:
            return stop.code
    return 0


def contents(folder):
    """All that is in a folder, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def check_refused(name, arguments, sentence, place, capfd):
    """The script says `sentence`, and no more, with exit code 2; all files in `place` are as they were."""
    before = contents(place)
    capfd.readouterr()
    code = called(name, arguments)
    told = capfd.readouterr()
    lines = told.err.strip().splitlines()
    assert len(lines) == 1, told.err
    assert sentence in lines[0]
    assert "Traceback" not in told.out
    assert code == 2
    assert contents(place) == before


FLAGS = [
    ("train_game", ["--explorations=1"], "Unknown command line flag 'explorations'"),
    ("train_game", ["leduc_poker"], "'leduc_poker' is no flag"),
    ("train_game", ["--game=leduc_pokr"], "did you mean leduc_poker"),
    ("train_game", ["--game="], "game must be the name of an OpenSpiel game"),
    ("train_game", ["--learner=cfr"], "learner must be one of spg, neurd, neurd_cix, but is 'cfr'."),
    ("train_game", ["--episodes=1.5"], "flag --episodes=1.5: must be a whole number"),
    ("train_game", ["--episodes=many"], "must be a whole number, such as 20000000 or 2e7, but is 'many'"),
    ("train_game", ["--episodes=1e999999999"], "must be a whole number"),
    ("train_game", ["--episodes=nan"], "must be a whole number"),
    ("train_game", ["--batch_size=100000000000"], "would take at least"),
    ("train_game", ["--batch_size=0"], "batch_size must be at least 1, but is 0."),
    ("train_game", ["--policy=neural", "--hidden_layers=10000000,10000000"], "GiB of memory, but this"),
    ("train_game", ["--hidden_layers=64,wide"], "hidden_layers must be whole numbers with commas"),
    ("train_game", ["--hidden_layers=64,-1"], "hidden_layers must be sizes of at least 1"),
    (
        "train_game",
        ["--learner=spg", "--exploration=0.1"],
        "exploration is for learner=neurd_cix: spg has none",
    ),
    ("train_game", ["--learner=neurd", "--exploration=0"], "exploration is for learner=neurd_cix"),
    ("train_game", ["--learner=spg", "--exploration_decay=1"], "exploration_decay is for learner=neurd_cix"),
    ("train_game", ["--exploration=-0.1"], "exploration must lie in [0, 1], but is -0.1."),
    ("train_game", ["--step_size=nan"], "step_size must be a finite number of at least 0, but is nan."),
    ("train_game", ["--seed=-1"], "seed must be a whole number from 0"),
    (
        "train_game",
        ["--game=kuhn_poker", "--episodes=1e25"],
        "the number of updates must be at most 2147483647",
    ),
    ("train_game", ["--output_dir="], "a run needs a folder, but its name is empty."),
    ("train_game", ["--resume", "--overwrite"], "resumed or overwritten, but not both"),
    ("train_game", ["--resume"], "there is no run to resume in"),
    ("train_game", ["--output_dir=/proc/nowhere/run"], "cannot be written"),
    ("train_single_agent", ["--learner=spg", "--exploration=1"], "exploration is for learner=neurd_cix"),
    ("train_single_agent", ["--exploration=0,much"], "exploration must be numbers with commas"),
    ("train_single_agent", ["--exploration=0.1,0.1"], "explorations must differ"),
    ("train_single_agent", ["--learning_rate=0"], "learning_rate must be a finite number above 0, but is 0."),
    ("train_single_agent", ["--seeds=1e9"], "would take at least"),
    ("train_single_agent", ["--width=10000000"], "would take at least"),
    ("train_single_agent", ["--environment=pong"], "environment must be one of catch, cart_pole"),
    ("train_single_agent", ["--num_steps=1e6", "--interval=3e3"], "num_steps must be a multiple of interval"),
    (
        "train_single_agent",
        ["--environment=cart_pole", "--swap_every=5"],
        "swap_every is for environment=catch",
    ),
    ("train_single_agent", ["--cores=999"], "cores must be between 1 and"),
    ("train_single_agent", ["--horizon=1e25"], "horizon must be at most 2147483647"),
    ("train_single_agent", ["--exploration_decay=1e300"], "exploration_decay must be at most 3.4e+38"),
    ("bandit", ["--problem=poker"], "problem must be one of bernoulli"),
    ("bandit", ["--estimator=ix,icx"], "estimator must be one of importance, ix, cix, but is 'icx'."),
    ("bandit", ["--xi=1", "--exploration=0.1"], "exclude each other"),
    ("bandit", ["--seeds=1e12"], "would take at least"),
    ("bandit", ["--delta=1"], "delta must lie strictly between 0 and 1"),
    ("sweep", [], "script must be given: one of train_game"),
    ("sweep", ["--script=train_go"], "script must be one of train_game"),
    ("sweep", ["--script=train_game", "--sweep=episodes=1.5"], "episodes must be of the kind int"),
    ("sweep", ["--script=train_game", "--sweep=seed=0:1000000000000"], "at most 1,000,000 settings"),
    (
        "sweep",
        ["--script=train_single_agent", "--sweep=learner=spg,neurd_cix", "--sweep=exploration=0,1"],
        "exploration is for learner=neurd_cix: spg has none",
    ),
    (
        "sweep",
        ["--script=train_game", "--sweep=seed=1", "--executor=pbs"],
        "executor must be one of local, ray",
    ),
    ("sweep", ["--script=train_game", "--sweep=seed"], "a sweep is written name=value"),
    ("summarise", [], "input must be given"),
    ("summarise", ["--input=/nowhere.csv"], "there is no file /nowhere.csv."),
    ("plot", [], "kind must be one of sensitivity"),
    (
        "plot",
        ["--kind=nash_conv", "--input=/nowhere.csv", "--output=/tmp/x.png"],
        "there is no file /nowhere.csv",
    ),
    ("plot", ["--kind=nash_conv", "--input=a.csv", "--output="], "output must name the picture"),
    ("plot", ["--kind=nash_conv", "--band=wide", "--input=a.csv", "--output=b.png"], "band must be one of"),
    ("reproduce_paper", ["--scale=huge"], "scale must be one of smoke, small, full"),
    ("reproduce_paper", ["--learning_rate=-1"], "learning_rate must be best, paper or a number above 0"),
    ("reproduce_paper", ["--cores=0"], "cores must be between 1 and"),
    ("evaluate", [], "checkpoint must be the folder of a run, but is empty."),
    ("evaluate", ["--checkpoint=/nowhere"], "/nowhere is not the folder of a run."),
    ("evaluate", ["--checkpoint=/tmp", "--use=best"], "use must be one of average, current, but is 'best'."),
    ("evaluate", ["--checkpoint=/tmp", "--episodes=1"], "episodes must be at least 100, but is 1."),
    ("play", ["--checkpoint=/nowhere"], "/nowhere is not the folder of a run."),
    ("play", ["--checkpoint=/tmp", "--seat=-1"], "seat must be at least 0, but is -1."),
    ("play", ["--checkpoint=/tmp", "--use=both"], "use must be one of average, current"),
    ("agent_loop", ["--game=2048"], "2048 gives no information-state tensors"),
    ("agent_loop", ["--game=mfg_crowd_modelling"], "mean field game"),
    ("agent_loop", ["--checkpoint_dir=/etc/passwd"], "/etc/passwd is a file"),
    ("agent_loop", ["--learner=spg", "--exploration=0.3"], "exploration is for learner=neurd_cix"),
    ("agent_loop", ["--network=cnn"], "network must be one of mlp, table, but is 'cnn'."),
    ("agent_loop", ["--episodes=0"], "episodes must be at least 1, but is 0."),
    ("agent_loop", ["--episodes=10"], "batch_size must be at most the 10 episodes"),
]


@pytest.mark.parametrize(("name", "arguments", "sentence"), FLAGS, ids=lambda part: str(part)[:60])
def test_flags(name, arguments, sentence, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)  # where the folders of scripts are by default
    monkeypatch.setenv("PJRT_NPROC", "1")  # some scripts set it: this brings back what it was
    monkeypatch.setattr(run_folder, "total_memory", lambda: 16 * 2.0**30)
    check_refused(name, arguments, sentence, tmp_path, capfd)


TINY = game_config.Config(game="kuhn_poker", episodes=512, batch_size=64, eval_every=128, checkpoint_every=1)
TRAIN = [
    "--game=kuhn_poker",
    *("--episodes=512", "--batch_size=64", "--eval_every=128", "--checkpoint_every=1", "--output_dir=run"),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run in Kuhn poker, and another of the same game with another seed."""
    folder = tmp_path_factory.mktemp("trained")
    game_run.run(TINY, folder / "run")
    game_run.run(game_config.Config(**{**vars(TINY), "seed": 1}), folder / "other")
    return folder


@pytest.fixture
def place(trained, tmp_path, monkeypatch):
    """A folder with copies of both, which is the current one."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(path, text):
    """Writes over a file, or makes it."""

    def change(place):
        for file in sorted(place.glob(path)) or [place / path]:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())

    return change


def edited(path, edit):
    """Puts `edit` of their text into all files of that name."""

    def change(place):
        for file in place.glob(path):
            file.write_text(edit(file.read_text()))

    return change


def with_json(path, **values):
    """Changes entries of JSON files."""
    return edited(path, lambda text: json.dumps({**json.loads(text), **values}))


def swapped(place):
    shutil.rmtree(place / "run" / "checkpoints")
    shutil.copytree(place / "other" / "checkpoints", place / "run" / "checkpoints")


def without_rows(text):
    return "".join(text.splitlines(keepends=True)[:-2])


RESUME = ("train_game", [*TRAIN, "--resume"])
SWEEP = ("sweep", ["--grid=grid.json", "--output_dir=swept"])
EVALUATE, PLAY = ("evaluate", ["--checkpoint=run"]), ("play", ["--checkpoint=run", "--seat=0"])
SUMMARISE = ("summarise", ["--input=table.csv", "--by=learner"])
PLOT = ("plot", ["--kind=nash_conv", "--input=table.csv", "--output=picture.png"])
GRID = '{"script": "train_game", "sweep": '
OUTCOME = "swept/outcomes/x.json"

FILES = [
    (RESUME, written("run/config.json", "[]"), "config.json must hold a JSON object, but holds a list."),
    (RESUME, written("run/config.json", "null"), "config.json must hold a JSON object, but holds null."),
    (RESUME, written("run/config.json", "{"), "config.json is not valid JSON"),
    (RESUME, written("run/config.json", b"\xff\xfe"), "config.json must be text in UTF-8"),
    (
        RESUME,
        with_json("run/config.json", seed=3),
        "cannot resume run with another configuration: seed was 3",
    ),
    (RESUME, with_json("run/checkpoints/*.json", leaves=None), "no checkpoint in run/checkpoints is whole"),
    (RESUME, with_json("run/checkpoints/*.json", leaves=[None]), "no checkpoint in run/checkpoints is whole"),
    (RESUME, with_json("run/checkpoints/*.json", leaves=[]), "no checkpoint in run/checkpoints is whole"),
    (RESUME, with_json("run/checkpoints/*.json", sha256=7), "no checkpoint in run/checkpoints is whole"),
    (RESUME, written("run/checkpoints/*.json", "[]"), "no checkpoint in run/checkpoints is whole"),
    (RESUME, written("run/checkpoints/*.npz", b"PK"), "no checkpoint in run/checkpoints is whole"),
    (RESUME, with_json("run/checkpoints/*.json", run="another"), "is of another run"),
    (RESUME, swapped, "is of another run, with another configuration."),
    (
        RESUME,
        edited("run/metrics.csv", lambda text: text[:-25] + "\n"),
        "line 5 of run/metrics.csv has not as many",
    ),
    (RESUME, edited("run/metrics.csv", lambda text: text[:-3]), "metrics.csv ends in the middle of a line"),
    (RESUME, edited("run/metrics.csv", lambda text: text.replace("128", "soon", 1)), "but is 'soon'."),
    (
        RESUME,
        edited("run/metrics.csv", lambda text: text.replace("nash_conv", "nash")),
        "must have the columns",
    ),
    (RESUME, edited("run/metrics.csv", without_rows), "must have a row of each of 4 evaluations"),
    (RESUME, written("run/metrics.csv", b"\x00\xff"), "metrics.csv must be text in UTF-8"),
    (("train_game", TRAIN), None, "run already holds a run"),
    (("train_game", ["--output_dir=mine"]), written("mine/thesis.tex", "x"), "files that are not a run's"),
    (
        ("train_game", ["--output_dir=mine"]),
        written("mine", "x"),
        "mine is a file, but a run needs a folder.",
    ),
    (SWEEP, None, "there is no file grid.json."),
    (SWEEP, written("grid.json", "7"), 'grid.json must hold {"script": ..., "sweep": ...}'),
    (SWEEP, written("grid.json", "[]"), "there is nothing to sweep"),
    (SWEEP, written("grid.json", GRID + "[]}"), "sweep in grid.json must hold the values of each flag"),
    (SWEEP, written("grid.json", GRID + '{"seed": [{}]}}'), "seed must be of the kind int"),
    (SWEEP, written("grid.json", GRID + '{"seed": 1e99}}'), "seed must be of the kind int, but is 1e+99."),
    (SWEEP, written("grid.json", GRID + '{"seed": 1, "learner": "spg", "exploration": 1}}'), "spg has none"),
    (EVALUATE, written("run/policy/about.json", "[]"), "about.json"),
    (EVALUATE, written("run/policy/about.json", '{"game"'), "about.json"),
    (EVALUATE, with_json("run/policy/about.json", color="red"), "about.json"),
    (EVALUATE, with_json("run/policy/step_*.json", leaves=None), "run/policy"),
    (EVALUATE, written("run/policy/*.npz", b""), "no checkpoint in run/policy is whole"),
    (("evaluate", ["--checkpoint=."]), None, "there is no trained policy in ."),
    (PLAY, written("run/policy/about.json", "null"), "about.json"),
    (("play", ["--checkpoint=run", "--seat=7"]), None, "seat must be one of 0 to 1, but is 7."),
    (SUMMARISE, written("table.csv", ""), "table.csv has no rows."),
    (SUMMARISE, written("table.csv", "learner,seed\nspg\n"), "line 2 of table.csv has not as many cells"),
    (SUMMARISE, written("table.csv", "learner,seed\nspg,1\n"), "there is no column 'total_reward'"),
    (
        SUMMARISE,
        written("table.csv", "learner,total_reward\nspg,much\n"),
        "total_reward must be a finite number",
    ),
    (SUMMARISE, written("table.csv", b"\x00\xff"), "table.csv must be text in UTF-8"),
    (PLOT, written("table.csv", "learner,learner\nspg,1\n"), "table.csv must have one column 'learner'"),
    (PLOT, written("table.csv", "exploration,episodes\n1,2\n"), "there is no column"),
]


@pytest.mark.parametrize(("call", "change", "sentence"), FILES, ids=[f"{c[0]}-{s[:50]}" for c, _, s in FILES])
def test_files(call, change, sentence, place, capfd):
    if change is not None:
        change(place)
    check_refused(*call, sentence, place, capfd)


@pytest.mark.parametrize(
    ("name", "arguments", "folder", "what"),
    [
        ("train_game", [*TRAIN, "--resume"], "run", "run"),
        ("train_game", [*TRAIN, "--overwrite"], "run", "run"),
        ("train_single_agent", ["--output_dir=new"], "new", "run"),
        ("bandit", ["--output_dir=new"], "new", "run"),
        ("sweep", ["--script=bandit", "--sweep=seed=0", "--output_dir=new"], "new", "sweep"),
        ("reproduce_paper", ["--scale=smoke", "--output_dir=new"], "new", "sweep"),
        ("agent_loop", ["--checkpoint_dir=new", "--network=table"], "new", "loop"),
    ],
)
def test_a_folder_at_work_is_left_alone(name, arguments, folder, what, place, monkeypatch, capfd):
    monkeypatch.setenv("PJRT_NPROC", "1")
    (place / folder).mkdir(exist_ok=True)
    with open(place / folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        sentence = (
            f"another {what} is at work in {folder} (process 4711): wait for its end, or choose another"
        )
        check_refused(name, arguments, sentence, place, capfd)


def test_outcomes_of_a_sweep(place, capfd):
    """Its folder is made ready before they are read, so that other files may come."""
    for text, sentence in (("[]", "must hold a JSON object"), ('{"flags": 7}', "is not what a sweep writes")):
        written(OUTCOME, text)(place)
        assert called("sweep", ["--script=bandit", "--sweep=seed=0", "--output_dir=swept"]) == 2
        (line,) = capfd.readouterr().err.strip().splitlines()
        assert sentence in line
        assert (place / OUTCOME).read_text() == text


def test_what_is_no_checkpoint_is_left_alone(place, capfd):
    """A stray file, and the marks that a finished run has: resuming it changes nothing but its picture."""
    written("run/checkpoints/step_abc.json", "{}")(place)
    written("run/checkpoints/step_7.json", "{}")(place)
    before = contents(place / "run" / "checkpoints")
    assert called(*RESUME) == 0
    assert contents(place / "run" / "checkpoints") == before
    assert capfd.readouterr().err == ""


def test_a_checkpoint_of_before_runs_were_told_apart_is_resumed(place):
    edited("run/checkpoints/*.json", lambda text: json.dumps({**json.loads(text), "run": None}))(place)
    assert called(*RESUME) == 0


KUHN = openspiel.compile_game("kuhn_poker")
UNIFORM = exact.uniform(KUHN)
OPTIONS = online.Options()


def changed(row, values):
    rows = UNIFORM.copy()
    rows[row] = values
    return rows


class Rewarding:
    """An environment that pays, which the paper's learners do not take."""

    observation_size, num_actions = 1, 2

    def reset(self):
        return host.Arrival(np.zeros(1, np.float32), 0.0, 1.0)

    def step(self, action):
        return host._arrival([0.0], 1.0, 1.0)


FUNCTIONS = {
    "estimators.ix_weight": lambda: estimators.ix_weight(0.5, 2.0),
    "estimators.cix_weight": lambda: estimators.cix_weight(0.5, np.nan),
    "estimators.action_values": lambda: estimators.action_values(-1.0, 0, np.array([0.5, 0.4]), 0.1),
    "estimators.action_values, action": lambda: estimators.action_values(-1.0, 2, np.array([0.5, 0.5]), 0.1),
    "returns.lambda_returns": lambda: returns.lambda_returns(
        np.zeros(2), np.ones(2), np.zeros(2), lambda_=1.5, bootstrap=0.9
    ),
    "exact.nash_conv, shape": lambda: exact.nash_conv(KUHN, UNIFORM[:3]),
    "exact.nash_conv, sum": lambda: exact.nash_conv(KUHN, changed(0, 0.9)),
    "exact.nash_conv, NaN": lambda: exact.nash_conv(KUHN, changed(0, np.nan)),
    "exact.nash_conv, negative": lambda: exact.nash_conv(KUHN, changed(0, [1.5, -0.5])),
    "exact.best_response": lambda: exact.best_response(KUHN, UNIFORM, 2),
    "exact.expected_direction": lambda: exact.expected_direction(KUHN, UNIFORM, learner="ppo"),
    "compile_game, name": lambda: openspiel.compile_game("kuhn_pokr"),
    "compile_game, size": lambda: openspiel.compile_game("leduc_poker", max_histories=10),
    "compile_game, object": lambda: openspiel.compile_game(7),
    "load_game, parameters": lambda: openspiel.load_game("kuhn_poker(players=99)"),
    "nash_conv, policy": lambda: openspiel.nash_conv("kuhn_poker", "best"),
    "nash_conv, game": lambda: openspiel.nash_conv("kuhn_pokr", UNIFORM),
    "NeuRDCIX, learner": lambda: openspiel.NeuRDCIX(0, 11, 2, learner="ppo"),
    "NeuRDCIX, keyword": lambda: openspiel.NeuRDCIX(0, 11, 2, batchsize=3),
    "NeuRDCIX, size": lambda: openspiel.NeuRDCIX(0, 0, 2),
    "NeuRDCIX, exploration": lambda: openspiel.NeuRDCIX(0, 11, 2, exploration=np.nan),
    "NeuRDCIX, restore": lambda: openspiel.NeuRDCIX(0, 11, 2).restore("/nowhere"),
    "NeuRDCIXSolver, update": lambda: openspiel.NeuRDCIXSolver("kuhn_poker", update="exact"),
    "NeuRDCIXSolver, game": lambda: openspiel.NeuRDCIXSolver("kuhn_pokr"),
    "NeuRDCIXSolver, batch_size": lambda: openspiel.NeuRDCIXSolver(KUHN, update="sampled", batch_size=0),
    "NeuRDCIXSolver, updates": lambda: openspiel.NeuRDCIXSolver(KUHN).evaluate_and_update_policy(0),
    "bot, policy": lambda: openspiel.bot(7, 0),
    "bot, folder": lambda: openspiel.bot("/nowhere", 0),
    "bot, seat": lambda: openspiel.bot(pyspiel.UniformRandomPolicy(pyspiel.load_game("kuhn_poker")), -1),
    "match.play": lambda: match.play("kuhn_poker", [None], 100, seed=0),
    "terminal.play": lambda: terminal.play("kuhn_poker", None, 2),
    "train.responder": lambda: train.responder(games.live_game("kuhn_poker"), None, 0, batch_episodes=0),
    "bandit.reduction, estimator": lambda: bandit.reduction(bandit.learners.regret_matching(), "icx"),
    "bandit.reduction, schedule": lambda: bandit.reduction(bandit.learners.regret_matching(), "cix", 2.0),
    "bandit.learners.hedge": lambda: bandit.learners.hedge(-1.0),
    "bandit.problems.bernoulli": lambda: bandit.problems.bernoulli([0.5, 1.5]),
    "bandit.best_xi": lambda: bandit.best_xi(5, 0.0),
    "online.Options, window": lambda: online.Options(window=0),
    "online.Options, learner": lambda: online.Options("ppo"),
    "host.train, exploration": lambda: host.train(
        Rewarding(), OPTIONS, 1, learning_rate=0.1, exploration=2.0
    ),
    "host.train, steps": lambda: host.train(Rewarding(), online.Options(), 0, learning_rate=0.1),
    "host.train, rate": lambda: host.train(Rewarding(), online.Options(), 1, learning_rate=-1.0),
    "host.train, rewards": lambda: Rewarding().step(0),
    "learners.rule": lambda: learners.rule("ppo", 0.0),
    "directions.neurd_cix": lambda: directions.neurd_cix(1.5),
    "optimizers.sgd": lambda: optimizers.sgd(-1.0),
    "shaping.Magnet": lambda: shaping.Magnet(-1.0),
    "averaging.Weights": lambda: averaging.Weights(forgetting=2.0),
    "neural.network": lambda: neural.network(3, 2, torso=(0,)),
    "tabular.table": lambda: tabular.table(0, 2),
    "agent_state.window": lambda: agent_state.window(catch.Catch(), 0),
    "catch.Catch": lambda: catch.Catch(rows=1),
    "cart_pole.CartPole": lambda: cart_pole.CartPole(horizon=0),
    "matrix_game.bandit": lambda: matrix_game.bandit([]),
    "checkpoint.save": lambda: checkpoint.save("/nowhere", -1, {}),
    "checkpoint.save, kind": lambda: checkpoint.save("/nowhere", 1, {}, keep=0),
    "checks.whole": lambda: checks.whole("1.5"),
    "grid.settings": lambda: grid.settings([]),
    "sweep.run": lambda: sweep.run([], "", lambda *_: ()),
    "table.conditions": lambda: table.conditions("learner"),
    "records.write_csv": lambda: records.write_csv("/nowhere.csv", [{"a": 1}], ["b"]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    with pytest.raises((ValueError, TypeError)) as caught:
        FUNCTIONS[name]()
    told = str(caught.value)
    assert "\n" not in told
    assert told.endswith((".", "?"))


WRONG = {
    **dict.fromkeys(("train_game", "train_single_agent", "agent_loop"), "--learner=cfr"),
    "bandit": "--delta=2",
    "evaluate": "--checkpoint=/nowhere",
    "play": "--use=best",
    "plot": "--kind=pie",
    "reproduce_paper": "--scale=huge",
    "summarise": "--input=",
    "sweep": "--script=train_go",
}


PROGRAM = """
import sys
import loaded_scripts
for name, wrong in zip(sys.argv[1::2], sys.argv[2::2]):
    with loaded_scripts.loaded(name) as script:
        for flag in ("--no_such_flag", wrong):
            try:
                script.main(script.command_line.parse([name, flag]))
            except SystemExit as stop:
                print(name, stop.code, *sorted({"jax", "matplotlib", "scipy"} & set(sys.modules)))
"""


def test_wrong_flags_do_not_wait_for_jax():
    """All scripts in one process, in which JAX, seconds of work, has not been loaded when they refuse."""
    arguments = [word for name in SCRIPTS for word in (name, WRONG[name])]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        cwd=pathlib.Path(__file__).parent,
        check=True,
    )
    assert done.stdout.splitlines() == [f"{name} 2" for name in SCRIPTS for _ in range(2)]
    assert len(done.stderr.splitlines()) == 2 * len(SCRIPTS)


def test_there_are_enough_of_them():
    assert len(FLAGS) + len(FILES) + len(FUNCTIONS) >= 60
    assert {name for name, _, _ in FLAGS} == set(SCRIPTS)


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        *(("train_game", "episodes"), ("train_single_agent", "num_steps"), ("agent_loop", "episodes")),
        *(("bandit", "horizon"), ("sweep", "cores"), ("reproduce_paper", "cores"), ("evaluate", "episodes")),
        ("play", "seed"),
    ],
)
def test_whole_numbers_may_be_written_with_a_power_of_ten(name, flag):
    with loaded_scripts.loaded(name) as script, flagsaver.flagsaver():
        script.command_line.parse([name, f"--{flag}=2e7"])
        assert script.command_line.flags.FLAGS[flag].value == 20_000_000
