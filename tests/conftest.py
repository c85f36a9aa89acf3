"""Settings of every test run.

Numba's cache of compiled kernels does not see changes in *other* files of the package, so that a test run could pass on
stale machine code: here the cache lives in a folder named after the contents of all kernels.
"""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = sorted(path for part in ("solver", "incremental") for path in (ROOT / "trees" / part).glob("*.py"))


def pytest_configure() -> None:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in KERNELS)).hexdigest()[:16]
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba_cache" / digest))


def pytest_sessionstart() -> None:
    """Compile the kernels once, before any test starts servers that would all do it at the same time."""
    from quercus.trees.prepare import prepare  # after pytest_configure has named the cache

    prepare()
