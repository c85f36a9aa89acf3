"""Files that a command writes: each appears whole or not at all, and replaces another only with ``--force``."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from quercus.cli.common import fail


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
    """Yield the path of a new file beside ``file``, which takes its place when the block ends without an error."""
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
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
