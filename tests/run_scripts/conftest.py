"""Scripts loaded as modules, so that their `main` can be called in-process."""

import pathlib

import loaded_scripts
import pytest


@pytest.fixture(scope="module")
def script(request):
    """The script that the test module is named after: test_NAME.py is of run_scripts/NAME.py."""
    name = pathlib.Path(request.path).stem.removeprefix("test_")
    with loaded_scripts.loaded(name) as module:
        yield module
