"""Open a table by the ending of its file's name."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from quercus.files.arff_format import open_arff
from quercus.files.csv_format import open_csv
from quercus.files.table import FileTable


def open_table(path: Path | str, *, delimiter: str = ",", missing: Collection[str] = ()) -> FileTable:
    """Open a CSV or ARFF file (``.csv``, ``.arff``, either also with ``.gz``).

    Parameters
    ----------
    path
        The file. The ending decides the format: ``.arff`` is ARFF, anything else CSV.
    delimiter
        What separates the cells of a CSV file.
    missing
        Words that stand for a missing value, such as ``NA``, beside an empty cell and ``?``.

    Raises
    ------
    FileError
        When the file is missing, empty, or its header is malformed; later, while it is read, for a
        malformed row.
    """
    path = Path(path)
    name = path.name.lower().removesuffix(".gz")
    is_arff = name.endswith(".arff")
    table = open_arff(path) if is_arff else open_csv(path, delimiter)
    return replace(table, missing=frozenset(missing))
