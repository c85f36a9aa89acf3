"""Files of instances and labels, read as streams; errors name the line and the column.

`read` reads a complete data file and its labels into arrays or a pandas DataFrame.
"""

if __name__ != "quercus.files":  # by another name every class would exist twice
    raise ImportError(f"import quercus.files, not {__name__}")


from quercus.files.errors import FileError
from quercus.files.labels import LabelFile, open_labels
from quercus.files.opening import open_table
from quercus.files.reading import FileData, read
from quercus.files.table import FileColumn, FileRecord, FileTable, numbered_lines

__all__ = [
    "FileColumn",
    "FileData",
    "FileError",
    "FileRecord",
    "FileTable",
    "LabelFile",
    "numbered_lines",
    "open_labels",
    "open_table",
    "read",
]
