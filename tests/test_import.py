"""The package from outside: what an import costs, which names it has, what the notation table promises."""

import importlib
import pathlib
import re
import subprocess
import sys

import pytest

import pohp_neurd

NOTATION = pathlib.Path(__file__).resolve().parents[1] / "docs" / "notation.md"


def test_modules_load_on_first_use():
    program = (
        "import sys, pohp_neurd; assert 'jax' not in sys.modules; "
        "print(pohp_neurd.estimators.cix_weight(0.25, 0.25)); "
        "print(pohp_neurd.games.matrix_game.bandit([0.5]).num_histories, pohp_neurd.__version__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2.0", "4", pohp_neurd.__version__]


def test_unknown_names_are_attribute_errors():
    assert not hasattr(pohp_neurd, "no_such_module")
    with pytest.raises(AttributeError, match="module 'pohp_neurd' has no attribute 'no_such_module'"):
        _ = pohp_neurd.no_such_module


@pytest.mark.parametrize("name", ["pohp_neurd", "pohp_neurd.bandit", "pohp_neurd.games", "pohp_neurd.online"])
def test_public_names_exist_and_are_listed(name):
    room = importlib.import_module(name)
    assert list(room.__all__) == sorted(set(room.__all__))
    assert set(room.__all__) <= set(dir(room))
    for public in room.__all__:
        getattr(room, public)


def test_unknown_names_of_rooms_are_attribute_errors():
    with pytest.raises(AttributeError, match=r"module 'pohp_neurd\.online' has no attribute 'offline'"):
        _ = pohp_neurd.online.offline


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("from pohp_neurd.online.options import Options", "jax"),
        ("import pohp_neurd.online; dir(pohp_neurd.online)", "jax"),
        ("from pohp_neurd.games import catch, cart_pole, matrix_game", "pyspiel"),
    ],
)
def test_what_an_import_leaves_alone(statement, absent):
    program = f"{statement}\nimport sys; assert {absent!r} not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_package_is_typed():
    assert (pathlib.Path(pohp_neurd.__file__).parent / "py.typed").exists()


def test_a_missing_dependency_keeps_its_own_message():
    program = "import sys; sys.modules['optax'] = None; import pohp_neurd; pohp_neurd.optimizers"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ModuleNotFoundError: import of optax" in done.stderr


def test_the_notation_table_names_functions_that_exist():
    names = re.findall(
        r"`(?:pohp_neurd\.)?((?:(?:games|finite|online)\.)?[a-z_]+)\.([A-Za-z_.0-9]+)`",
        NOTATION.read_text("utf-8"),
    )
    assert len(names) > 30
    for module, path in names:
        found = importlib.import_module(f"pohp_neurd.{module}")
        for attribute in path.split("."):
            fields = getattr(found, "__annotations__", {})
            assert hasattr(found, attribute) or attribute in fields, f"{module}.{path}"
            found = getattr(found, attribute, None)
