"""The sources of the compiled kernels, identified by a hash in the extension."""

import hashlib
from pathlib import Path


def hash_of_sources(folder: Path) -> str:
    """Return a hash of the names and contents of all sources in a folder, and of how they are built."""
    found = hashlib.sha256()
    for path in sorted([*folder.rglob("*.hpp"), *folder.rglob("*.cpp"), folder / "building.py"]):
        found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()
