"""The README's code runs, and says what it says."""

import pathlib
import re

import pytest

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


@pytest.fixture(scope="module")
def blocks():
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.thorough
def test_code_blocks_run(blocks):
    assert len(blocks) >= 3
    names: dict = {}
    exec(compile(blocks[0], str(README), "exec"), names)
    assert names["openspiel"].nash_conv(names["tree"], names["policy"]) == pytest.approx(0.199, abs=1e-3)
    for block in blocks[1:]:
        exec(compile(block, str(README), "exec"), names)
    uniform = names["exact"].uniform(names["tree"])
    assert names["openspiel"].nash_conv(names["tree"], uniform) == pytest.approx(4.747222, abs=1e-6)
    estimate = names["estimators"].advantages(-1.0, 0, names["probabilities"], 0.25)
    assert estimate.tolist() == [-1.5, 0.5]


def test_links_lead_somewhere():
    text = README.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(((?!http)[^)]+)\)", text):
        assert (README.parent / target).exists(), target
    for script in re.findall(r"run_scripts/\w+\.py", text):
        assert (README.parent / script).exists(), script


def test_speed_figures_are_the_recorded_ones():
    """Every ratio in the README's table stands in what the benchmarks printed."""
    text = README.read_text(encoding="utf-8")
    recorded = "".join(file.read_text() for file in (README.parent / "results" / "speed").glob("*.txt"))
    ratios = re.findall(r"\| ([\d,.]+x) \|", text)
    assert len(ratios) == 9
    for ratio in ratios:
        assert re.search(rf" {re.escape(ratio)}( \(bar|$)", recorded, re.MULTILINE), ratio
