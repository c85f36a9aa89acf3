"""Numba's ``njit`` with the settings that every kernel of this package shares.

Why Numba: the kernels are small dense loops with data-dependent branching (interior-point steps inside a branch and
bound), which arrays of problems cannot share; Numba installs from wheels on every platform we serve and keeps the
formulas readable. Compiled code is cached beside the source, or in the user's cache directory where that is read-only.

What compiles slowly is worth knowing: every caller optimises all that it calls once more, so chains of large kernels
are kept short (`inlined`), and array methods and literal flags, which compile variants of their own, are avoided.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile `function` on first call; the machine code is cached on disk where a cache directory is writable."""
    return _compile(function)


def reordered(function: F) -> F:
    """As `compiled`, for long sums: their terms may be added in any order, hence several at a time."""
    return _compile(function, fastmath={"reassoc", "contract"})


def inlined(function: F) -> F:
    """As `compiled`, for the one caller of a large kernel: becomes part of it instead of a unit of its own."""
    return cast(F, numba.njit(inline="always", error_model="numpy")(function))


def _compile(function: F, **options: Any) -> F:
    try:
        return cast(F, numba.njit(cache=True, error_model="numpy", **options)(function))
    except RuntimeError:  # no writable place for the cache: compile in every process instead
        return cast(F, numba.njit(error_model="numpy", **options)(function))
