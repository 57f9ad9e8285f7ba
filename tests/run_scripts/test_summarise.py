"""The script on a table made by hand."""

import pytest
from absl.testing import flagsaver

from pohp_neurd.results import records


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(
        "id,game,exploration,seed,nash_conv\n"
        "a,kuhn,0.0,0,1.0\nb,kuhn,0.0,1,3.0\nc,kuhn,0.5,0,2.0\nd,kuhn,0.5,1,2.0\ne,leduc,0.5,0,9.0\n"
    )
    return path


def test_a_table_on_the_screen_and_as_csv(script, results, tmp_path, capsys):
    output = tmp_path / "table.csv"
    with flagsaver.flagsaver(
        input=str(results), by=["exploration"], value="nash_conv", where=["game=kuhn"], output=str(output)
    ):
        script.main([])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| exploration | runs | mean |")
    assert lines[2] == "| 0 | 2 | 2 | 1 to 3 | 2 | 2 | 3 to 1 |"  # the smallest NashConv is the best
    first, second = records.read_csv(output)
    assert (first["mean"], first["worst"], first["best"]) == ("2.0", "3.0", "1.0")
    assert (second["exploration"], second["mean_low"], second["mean_high"]) == ("0.5", "2.0", "2.0")


def test_settings_against_one_of_them(script, results, capsys):
    with flagsaver.flagsaver(
        input=str(results),
        by=["exploration"],
        value="nash_conv",
        where=["game=kuhn"],
        against="exploration=0.5",
    ):
        script.main([])
    heads, _, first, second = capsys.readouterr().out.splitlines()
    assert heads.endswith("| less exploration=0.5 | its 95% interval |")
    assert first.endswith("| 0 | −1 to 1 |")
    assert second.endswith("| – | – to – |")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "input must be given"),
        ({"input": "nowhere.csv"}, "there is no file nowhere.csv"),
        ({"value": "reward"}, "there is no column 'reward'"),
        ({"by": ["rate"]}, "there is no column 'rate'"),
        ({"where": ["game=go"]}, "no row has game=go"),
        ({"against": "game=go"}, "no row has game=go"),
        (
            {"output": "nodir/x.csv", "where": ["game=kuhn"]},
            "nodir/x.csv cannot be used: there is no folder nodir.",
        ),
    ],
)
def test_bad_flags(script, results, given, sentence, capsys):
    chosen = {"input": str(results), "by": ["exploration"], "value": "nash_conv", **given}
    if not given:
        chosen["input"] = ""
    with flagsaver.flagsaver(**chosen), pytest.raises(SystemExit) as caught:
        script.main([])
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith(sentence)
