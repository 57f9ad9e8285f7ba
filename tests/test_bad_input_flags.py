"""A wrong flag of any script is refused in one sentence, before JAX is loaded.

The first entry of each kind of mistake has the whole sentence. The others have what it must name: the flag,
and the value that was wrong.
"""

import pathlib
import subprocess
import sys

import loaded_scripts
import pytest
import refusals
from absl.testing import flagsaver

from pohp_neurd.results import records

SPG_HAS_NONE = "exploration is for learner=neurd_cix: spg has none, so leave it out."
SPG_EXPLORES_NOT = "exploration is for learner=neurd_cix or regret_matching or rm_plus or "
NO_FOLDER = "a run needs a folder, but its name is empty."

FLAGS = [
    (
        "train_game",
        ["--explorations=1"],
        "Unknown command line flag 'explorations'. Did you mean: exploration",
    ),
    ("train_game", ["leduc_poker"], "'leduc_poker' is no flag: flags are written --name=value."),
    ("train_game", ["--game=leduc_pokr"], "'leduc_pokr'", "did you mean leduc_poker"),
    ("train_game", ["--game="], "game must be the name of an OpenSpiel game, but is empty."),
    ("train_game", ["--learner=cfr"], "learner must be one of spg, neurd, neurd_cix, ", "but is 'cfr'."),
    (
        "train_game",
        ["--learner=rm_plus", "--policy=neural"],
        "learner=rm_plus takes policy=tabular: a network ",
    ),
    ("train_game", ["--nobaseline", "--baseline_of=state"], "baseline_of is for baseline=true"),
    ("train_game", ["--learner=spg", "--play_exploration=0.1"], "play_exploration needs baseline_of=history"),
    (
        "train_game",
        ["--learner=spg", "--play_exploration=0.1", "--baseline_of=history"],
        "not for learner=spg",
    ),
    (
        "train_game",
        ["--learner=rm_plus", "--update=expected", "--step_size=1"],
        "step_size is not read by learner=rm_plus: leave it out.",
    ),
    (
        "train_game",
        ["--episodes=many"],
        "flag --episodes=many: must be a whole number, such as 20000000 or 2e7, but is 'many'.",
    ),
    ("train_game", ["--episodes=1.5"], "--episodes=1.5"),
    ("train_game", ["--episodes=1e999999999"], "--episodes=1e999999999"),
    ("train_game", ["--episodes=nan"], "--episodes=nan"),
    (
        "train_game",
        ["--batch_size=100000000000"],
        "batch_size=100000000000",
        "GiB of memory, but this machine has",
    ),
    ("train_game", ["--batch_size=0"], "batch_size must be at least 1, but is 0."),
    (
        "train_game",
        ["--policy=neural", "--hidden_layers=10000000,10000000"],
        "hidden_layers",
        "10000000",
        "GiB",
    ),
    ("train_game", ["--hidden_layers=64,wide"], "hidden_layers", "'64,wide'"),
    ("train_game", ["--hidden_layers=64,-1"], "hidden_layers", "-1"),
    ("train_game", ["--learner=spg", "--exploration=0.1"], SPG_EXPLORES_NOT, "spg has none"),
    ("train_game", ["--learner=neurd", "--exploration=0"], "exploration", "neurd has none"),
    ("train_game", ["--learner=spg", "--exploration_decay=1"], "exploration_decay", "spg has none"),
    ("train_game", ["--exploration=-0.1"], "exploration must lie in [0, 1], but is -0.1."),
    ("train_game", ["--step_size=nan"], "step_size must be a finite number of at least 0, but is nan."),
    ("train_game", ["--seed=-1"], "seed must be a whole number from 0 to 2147483647, but is -1."),
    ("train_game", ["--game=kuhn_poker", "--episodes=1e25"], "updates", "at most 2147483647"),
    ("train_game", ["--output_dir="], NO_FOLDER),
    ("train_game", ["--resume", "--overwrite"], "a run can be resumed or overwritten, but not both."),
    ("train_game", ["--resume"], "there is no run to resume in runs/game."),
    ("train_game", ["--output_dir=/proc/nowhere/run"], "/proc/nowhere/run cannot be written"),
    ("train_single_agent", ["--learner=spg", "--exploration=1"], SPG_HAS_NONE),
    ("train_single_agent", ["--exploration=0,much"], "exploration", "'0,much'"),
    ("train_single_agent", ["--exploration=0.1,0.1"], "explorations must differ, but are 0.1, 0.1."),
    ("train_single_agent", ["--learning_rate=0"], "learning_rate must be a finite number above 0, but is 0."),
    ("train_single_agent", ["--seeds=1e9"], "1000000000 runs", "GiB"),
    ("train_single_agent", ["--width=10000000"], "width=10000000", "GiB"),
    ("train_single_agent", ["--environment=pong"], "environment", "catch, cart_pole", "'pong'"),
    ("train_single_agent", ["--num_steps=1e6", "--interval=3e3"], "num_steps", "interval", "1000000", "3000"),
    ("train_single_agent", ["--environment=cart_pole", "--swap_every=5"], "swap_every", "environment=catch"),
    ("train_single_agent", ["--cores=999"], "cores must be between 1 and", "999"),
    ("train_single_agent", ["--horizon=1e25"], "horizon", "at most 2147483647"),
    ("train_single_agent", ["--exploration_decay=1e300"], "exploration_decay", "1e+300"),
    ("bandit", ["--problem=poker"], "problem", "bernoulli, switching", "'poker'"),
    ("bandit", ["--estimator=ix,icx"], "estimator", "importance, ix, cix", "'icx'"),
    ("bandit", ["--xi=1", "--exploration=0.1"], "xi and exploration exclude each other: give one of them"),
    ("bandit", ["--seeds=1e12"], "1000000000000 runs", "GiB"),
    ("bandit", ["--delta=1"], "delta must lie strictly between 0 and 1, but is 1."),
    ("sweep", [], "script must be given: one of train_game"),
    ("sweep", ["--script=train_go"], "script", "train_game", "'train_go'"),
    ("sweep", ["--script=train_game", "--sweep=episodes=1.5"], "episodes", "int", "'1.5'"),
    ("sweep", ["--script=train_game", "--sweep=seed=0:1000000000000"], "at most 1,000,000 settings"),
    (
        "sweep",
        ["--script=train_single_agent", "--sweep=learner=spg,neurd_cix", "--sweep=exploration=0,1"],
        SPG_HAS_NONE,
    ),
    ("sweep", ["--script=train_game", "--sweep=seed=1", "--executor=pbs"], "executor", "local, ray", "'pbs'"),
    (
        "sweep",
        ["--script=train_game", "--sweep=seed"],
        "a sweep is written name=value,value,..., but one is 'seed'.",
    ),
    ("summarise", [], "input must be given"),
    ("summarise", ["--input=/nowhere.csv"], "there is no file /nowhere.csv."),
    ("plot", [], "kind", "sensitivity"),
    ("plot", ["--kind=nash_conv", "--input=/nowhere.csv", "--output=/tmp/x.png"], "/nowhere.csv"),
    ("plot", ["--kind=nash_conv", "--input=a.csv", "--output="], "output", "empty"),
    ("plot", ["--kind=nash_conv", "--band=wide", "--input=a.csv", "--output=b.png"], "band", "'wide'"),
    ("reproduce_paper", ["--scale=huge"], "scale", "smoke, small, full", "'huge'"),
    ("reproduce_paper", ["--learning_rate=-1"], "learning_rate", "best, paper", "'-1'"),
    ("reproduce_paper", ["--cores=0"], "cores", "0"),
    ("evaluate", [], "checkpoint must be the folder of a run, but is empty."),
    ("evaluate", ["--checkpoint=/nowhere"], "/nowhere is not the folder of a run."),
    ("evaluate", ["--checkpoint=/tmp", "--use=worst"], "use", "average, current, best", "'worst'"),
    ("evaluate", ["--checkpoint=/tmp", "--episodes=1"], "episodes", "at least 100", "1"),
    ("report", [], "runs/game is not the folder of a run."),
    ("report", ["--checkpoint=/tmp", "--against=/nowhere"], "/nowhere"),
    ("report", ["--checkpoint=/tmp", "--output="], "output must be a file, but is ''."),
    ("report", ["--checkpoint=/tmp", "--output=/tmp"], "output", "'/tmp'"),
    ("report", ["--checkpoint=/tmp", "--max_histories=0"], "max_histories", "at least 1", "0"),
    ("play", ["--checkpoint=/nowhere"], "/nowhere"),
    ("play", ["--checkpoint=/tmp", "--seat=-1"], "seat", "-1"),
    ("play", ["--checkpoint=/tmp", "--use=both"], "use", "average, current", "'both'"),
    ("agent_loop", ["--game=2048"], "2048 gives no information-state tensors, which the agents need."),
    ("agent_loop", ["--game=mfg_crowd_modelling"], "mfg_crowd_modelling is a mean field game"),
    ("agent_loop", ["--checkpoint_dir=/etc/passwd"], "/etc/passwd is a file, but a run needs a folder."),
    ("agent_loop", ["--learner=spg", "--exploration=0.3"], SPG_HAS_NONE),
    ("agent_loop", ["--network=cnn"], "network", "mlp, table", "'cnn'"),
    ("agent_loop", ["--episodes=0"], "episodes", "at least 1", "0"),
    ("agent_loop", ["--episodes=10"], "batch_size", "10 episodes", "32"),
]


@pytest.mark.parametrize("case", FLAGS, ids=lambda case: " ".join([case[0], *case[1]])[:80])
def test_flags(case, tmp_path, monkeypatch, capfd):
    name, arguments, *words = case
    monkeypatch.chdir(tmp_path)  # where the folders of scripts are by default
    monkeypatch.setenv("PJRT_NPROC", "1")  # some scripts set it: this brings back what it was
    monkeypatch.setattr(records, "total_memory", lambda: 16 * 2.0**30)
    refusals.check_refused(name, arguments, words, tmp_path, capfd)


def test_every_script_is_here():
    assert {name for name, *_ in FLAGS} == set(refusals.SCRIPTS)


WRONG = {
    **dict.fromkeys(("train_game", "train_single_agent", "agent_loop"), "--learner=cfr"),
    "bandit": "--delta=2",
    "evaluate": "--checkpoint=/nowhere",
    "play": "--use=worst",
    "plot": "--kind=pie",
    "report": "--checkpoint=/nowhere",
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
    arguments = [word for name in refusals.SCRIPTS for word in (name, WRONG[name])]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        cwd=pathlib.Path(__file__).parent,
        check=True,
    )
    assert done.stdout.splitlines() == [f"{name} 2" for name in refusals.SCRIPTS for _ in range(2)]
    assert len(done.stderr.splitlines()) == 2 * len(refusals.SCRIPTS)


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        *(("train_game", "episodes"), ("train_single_agent", "num_steps")),
        *(("bandit", "horizon"), ("sweep", "cores"), ("reproduce_paper", "cores"), ("evaluate", "episodes")),
        *(("play", "seed"), ("agent_loop", "episodes")),
    ],
)
def test_whole_numbers_may_be_written_with_a_power_of_ten(name, flag):
    with loaded_scripts.loaded(name) as script, flagsaver.flagsaver():
        script.command_line.parse([name, f"--{flag}=2e7"])
        assert script.command_line.flags.FLAGS[flag].value == 20_000_000
