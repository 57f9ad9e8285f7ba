"""Scripts loaded as modules, so that their `main` can be called in-process."""

import contextlib
import importlib.util
import pathlib

from absl import flags

_SCRIPTS = pathlib.Path(__file__).resolve().parents[1] / "run_scripts"


@contextlib.contextmanager
def loaded(name):
    """The script `name` as a module, with its flags, until the block ends."""
    known = set(flags.FLAGS)
    spec = importlib.util.spec_from_file_location(f"run_scripts_{name}", _SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not flags.FLAGS.is_parsed():
        flags.FLAGS([name])
    try:
        yield module
    finally:
        # Scripts share the names of their flags, and a process has one place for all of them.
        for flag in set(flags.FLAGS) - known:
            delattr(flags.FLAGS, flag)
