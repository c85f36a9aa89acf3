"""Readers of file formats, by the ending of a file's name: ours and those of other packages.

A reader is a function that opens a file and returns a `FileTable`. A package declares it as an entry point of the group
``quercus.readers``, whose name is the ending: ``fwf = "my_package.fixed_width:open_fwf"``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

from quercus.files.errors import FileError
from quercus.files.table import FileTable
from quercus.specification.plugins import READERS, PluginError, load_plugin, plugin_names

Reader = Callable[[Path], FileTable]


def reader_of(path: Path, ending: str) -> Reader | None:
    """Return the reader of files with an ending; None if there is none.

    Raises
    ------
    FileError
        When two packages read such files, or the one that does cannot be imported.
    """
    if ending not in plugin_names(READERS):
        return None
    try:
        return cast("Reader", load_plugin(READERS, ending))
    except PluginError as error:
        raise FileError(path, f"ends in .{ending}, whose reader {error.reason}") from None
