"""Files that a command writes: each appears whole or not at all, and is on the disk before the command succeeds."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import typer

from quercus.cli.common import err, fail
from quercus.client.durable import replace_durably, sync_folder
from quercus.files.errors import NO_ROOM


def refuse_existing(file: Path, force: bool) -> None:
    """Refuse to replace a file unless the user said so; a pipe or a device is not replaced but written to."""
    if file.is_file() and not force:
        raise typer.BadParameter(f"{file} exists; give --force to replace it")


def refuse_input(option: str, output: Path | None, *inputs: Path | None) -> None:
    """Refuse to write over a file that the command reads, whatever its name there."""
    for each in inputs:
        if output is not None and each is not None and output.exists() and output.samefile(each):
            raise typer.BadParameter(f"{option} {output} is {each}, which is read: name another")


@contextmanager
def written_whole(file: Path) -> Iterator[Path]:
    """Yield the path of a new file beside ``file``, which takes its place when the block ends without an error.

    It is on the disk, under its name, before the next statement runs. A pipe or a device is written to as it stands.
    """
    if file.exists() and not file.is_file():
        yield file
        return
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)
        part.touch(exist_ok=False)  # never through a planted link
        if file.exists():
            part.chmod(stat.S_IMODE(file.stat().st_mode))  # who made it private did so for a reason
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")
    try:
        yield part
    except OSError as error:
        if error.errno in NO_ROOM:  # a library's error names no file
            fail(f"cannot write {file}: {os.strerror(error.errno)}")
        raise
    else:
        try:
            replace_durably(part, file)
        except OSError as error:
            fail(f"cannot write {file}: {error.strerror}")
    finally:
        part.unlink(missing_ok=True)


def write_picture(file: Path, content: str) -> None:
    """Write a drawn tree to a file."""
    try:
        with written_whole(file) as part:
            part.write_text(content, encoding="utf-8")
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")
    err.print(f"wrote {file}", style="dim", markup=False, soft_wrap=True)


@contextmanager
def created_privately(file: Path) -> Iterator[IO[str]]:
    """Create a text file that only this user may read; it is removed if the block fails, else flushed to the disk."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(descriptor)
        sync_folder(file.parent)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
