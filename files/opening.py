"""Open a table by the ending of its file's name, with a reader of Quercus or of another package.

A reader is a function that opens a file and returns a `FileTable`. A package declares it as an entry point of the group
``quercus.readers``, whose name is the ending: ``fwf = "my_package.fixed_width:open_fwf"``.
"""

import warnings
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import cast

from quercus.files.csv_format import open_csv
from quercus.files.errors import FileError, FileWarning
from quercus.files.packing import table_name
from quercus.files.table import FileTable
from quercus.specification.plugins import READERS, PluginError, load_plugin, plugin_names


def open_table(
    path: Path | str, *, delimiter: str = ",", missing: Collection[str] = (), quietly: bool = False
) -> FileTable:
    """Open a CSV, ARFF, Parquet or Arrow file (the last two with pyarrow).

    CSV and ARFF files may be packed with gzip, bzip2, xz or zip, whatever their names.

    Parameters
    ----------
    path
        The file. The ending decides the format: ``.arff`` is ARFF, ``.parquet`` Parquet, ``.arrow``, ``.arrows`` and
        ``.feather`` are Arrow; other packages may bring readers of further endings. Anything else is CSV.
    delimiter
        Separator of the cells of a CSV file.
    missing
        Words for a missing value, such as ``NA``, besides an empty cell and ``?``.
    quietly
        Do not warn of doubts about the header, since the caller shows `FileTable.doubts`.

    Raises
    ------
    FileError
        If the file is missing, empty or a pipe, or its header is malformed; if two packages read such files, or the
        reader cannot be imported; during iteration, for a malformed row.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        reason = "is a pipe or a device, and a table is read more than once: write it to a file first"
        raise FileError(path, f"{reason} (.csv.gz and .arff.gz are read as they are)")
    name = table_name(path)
    if name.endswith((".json", ".jsonl")):
        reason = "is JSON, not a table: write it as CSV, ARFF, Parquet or Arrow"
        raise FileError(path, f"{reason}. For an export of an annotation tool: quercus push --from TOOL")
    ending = name.rpartition(".")[2] if "." in name else ""
    if ending in plugin_names(READERS):
        try:
            reader = cast("Callable[[Path], FileTable]", load_plugin(READERS, ending))
        except PluginError as error:
            raise FileError(path, f"ends in .{ending}, whose reader {error.reason}") from None
        table = reader(path)
    else:
        table = open_csv(path, delimiter)
    for each in () if quietly else table.doubts:
        text = str(FileError(path, f"{each.says}; {each.advice}", each.line))
        warnings.warn(text, FileWarning, stacklevel=2)
    return replace(table, missing=frozenset(missing))
