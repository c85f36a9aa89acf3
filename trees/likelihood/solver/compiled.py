"""Numba's ``njit`` with the settings that every kernel of this package shares.

Why Numba: the kernels are small dense loops with data-dependent branching (interior-point steps inside a branch and
bound), which arrays of problems cannot share; Numba installs from wheels on every platform we serve and keeps the
formulas readable. Compiled code is cached beside the source, or in the user's cache directory where that is read-only.

Some code compiles slowly: array methods and copies of arrays by slices compile extra variants. A kernel that others
call is compiled once, with any flags, and becomes machine code within each kernel that Python calls (`libraries`).
"""

from collections.abc import Callable
from contextlib import ExitStack
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase

from quercus.trees.likelihood.solver.economy import KernelCompiler
from quercus.trees.likelihood.solver.libraries import (
    CompactEntry,
    EntryCompiler,
    OptimisedPartCompiler,
    compiling_parts,
)
from quercus.trees.likelihood.solver.turns import taking_turn

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile `function` on first call; the machine code is cached on disk where a cache directory is writable."""
    return _compile_kernel(function, JITCodeLibrary, KernelCompiler)


def compact(function: F) -> F:
    """Do the same as `compiled` for large kernels with loops over classes: these are few, and are not unrolled."""
    return _compile_kernel(function, CompactEntry, KernelCompiler)


def reordered(function: F) -> F:
    """Do the same as `compiled` for long sums: their terms may be added in any order, hence several at once.

    They are optimised before they are linked, so that the order is the same in all callers.
    """
    return _compile_kernel(function, JITCodeLibrary, OptimisedPartCompiler, fastmath={"reassoc", "contract"})


def borrowing(function: F) -> F:
    """Do the same as `compiled` for kernels that make no arrays: they do not count references to borrowed ones."""
    return _compile_kernel(function, JITCodeLibrary, KernelCompiler, _nrt=False)


def _compile_kernel(
    function: F, library: type[JITCodeLibrary], part: type[CompilerBase], **options: Any
) -> F:
    """Return the kernel as an entry, which Python calls: a wrapper of its part, which kernels that name it take."""
    linked = _cached_kernel(_renamed_copy(function), pipeline_class=part, no_cpython_wrapper=True, **options)
    kernel = _cached_kernel(function, **options)
    kernel._compiler = EntryCompiler(kernel, linked, library)
    linked.compile, kernel.compile = _compiling_parts(linked), _compiling_parts(kernel)

    def type_call(arguments: Any, keywords: Any) -> Any:
        plain = tuple(types.unliteral(each) for each in arguments)  # type: ignore[no-untyped-call]
        return linked.get_call_template(plain, keywords)

    kernel.get_call_template, kernel.get_overload = type_call, linked.get_overload
    return cast(F, kernel)


def _compiling_parts(kernel: Any) -> Callable[[Any], Any]:
    """Return the function that loads a kernel or compiles it with its parts, unless another process does so now."""
    compile_kernel = kernel.compile
    folder, name = kernel._cache.cache_path, f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"

    def compile_with_parts(signature: Any) -> Any:
        with compiling_parts(kernel.targetctx), ExitStack() as turn:
            if not _is_cached(
                kernel, signature
            ):  # to load it needs no turn, which a stopped process may hold
                turn.enter_context(taking_turn(folder, name))
            return compile_kernel(signature)

    return compile_with_parts


def _is_cached(kernel: Any, signature: Any) -> bool:
    """Return whether the machine code of a kernel for a signature is in the cache on disk."""
    file = getattr(kernel._cache, "_cache_file", None)  # none where no folder can be written
    if file is None:
        return False
    key = kernel._cache._index_key(signature, kernel.targetctx.codegen())
    return key in file._load_index()


def _renamed_copy(function: Any) -> FunctionType:
    """Return the function under another name, so that its code is cached beside the entry's."""
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__module__, copy.__qualname__ = function.__module__, f"{function.__qualname__}_part"
    return copy


def _cached_kernel(function: Any, **own: Any) -> Any:
    options: dict[str, Any] = {
        "_nrt": True,  # would be the caller's otherwise
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        **own,
    }
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable place for the cache: compile in every process instead
        return numba.njit(**options)(function)
