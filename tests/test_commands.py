"""`pohp-neurd`: every script is a command, and none loads JAX before its flags are read."""

import pathlib
import subprocess
import sys
import warnings

import pytest
import refusals

import pohp_neurd
from pohp_neurd import __main__ as commands
from pohp_neurd.experiment import command_line


def call(*arguments):
    line = [sys.executable, "-m", "pohp_neurd", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_every_script_is_a_command():
    assert sorted(command.replace("-", "_") for command in commands.COMMANDS) == refusals.SCRIPTS


def test_help_and_version():
    told = call()
    assert told.returncode == 0
    lines = {line.split()[0]: line for line in told.stdout.splitlines() if line.startswith("  ")}
    assert set(lines) == set(commands.COMMANDS)
    assert "self-play" in lines["train-game"]
    assert call("--help").stdout == told.stdout
    assert call("--version").stdout == f"pohp_neurd {pohp_neurd.__version__}\n"


def test_a_wrong_command():
    told = call("train-gme", "--game=kuhn_poker")
    assert told.returncode == 2
    assert told.stderr == "'train-gme' is no command: did you mean train-game?\n"
    assert call("42").stderr == "'42' is no command: see pohp-neurd --help.\n"


def test_help_into_a_pipe_that_is_closed():
    line = f"{sys.executable} -m pohp_neurd train-game --help | head -n 1"
    told = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("Trains a policy profile")
    assert told.stderr == ""


def test_only_our_own_warnings_are_shown(capsys):
    for file in (commands.__file__, warnings.__file__):
        command_line.warned(f"from {file}", UserWarning, file, 1)
    assert capsys.readouterr().err == f"from {commands.__file__}\n"


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--version", 0), ("--no_such_flag=1", 2)])
def test_flags_are_read_before_jax_is_loaded(argument, code):
    """Of one command; that no script loads it earlier is tested with wrong flags of all."""
    program = (
        f"import sys; sys.argv = ['pohp-neurd', 'train-game', {argument!r}]\n"
        "from pohp_neurd import __main__\n"
        "try: __main__.main()\n"
        "finally: assert not {'jax', 'pyspiel', 'matplotlib'} & set(sys.modules), 'too early'"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert ("no_such_flag" in done.stderr) == (code == 2)


@pytest.mark.thorough
def test_a_command_is_its_script(tmp_path):
    small = ["--problem=bernoulli", "--horizon=20", "--seeds=2", "--seed=3"]
    script = pathlib.Path(__file__).resolve().parents[1] / "run_scripts" / "bandit.py"
    for folder, line in (("command", ["-m", "pohp_neurd", "bandit"]), ("script", [str(script)])):
        flags = [*small, f"--output_dir={tmp_path / folder}"]
        subprocess.run([sys.executable, *line, *flags], check=True, capture_output=True, cwd=tmp_path)
    rows = [
        [line.split(",")[4:] for line in (tmp_path / folder / "metrics.csv").read_text().splitlines()]
        for folder in ("command", "script")
    ]
    assert len(rows[0]) > 1
    assert rows[0] == rows[1]
