"""Files that a command writes: each appears whole or not at all, and replaces another only with ``--force``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from quercus.cli.common import fail


def refuse_existing(file: Path, force: bool) -> None:
    """Refuse to replace a file unless the user said so; a pipe or a device is not replaced but written to."""
    if file.is_file() and not force:
        raise typer.BadParameter(f"{file} exists; give --force to replace it")


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
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")
    try:
        yield part
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
