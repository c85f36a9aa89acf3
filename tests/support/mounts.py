"""A small disk of its own for a test: a tmpfs, which takes root."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mount a file system of so many MB on a new folder; skips where that is not allowed."""
    folder.mkdir()
    options = f"size={megabytes}m,mode=777"
    command = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("NOT TESTED: a small disk takes root and the right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, left_bytes: int = 0) -> Path:
    """Fill the disk of a folder but for so much; return the file that does it, to be removed."""
    filler = folder / "filler"
    disk = os.statvfs(folder)
    with filler.open("wb", buffering=0) as out:
        try:
            left = disk.f_bavail * disk.f_frsize - left_bytes
            while left > 0:
                left -= out.write(b"\xff" * min(left, 65_536))
        except OSError:  # full
            pass
    return filler
