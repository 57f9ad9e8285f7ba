"""The code in README.md and docs/ runs and has the values it says; links lead somewhere."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCUMENTS = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(document):
    """Its Python code, block by block."""
    return re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)


def run(code, names, document):
    exec(compile(code, str(document), "exec"), names)


@pytest.mark.thorough
def test_code_of_the_readme():
    first, *others = blocks(README)
    assert len(others) >= 3
    names: dict = {}
    run(first, names, README)
    assert names["openspiel"].nash_conv(names["tree"], names["policy"]) == pytest.approx(0.0357, abs=1e-4)
    for block in others:
        run(block, names, README)
    uniform = names["exact"].uniform(names["tree"])
    assert names["openspiel"].nash_conv(names["tree"], uniform) == pytest.approx(4.747222, abs=1e-6)
    estimate = names["estimators"].advantages(-1.0, 0, names["probabilities"], 0.25)
    assert estimate.tolist() == [-1.5, 0.5]


@pytest.mark.thorough
def test_code_of_the_solver():
    (block,) = blocks(ROOT / "docs" / "openspiel.md")
    names: dict = {}
    run(block, names, "openspiel.md")
    assert names["solver"].updates == 1_000
    assert names["solver"].nash_conv() == pytest.approx(4.6e-8, rel=0.02)


@pytest.mark.thorough
def test_code_of_large_games():
    (block,) = blocks(ROOT / "docs" / "large_games.md")
    names: dict = {}
    run(block, names, "large_games.md")
    world, exact = names["world"], names["exact"]
    assert exact.nash_conv(world, exact.uniform(world)) == pytest.approx(0.916667, abs=1e-6)
    assert names["solver"].nash_conv() == pytest.approx(0.0028, abs=1e-4)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(((?!http)[^)]+)\)", text):
        assert (document.parent / target).exists(), target
    for script in re.findall(r"(?:run_scripts|benchmarks|studies)/[\w/]+\.py", text):
        assert (ROOT / script).exists(), script


def test_speed_ratios_are_the_recorded_ones():
    """Every ratio in the README's table stands in what the benchmarks printed."""
    text = README.read_text(encoding="utf-8")
    recorded = "".join(file.read_text() for file in (ROOT / "studies" / "speed").glob("*.txt"))
    ratios = re.findall(r"\| ([\d,.]+x) \|", text)
    assert len(ratios) == 8
    for ratio in ratios:
        assert re.search(rf" {re.escape(ratio)}( \(bar|$)", recorded, re.MULTILINE), ratio
