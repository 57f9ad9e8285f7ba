"""run_scripts/plot.py, called in-process."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver

from pohp_neurd.experiment import game_task, live, request, schema, single_agent
from pohp_neurd.results import records, table

STUDIES = pathlib.Path(__file__).resolve().parents[2] / "studies"
CURVES = STUDIES / "single_agent"


def call(script, *arguments):
    with flagsaver.flagsaver():
        script.main(flags.FLAGS(["plot", *arguments]))


@pytest.fixture
def sweep(tmp_path):
    generator = np.random.default_rng(0)
    rows = [
        {
            "id": f"{learner}-{exploration}-{seed}",
            "environment": environment,
            "learner": learner,
            "exploration": exploration,
            "learning_rate": 0.1,
            "seed": seed,
            "steps": 300,
            "total_reward": generator.normal(),
        }
        for environment in ("catch", "cart_pole")
        for learner, exploration in (("spg", ""), ("neurd_cix", 0.0), ("neurd_cix", 1.0))
        for seed in range(3)
    ]
    path = tmp_path / "results.csv"
    records.write_csv(path, rows, list(rows[0]))
    return path


def test_the_papers_figure_comes_from_a_sweep(script, sweep, tmp_path, capsys):
    picture = tmp_path / "pictures" / "x.png"
    given = ["--kind=sensitivity", f"--input={sweep}", "--reference=learner=spg", "--panels=environment"]
    call(script, *given, f"--output={picture}")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.splitlines()[1:] == [str(picture)]  # after what it says as it begins


def test_learning_rates_come_from_a_sweep(script, sweep, tmp_path):
    given = ["--kind=learning_rates", f"--input={sweep}", "--where=environment=catch", "--where=learner=spg"]
    call(script, *given, f"--output={tmp_path / 'x.svg'}")
    assert "SPG: mean of 3 runs" in (tmp_path / "x.svg").read_text("utf-8")


def test_the_recorded_runs_are_drawn(script, tmp_path):
    learner = CURVES / "catch_paper_neurd_cix.csv"
    named = [f"--input=SPG={CURVES / 'catch_paper_spg.csv'}", f"--input=NeuRD={learner}@exploration=0"]
    call(script, "--kind=learning_curves", *named, f"--output={tmp_path / 'curves.svg'}")
    assert "<!-- NeuRD -->" in (tmp_path / "curves.svg").read_text("utf-8")
    given = [f"--input={STUDIES / 'self_play' / 'leduc_tabular.csv'}", f"--output={tmp_path / 'game.png'}"]
    call(script, "--kind=nash_conv", *given)
    assert (tmp_path / "game.png").stat().st_size > 10_000


def test_of_whole_curves_the_last_rows_are_final_figures():
    rows = request.read(str(CURVES / "catch_paper_neurd_cix.csv"))
    final = request.last(rows)
    assert len(final) == 3 * 4
    assert {row["steps"] for row in final} == {300_000}
    assert request.last(final) == final
    mean = np.mean([row["total_reward"] for row in final if row["exploration"] == 1])
    assert round(mean) == -15_036  # docs/catch_and_cart_pole.md


def test_the_last_row_of_a_run_must_be_known():
    run = {"exploration": 0.1, "seed": 3}
    curve = [{**run, "steps": 0, "updates": moment, "nash_conv": 1 / moment} for moment in (2, 3, 1)]
    assert request.last(curve) == [curve[1]]  # expected updates take no steps
    with pytest.raises(
        ValueError, match=r"^steps must be a finite number .* exploration=0.1, seed=3, updates=3"
    ):
        request.last([curve[0], {**curve[1], "steps": ""}])
    with pytest.raises(ValueError, match=r"2 rows with exploration=0.1, seed=3, steps=0, updates=3, but one"):
        request.last([*curve, {**curve[1], "nash_conv": 9}])
    with pytest.raises(ValueError, match=r"2 rows with exploration=0.1, seed=3, .* differ in nash_conv"):
        request.last([{**run, "nash_conv": 1}, {**run, "nash_conv": 2}])
    final = {**run, "steps": ""}
    assert request.last([final]) == [final]


def test_what_is_no_setting_in_a_table_of_curves():
    """`request` names the columns by itself, so that a picture is drawn without loading JAX."""
    written = {
        *single_agent.COLUMNS,
        *game_task.COLUMNS,
        *live.AGAINST_UNIFORM,
        *live.ALONE,
        *game_task.INFO,
    }
    assert written - {"learning_rate", "exploration", "seed"} == request.FIGURES


def test_inputs_have_names_and_conditions(tmp_path):
    folder = tmp_path / "seed=3"
    folder.mkdir()
    file = folder / "x.csv"
    file.write_text("a,b\n1,2\n3,4\n")
    assert request.read(str(file)) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert request.read(f"η=0={file}@a=3,b=4") == [{"a": 3, "b": 4, "input": "η=0"}]
    assert request.read(f"{file}@a=1") == [{"a": 1, "b": 2}]
    assert table.read(file) == request.read(str(file))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "kind must be one of sensitivity, learning_rates, learning_curves, nash_conv, but is ''."),
        (["--kind=sensitivity"], "there is nothing to draw: give at least one input."),
        (["--kind=sensitivity", "--input=x.csv", "--output="], "output must name the picture, but is empty."),
        (["--kind=sensitivity", "--input=x.csv", "--output=/"], "output must name the picture, but is /."),
        (["--kind=sensitivity", "--input={sweep.parent}"], "must be a file, but is a folder."),
        (["--kind=sensitivity", "--input=nowhere.csv"], "there is no file nowhere.csv."),
        (["--kind=sensitivity", "--input=SPG=nowhere.csv"], "there is no file nowhere.csv."),
        (
            ["--kind=sensitivity", "--input={sweep}", "--where=learner=sarsa"],
            "no row has learner=sarsa; there learner is one of: spg, neurd_cix.",
        ),
        (["--kind=sensitivity", "--input={sweep}", "--where=learner"], "a condition is written column=value"),
        (["--kind=sensitivity", "--input={sweep}", "--reference=sarsa=1"], "there is no column 'sarsa'"),
        (
            ["--kind=sensitivity", "--input={sweep}", "--value=nash_conv"],
            "exploration must be a finite number",
        ),
        (["--kind=learning_rates", "--input={sweep}", "--series=policy"], "there is no column 'policy'"),
        (
            ["--kind=sensitivity", "--input={sweep}", "--reference=learning_rate=0.1"],
            "all rows have learning_rate=0.1: nothing is left to compare with them.",
        ),
        (["--kind=learning_curves", "--input={sweep}"], "there is no column 'reward'"),
        (["--kind=nash_conv", "--input={sweep}"], "there is no column 'updates'"),
        (["--kind=nash_conv", "--input=x", "--panels=game"], "panels are for sensitivity and learning_rates"),
        (["--kind=nash_conv", "--input=x", "--reference=a=b"], "a reference is for sensitivity"),
        (["--kind=nash_conv", "--input=x", "--band=sigma"], "band must be one of interquartile, bootstrap"),
        (
            ["--kind=learning_rates", "--input={sweep}", "--input=a={sweep}"],
            "either all inputs must have names",
        ),
    ],
)
def test_wrong_arguments_get_one_sentence(script, sweep, tmp_path, capsys, arguments, sentence):
    picture = tmp_path / "pictures" / "x.png"
    given = [argument.format(sweep=sweep) for argument in arguments]
    with pytest.raises(SystemExit) as caught:
        call(script, f"--output={picture}", *given)
    assert caught.value.code == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert not picture.parent.exists()


@pytest.mark.thorough
def test_help_has_examples_and_every_flag(script):
    path = pathlib.Path(script.__file__)
    told = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True, check=True).stdout
    assert all(f"--kind={kind}" in told for kind in request.KINDS)
    assert all(f"  --{flag.name} " in told for flag in schema.flags(request.Config))
