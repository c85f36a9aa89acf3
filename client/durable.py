"""Functions after whose return a file, or its name, survives a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def sync_file(path: Path) -> None:
    """Flush the content of a file to the disk."""
    descriptor = os.open(path, os.O_RDWR)  # some systems flush only files opened for writing
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, on systems that can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def replace_durably(fresh: Path, target: Path) -> None:
    """Replace ``target`` by a new file: after a power cut, either the old or the new one is there, complete."""
    sync_file(fresh)
    fresh.replace(target)
    sync_folder(target.parent)
