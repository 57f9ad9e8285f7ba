"""Functions compiled with numba as operations of JAX, for what XLA cannot say, such as skipping rows.

An operation reads and writes XLA's own buffers within a jitted program, without Python. XLA calls it through
its foreign function interface, whose layout in memory is stable (xla/ffi/api/c_api.h, shipped with jaxlib):
structures of words of eight bytes. Operations are of the CPU alone.
"""

import ctypes
import inspect
from collections.abc import Callable
from typing import Any

import jax
import numba
from numba import types
from numba.extending import intrinsic

Words = Any
"""Within numba: a pointer to words of eight bytes."""

_WORDS = types.CPointer(types.int64)
# Where things stand, in words: in a call frame, in an extension, in its metadata, and in a buffer.
_EXTENSION, _ARGUMENTS, _RESULTS = 1, 9, 14
_METADATA = 3
_API_VERSION = 3
_DATA, _SIZES = 3, 5
_VERSION = 1 << 32
"""0.1, the oldest that XLA still takes: the minor number is the upper half of the word."""

_kept: dict[str, Any] = {}
"""The compiled code of every operation: XLA has its address alone."""


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: numba's, for what operations are made of, and for loops over arrays on the host."""
    # Unwrapped: the shape checks of the tests wrap every function, and numba compiles plain ones only. With
    # numba's own `error_model` a division asks whether it is by zero, and no loop around it is vectorised.
    return lambda function: numba.njit(cache=True, error_model="numpy", **options)(inspect.unwrap(function))


def register(name: str, call: Callable[[Words, Words], None]) -> None:
    """Makes `call` known to JAX by `name`: a compiled function of the buffers given and of those to fill."""

    def handler(frame: Any) -> int:
        if frame[_EXTENSION] != 0:  # XLA asks for the version that this was written for
            metadata = _words(_words(frame[_EXTENSION])[_METADATA])
            metadata[_API_VERSION] = _VERSION
        else:
            call(_words(frame[_ARGUMENTS]), _words(frame[_RESULTS]))
        return 0

    code: Any = numba.cfunc(types.int64(_WORDS))(inspect.unwrap(handler))
    _kept[name] = code
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(ctypes.cast(code.address, ctypes.c_void_p)))


def _cast(kind: Any) -> Any:
    """Within numba: an address as a pointer of that kind."""

    def typed(context: Any, address: Any) -> Any:
        def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(kind))

        return kind(address), generated

    return intrinsic(typed)


_words, _pointer = _cast(_WORDS), _cast(types.voidptr)


@compiled()
def vector(buffer: int, dtype: Any) -> Any:
    """Within numba: the array [n] of a buffer, the word that stands for it in a call."""
    words = _words(buffer)
    return numba.carray(_pointer(words[_DATA]), (_words(words[_SIZES])[0],), dtype)


@compiled()
def matrix(buffer: int, dtype: Any) -> Any:
    """Within numba: the array [n, m] of a buffer."""
    words = _words(buffer)
    sizes = _words(words[_SIZES])
    return numba.carray(_pointer(words[_DATA]), (sizes[0], sizes[1]), dtype)
