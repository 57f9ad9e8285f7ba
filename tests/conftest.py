"""Settings of all tests: strict promotion, one compilation cache, reproducible hypothesis."""

import contextlib
import dataclasses
import pathlib

import hypothesis
import jax
import pytest

_CACHE = pathlib.Path(__file__).resolve().parents[1] / ".cache" / "jax"

# Mixed dtypes and silent broadcasting hide mistakes: in tests both are errors.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(_CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

hypothesis.settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("project")


@dataclasses.dataclass
class Compilations:
    """How many functions have been lowered and compiled inside a `with count_compilations()`."""

    count: int = 0


@pytest.fixture
def count_compilations():
    """A context manager that counts compilations: a second call of anything must make none."""

    @contextlib.contextmanager
    def counting():
        seen = Compilations()

        def listen(event, *_, **__):
            if event == "/jax/core/compile/jaxpr_to_mlir_module_duration":
                seen.count += 1

        jax.monitoring.register_event_duration_secs_listener(listen)
        try:
            yield seen
        finally:
            jax.monitoring.unregister_event_duration_listener(listen)

    return counting
