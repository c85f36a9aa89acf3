"""A small disk of its own for a test: a tmpfs, which takes root."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.waiting import until


class NotMountedError(Exception):
    """A file system cannot be mounted here; the text names the command that failed."""


@contextmanager
def mounted(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mount a file system of so many MB on a new folder; `NotMountedError` where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=777", "none", str(folder)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    if ran.returncode:
        raise NotMountedError(f"`{' '.join(command)}` failed: {ran.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mount a file system of so many MB on a new folder; skips where that is not allowed."""
    with ExitStack() as stack:
        try:
            stack.enter_context(mounted(folder, megabytes))
        except NotMountedError as error:
            pytest.skip(f"NOT TESTED: a small disk takes root and the right to mount a tmpfs: {error}")
        yield folder


def fill(folder: Path, left_bytes: int = 0, name: str = "filler") -> Path:
    """Fill the disk of a folder but for so much; return the file that does it, to be removed."""
    filler = folder / name
    disk = os.statvfs(folder)
    with filler.open("wb", buffering=0) as out:
        try:
            left = disk.f_bavail * disk.f_frsize - left_bytes
            while left > 0:
                left -= out.write(b"\xff" * min(left, 65_536))
        except OSError:  # full
            pass
    return filler


@contextmanager
def aborted_disk(
    folder: Path, megabytes: int
) -> Iterator[tuple[Path, Callable[[], None], Callable[[], None]]]:
    """Mount an ext4 of its own; skips where that is not allowed.

    Yield the folder, a function that makes it read-only as a failing disk does, and one that remounts it.
    """
    image = folder.with_suffix(".img")
    image.write_bytes(b"")
    os.truncate(image, megabytes * 1024 * 1024)
    folder.mkdir()
    commands = [["mkfs.ext4", "-q", str(image)], ["mount", "-o", "loop", str(image), str(folder)]]
    for command in commands:
        if (
            not shutil.which(command[0])
            or subprocess.run(command, check=False, capture_output=True).returncode
        ):
            pytest.skip("NOT TESTED: a disk that fails takes root, mkfs.ext4 and a loop device")

    def abort() -> None:
        subprocess.run(["mount", "-o", "remount,abort", str(folder)], check=True)

    def is_unmounted() -> bool:
        return not subprocess.run(["umount", str(folder)], check=False, capture_output=True).returncode

    def mount_again() -> None:
        until(is_unmounted, "all processes to close their files of the disk")
        subprocess.run(["mount", "-o", "loop", str(image), str(folder)], check=True)

    try:
        yield folder, abort, mount_again
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
