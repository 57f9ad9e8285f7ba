"""A damaged, foreign or locked file is refused in one sentence, and every file stays as it was, to the byte.

The first entry of each kind of mistake has the whole sentence. The others have what it must name.
"""

import fcntl
import json
import shutil

import pytest
from refusals import called, check_refused, contents, edited, with_json, written

from pohp_neurd.experiment import game, game_config

TINY = game_config.Config(game="kuhn_poker", episodes=512, batch_size=64, eval_every=128, checkpoint_every=1)
TRAIN = [
    "--game=kuhn_poker",
    *("--episodes=512", "--batch_size=64", "--eval_every=128", "--checkpoint_every=1", "--output_dir=run"),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run in Kuhn poker, and another of the same game with another seed."""
    folder = tmp_path_factory.mktemp("trained")
    game.run(TINY, folder / "run")
    game.run(game_config.Config(**{**vars(TINY), "seed": 1}), folder / "other")
    return folder


@pytest.fixture
def place(trained, tmp_path, monkeypatch):
    """A folder with copies of both, which is the current one."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def swapped(place):
    shutil.rmtree(place / "run" / "checkpoints")
    shutil.copytree(place / "other" / "checkpoints", place / "run" / "checkpoints")


def without_rows(text):
    return "".join(text.splitlines(keepends=True)[:-2])


RESUME = ("train_game", [*TRAIN, "--resume"])
SWEEP = ("sweep", ["--grid=grid.json", "--output_dir=swept"])
EVALUATE, PLAY = ("evaluate", ["--checkpoint=run"]), ("play", ["--checkpoint=run", "--seat=0"])
REPORT = ("report", ["--checkpoint=run", "--output=page.html"])
SUMMARISE = ("summarise", ["--input=table.csv", "--by=learner"])
PLOT = ("plot", ["--kind=nash_conv", "--input=table.csv", "--output=picture.png"])
GRID = '{"script": "train_game", "sweep": '
OUTCOME = "swept/outcomes/x.json"

FILES = [
    (RESUME, written("run/config.json", "[]"), "run/config.json must hold a JSON object, but holds a list."),
    (RESUME, written("run/config.json", "null"), "run/config.json", "null"),
    (RESUME, written("run/config.json", "{"), "run/config.json is not valid JSON"),
    (RESUME, written("run/config.json", b"\xff\xfe"), "run/config.json must be text in UTF-8, but is not."),
    (
        RESUME,
        with_json("run/config.json", seed=3),
        "cannot resume run with another configuration: seed was 3 and is now 0.",
    ),
    (
        RESUME,
        with_json("run/checkpoints/*.json", leaves=None),
        "no checkpoint in run/checkpoints is whole: step_",
    ),
    (RESUME, with_json("run/checkpoints/*.json", leaves=[None]), "run/checkpoints", "step_000000008.json"),
    (RESUME, with_json("run/checkpoints/*.json", leaves=[]), "run/checkpoints", "step_000000008.npz"),
    (
        RESUME,
        with_json("run/checkpoints/*.json", sha256=7),
        "run/checkpoints",
        "step_000000008.npz",
        "checksum",
    ),
    (RESUME, written("run/checkpoints/*.json", "[]"), "run/checkpoints", "step_000000008.json"),
    (RESUME, written("run/checkpoints/*.npz", b"PK"), "run/checkpoints", "step_000000008.npz", "checksum"),
    (
        RESUME,
        with_json("run/checkpoints/*.json", run="another"),
        "checkpoint 8 in run/checkpoints",
        "another run",
    ),
    (RESUME, swapped, "checkpoint 8 in run/checkpoints is of another run, with another configuration."),
    (
        RESUME,
        edited("run/metrics.csv", lambda text: text[:-25] + "\n"),
        "line 5 of run/metrics.csv",
        "header",
    ),
    (
        RESUME,
        edited("run/metrics.csv", lambda text: text[:-3]),
        "run/metrics.csv ends in the middle of a line.",
    ),
    (
        RESUME,
        edited("run/metrics.csv", lambda text: text.replace("128", "soon", 1)),
        "episodes must be a number in line 2 of run/metrics.csv, but is 'soon'.",
    ),
    (
        RESUME,
        edited("run/metrics.csv", lambda text: text.replace("nash_conv", "nash")),
        *("run/metrics.csv", "nash_conv", "nash_average"),
    ),
    (RESUME, edited("run/metrics.csv", without_rows), "run/metrics.csv", "4 evaluations"),
    (RESUME, written("run/metrics.csv", b"\x00\xff"), "run/metrics.csv", "UTF-8"),
    (
        ("train_game", TRAIN),
        None,
        "run already holds a run: choose another folder, or resume or overwrite it.",
    ),
    (
        ("train_game", ["--output_dir=mine"]),
        written("mine/thesis.tex", "x"),
        "mine holds files that are not a run's: choose another folder.",
    ),
    (
        ("train_game", ["--output_dir=mine"]),
        written("mine", "x"),
        "mine is a file, but a run needs a folder.",
    ),
    (SWEEP, None, "there is no file grid.json."),
    (
        SWEEP,
        written("grid.json", "7"),
        'grid.json must hold {"script": ..., "sweep": ...}, or a list of such.',
    ),
    (SWEEP, written("grid.json", "[]"), "there is nothing to sweep"),
    (SWEEP, written("grid.json", GRID + "[]}"), "grid.json", "[]"),
    (SWEEP, written("grid.json", GRID + '{"seed": [{}]}}'), "seed", "int", "{}"),
    (SWEEP, written("grid.json", GRID + '{"seed": 1e99}}'), "seed", "int", "1e+99"),
    (
        SWEEP,
        written("grid.json", GRID + '{"seed": 1, "learner": "spg", "exploration": 1}}'),
        *("exploration", "spg has none"),
    ),
    (EVALUATE, written("run/policy/about.json", "[]"), "run/policy/about.json is damaged."),
    (EVALUATE, written("run/policy/about.json", '{"game"'), "run/policy/about.json"),
    (EVALUATE, with_json("run/policy/about.json", color="red"), "run/policy/about.json"),
    (EVALUATE, with_json("run/policy/step_*.json", leaves=None), "run/policy/step_000000008.json"),
    (EVALUATE, written("run/policy/*.npz", b""), "run/policy", "step_000000008.npz", "checksum"),
    (("evaluate", ["--checkpoint=."]), None, "there is no trained policy in ."),
    (PLAY, written("run/policy/about.json", "null"), "run/policy/about.json"),
    (("play", ["--checkpoint=run", "--seat=7"]), None, "seat must be one of 0 to 1, but is 7."),
    (REPORT, written("run/config.json", "{"), "run/config.json"),
    (REPORT, written("run/config.json", "{}"), "run must be a run of train_game or train_single_agent"),
    (REPORT, written("run/config.json", '{"environment": "catch", "color": 1}'), "run/config.json"),
    (REPORT, written("run/metrics.csv", ""), "run/metrics.csv has no rows."),
    (
        REPORT,
        edited("run/metrics.csv", lambda text: text.replace("128", "soon", 1)),
        *("run/metrics.csv", "'soon'"),
    ),
    (REPORT, written("run/policy/about.json", "[]"), "run/policy/about.json"),
    (REPORT, with_json("run/policy/about.json", game="leduc_poker"), "policy must have the shape (936, 3)"),
    (("report", ["--checkpoint=."]), None, ". is not the folder of a run: it has no config.json."),
    (SUMMARISE, written("table.csv", ""), "table.csv has no rows."),
    (SUMMARISE, written("table.csv", "learner,seed\nspg\n"), "line 2 of table.csv", "header"),
    (
        SUMMARISE,
        written("table.csv", "learner,seed\nspg,1\n"),
        "'total_reward'; the columns are learner, seed.",
    ),
    (
        SUMMARISE,
        written("table.csv", "learner,total_reward\nspg,much\n"),
        "total_reward",
        "'much'",
        "learner=spg",
    ),
    (SUMMARISE, written("table.csv", b"\x00\xff"), "table.csv", "UTF-8"),
    (
        PLOT,
        written("table.csv", "learner,learner\nspg,1\n"),
        "table.csv must have one column 'learner', but has 2.",
    ),
    (PLOT, written("table.csv", "exploration,episodes\n1,2\n"), "the columns are exploration, episodes."),
]


@pytest.mark.parametrize("case", FILES, ids=lambda case: f"{case[0][0]}: {case[2][:60]}")
def test_files(case, place, capfd):
    call, change, *words = case
    if change is not None:
        change(place)
    check_refused(*call, words, place, capfd)


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
        words = [f"another {what} is at work in {folder} (process 4711)", "or choose another folder."]
        check_refused(name, arguments, words, place, capfd)


def test_outcomes_of_a_sweep(place, capfd):
    """Its folder is made ready before they are read, so that other files may come."""
    for text, words in (("[]", "must hold a JSON object"), ('{"flags": 7}', "is not what a sweep writes")):
        written(OUTCOME, text)(place)
        assert called("sweep", ["--script=bandit", "--sweep=seed=0", "--output_dir=swept"]) == 2
        (line,) = capfd.readouterr().err.strip().splitlines()
        assert words in line
        assert (place / OUTCOME).read_text() == text


def test_what_is_no_checkpoint_is_left_alone(place, capfd):
    """A stray file, and the marks that a finished run has: resuming it changes nothing but its figure."""
    written("run/checkpoints/step_abc.json", "{}")(place)
    written("run/checkpoints/step_7.json", "{}")(place)
    before = contents(place / "run" / "checkpoints")
    assert called(*RESUME) == 0
    assert contents(place / "run" / "checkpoints") == before
    opening, closing = capfd.readouterr().err.splitlines()  # and no word of damage between
    assert " as a tree: " in opening
    assert closing.startswith("All files are in ")


def test_a_checkpoint_of_before_runs_were_told_apart_is_resumed(place):
    edited("run/checkpoints/*.json", lambda text: json.dumps({**json.loads(text), "run": None}))(place)
    assert called(*RESUME) == 0
