"""The list of mutants is one that can be applied, and the script tells caught from survived."""

import subprocess
import sys

import mutants
import pytest


def test_every_mutant_can_be_applied():
    """A change of the code that leaves a mutant behind is told here, and not first by `make mutants`."""
    assert len(mutants.MUTANTS) >= 60
    assert len({mutant.name for mutant in mutants.MUTANTS}) == len(mutants.MUTANTS)
    assert sum(bool(mutant.accepted) for mutant in mutants.MUTANTS) <= mutants.MAX_SURVIVORS
    for mutant in mutants.MUTANTS:
        content = (mutants.ROOT / mutant.file).read_text(encoding="utf-8")
        assert content.count(mutant.old) == 1, f"{mutant.name}: not one place in {mutant.file}"
        changed = content.replace(mutant.old, mutant.new)
        assert changed != content
        compile(changed, mutant.file, "exec")
        for name in mutant.tests.split():
            file, _, test = name.partition("::")
            written = (mutants.ROOT / "tests" / file).read_text(encoding="utf-8")
            assert f"def {test}" in written, f"{mutant.name}: there is no test {name}"


@pytest.mark.slow
def test_verdicts(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "arithmetic.py").write_text(
        "def twice(x):\n    return 2 * x\n\n\ndef half(x):\n    return x / 2\n"
    )
    tests = {
        "test_twice.py": "import arithmetic\n\n\ndef test_twice():\n    assert arithmetic.twice(2) == 4\n",
        "test_half.py": "import arithmetic\n\n\ndef test_half():\n    assert arithmetic.half(2) == 1\n",
    }
    for name, content in tests.items():
        (tmp_path / "tests" / name).write_text(content)
    before = (tmp_path / "arithmetic.py").read_text()

    def verdict(old, new):
        return mutants.judge(mutants.Mutant("it", "arithmetic.py", old, new, "test_twice.py"), tmp_path)

    assert verdict("2 * x", "3 * x") == (mutants.CAUGHT, "tests/test_twice.py::test_twice")
    # By a test of the folder that was not named.
    assert verdict("x / 2", "x / 3") == (mutants.CAUGHT, "tests/test_half.py::test_half")
    assert verdict("2 * x", "x + x").verdict == mutants.SURVIVED
    assert verdict("x", "y").verdict == mutants.STALE
    # What cannot be imported is noticed by anything, and says nothing about the tests.
    assert verdict("def twice(x):", "def twice(x:").verdict == mutants.BROKEN
    assert (tmp_path / "arithmetic.py").read_text() == before


@pytest.mark.thorough
def test_a_name_that_is_none():
    run = subprocess.run(
        [sys.executable, mutants.__file__, "--only", "no such change"], capture_output=True, text=True
    )
    assert run.returncode == 2
    assert "no mutant's name holds no such change." in run.stderr
