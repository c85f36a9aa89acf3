"""Files of columns of fixed width: the header's names say where each begins."""

import re
from collections.abc import Iterator
from pathlib import Path

from quercus.files import FileColumn, FileError, FileRecord, FileTable, numbered_lines


def open_fwf(path: Path) -> FileTable:
    """Open a file and read its header."""
    number, header = next(numbered_lines(path), (1, ""))
    names = list(re.finditer(r"\S+", header))
    if not names:
        raise FileError(
            path, "has no header: write the name of each column above its first character", number
        )
    starts = [name.start() for name in names]
    ends = [*starts[1:], None]

    def read() -> Iterator[FileRecord]:
        for line, text in numbered_lines(path):
            if line > number and text.strip():
                cells = [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
                yield FileRecord(line, [None if cell in ("", "?") else cell for cell in cells])

    return FileTable(path, tuple(FileColumn(name[0]) for name in names), read)
