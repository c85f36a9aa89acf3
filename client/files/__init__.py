"""Files of instances and labels: CSV and ARFF, streamed, every error with its line and column."""

from quercus.client.files.errors import FileError
from quercus.client.files.table import Column, Record, Table, open_table

__all__ = ["Column", "FileError", "Record", "Table", "open_table"]
