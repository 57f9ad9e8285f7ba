"""Settings of all tests: strict promotion, one compilation cache, reproducible hypothesis."""

import pathlib

import hypothesis
import jax

_CACHE = pathlib.Path(__file__).resolve().parents[1] / ".cache" / "jax"

# Mixed dtypes and silent broadcasting hide mistakes: in tests both are errors.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(_CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

hypothesis.settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("project")
