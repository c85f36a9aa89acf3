"""Files that appear only when they are complete and on the disk."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom, BufferedReader
from pathlib import Path

from quercus.storage.errors import CorruptStore, StoreError

PART = ".part"  # ends the name of a file while it is written


@contextmanager
def new_file(target: Path) -> Iterator[BufferedRandom]:
    """Open a file for writing that replaces `target` when the block ends without an error.

    The file is readable only by its owner, and gets its name only once its content is on the disk.

    Raises
    ------
    StoreError
        If the file cannot be written; `target` is then unchanged.
    """
    part = target.with_name(target.name + PART)
    try:
        part.unlink(missing_ok=True)
        # O_EXCL and O_NOFOLLOW: never write through a link that somebody else created
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w+b") as stream:
            yield stream
        flush_to_disk(part)
        part.replace(target)
        flush_to_disk(target.parent)
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def open_plain(path: Path) -> BufferedReader:
    """Open a regular file for reading.

    Raises
    ------
    StoreError
        If it is missing or cannot be read, or is a link, a pipe or a device.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise CorruptStore(f"{path} is missing") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb")


def flush_to_disk(path: Path) -> None:
    """Flush a file, or the entries of a folder, so that they survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
