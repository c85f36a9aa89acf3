"""Files of instances and labels: CSV and ARFF, streamed, every error with its line and column.

`read` takes a data file and its labels as a whole, into arrays or a pandas DataFrame.
"""

if __name__ != "quercus.files":  # by another name every class would exist twice
    raise ImportError(f"import quercus.files, not {__name__}")


from quercus.files.errors import FileError
from quercus.files.labels import LabelFile, open_labels
from quercus.files.opening import open_table
from quercus.files.reading import Data, read
from quercus.files.table import Column, Record, Table

__all__ = ["Column", "Data", "FileError", "LabelFile", "Record", "Table", "open_labels", "open_table", "read"]
