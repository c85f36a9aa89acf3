"""The compiled kernels: loops over counts, contours and codes, in C++ (`*.hpp`), built by `building`.

`quercus.kernels.likelihood`, `.growth` and `.forest` are submodules of one extension. They use NumPy's arrays without
copies. An array of another type or memory order than a kernel declares is a TypeError.

Raises
------
ImportError
    If the extension is missing, or was built from other sources than those beside it.
"""

import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

if __name__ != "quercus.kernels":  # imported under a second name, every kernel would exist twice
    raise ImportError(f"import quercus.kernels, not {__name__}")

_FOLDER = Path(__file__).parent
_HOW = "build them: make (in a clone), or pip install --editable . ; wheels bring them built"

try:
    compiled = import_module("quercus.kernels.compiled")
except ImportError as error:
    if any((_FOLDER / f"compiled{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
        raise
    raise ImportError(f"the kernels of Quercus are not built for this Python; {_HOW}") from error

if (_FOLDER / "arrays.hpp").exists():  # a clone: its sources may have changed since the build
    from quercus.kernels.sources import hash_of_sources

    if compiled.sources != hash_of_sources(_FOLDER):
        raise ImportError(
            f"the kernels of Quercus were built from other sources than those in {_FOLDER}; {_HOW}"
        )

for _group in (compiled.likelihood, compiled.growth, compiled.forest):
    sys.modules[f"{__name__}.{_group.__name__.rpartition('.')[2]}"] = _group
