"""A note beside the compiled kernels: the cache contains every kernel of these sources."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Final

import llvmlite
import numba
from numba.core.registry import cpu_target

from quercus import trees
from quercus.server.growth.compiling_helper import NOTE
from quercus.trees.precompile import kernel_cache

_PACKAGES: Final = ("belief", "trees")


def _kernel_fingerprint() -> str:
    """Return a digest of the sources' times and sizes, of the compiler, and of the processor."""
    root = Path(trees.__file__).parent.parent
    files = sorted(file for package in _PACKAGES for file in (root / package).rglob("*.py"))
    seen = [(str(file.relative_to(root)), file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    processor = cpu_target.target_context.codegen().magic_tuple()
    return hashlib.sha256(
        repr((seen, numba.__version__, llvmlite.__version__, processor)).encode()
    ).hexdigest()


def is_all_compiled() -> bool:
    """Return whether the note says that every kernel is in the cache: then each is loaded at its first call."""
    folder = kernel_cache()
    if folder is None:
        return False
    try:
        return (Path(folder) / NOTE).read_text() == _kernel_fingerprint()
    except OSError:
        return False


def note_all_compiled() -> None:
    """Write the note; if the folder is not writable, the next process checks the kernels again."""
    folder = kernel_cache()
    if folder is not None:
        with suppress(OSError):
            (Path(folder) / NOTE).write_text(_kernel_fingerprint())
