"""Readers of file formats, by the ending of a file's name: ours and those of other packages.

A reader is a function that opens a file and returns a `FileTable`. A package declares it as an entry point of the group
`GROUP`, whose name is the ending: ``fwf = "my_package.fixed_width:open_fwf"``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from quercus.files.errors import FileError
from quercus.files.table import FileTable

GROUP: Final = "quercus.readers"

Reader = Callable[[Path], FileTable]


def installed_readers() -> tuple[EntryPoint, ...]:
    """Return the readers that are installed, in order of their endings; none of them is imported."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda each: (each.name, each.value)))


def reader_of(path: Path, ending: str) -> Reader | None:
    """Return the reader of files with an ending; None if there is none.

    Raises
    ------
    FileError
        When two packages read such files, or the one that does cannot be imported.
    """
    found = [each for each in installed_readers() if each.name == ending]
    if len(found) > 1:
        listed = " and ".join(map(place_of, found))
        raise FileError(path, f"ends in .{ending}, which {listed} read: uninstall one of them")
    if not found:
        return None
    try:
        reader: Reader = found[0].load()
    except (ImportError, AttributeError) as error:
        raise FileError(
            path, f"ends in .{ending}, but {place_of(found[0])} cannot be imported: {error}"
        ) from None
    return reader


def place_of(entry: EntryPoint) -> str:
    """Return where a plug-in comes from: its object, and the package that brings it."""
    package = "" if entry.dist is None else f" of {entry.dist.name} {entry.dist.version}"
    return f"{entry.value}{package}"
