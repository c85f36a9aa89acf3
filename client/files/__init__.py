"""Files of instances and labels: CSV and ARFF, streamed, every error with its line and column.

`read` takes a data file and its labels as a whole, into arrays or a pandas DataFrame.
"""

from quercus.client.files.errors import FileError
from quercus.client.files.labels import LabelFile, open_labels
from quercus.client.files.opening import open_table
from quercus.client.files.reading import Data, read
from quercus.client.files.table import Column, Record, Table

__all__ = ["Column", "Data", "FileError", "LabelFile", "Record", "Table", "open_labels", "open_table", "read"]
