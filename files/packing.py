"""Packed files: gzip, bzip2, xz and zip, recognised by their first bytes and unpacked during reading."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

from quercus.files.errors import FileError

FREE_BYTES: Final = 256 << 20
"""Bytes to which any packed file may expand, whatever its size."""
MAX_EXPANSION: Final = 250
"""Most bytes beyond `FREE_BYTES` for each packed byte. Tables shrink to a tenth, repeated rows to a hundredth of it."""
UNPACK_ERRORS: Final = (
    OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError, RuntimeError,
)  # fmt: skip
_ENDINGS: Final = (".gz", ".bz2", ".xz", ".zip")
_HEAD: Final = 8
_GZIP, _BZIP2, _XZ, _ZIP = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"PK\x03\x04"
_PACKED: Final = (_GZIP, _BZIP2, _XZ, _ZIP)
_OTHERS: Final = {
    b"\x28\xb5\x2f\xfd": "is compressed with zstd: uncompress it first (zstd -d), or compress it with gzip",
    b"Rar!": "is a RAR archive: unpack it first",
    b"7z\xbc\xaf": "is a 7-zip archive: unpack it first",
    b"PAR1": "is Parquet: give it a name that ends in .parquet",
    b"ARROW1": "is Arrow: give it a name that ends in .arrow",
    b"\xff\xff\xff\xff": "is a stream of Arrow: give it a name that ends in .arrow",
    b"\xd0\xcf\x11\xe0": "is an Excel workbook: save the sheet as CSV UTF-8",
    b"\xff\xfe": "is UTF-16: convert the file to UTF-8",
    b"\xfe\xff": "is UTF-16: convert the file to UTF-8",
}


def is_packed(path: Path) -> bool:
    """Return whether a file is packed, by its first bytes."""
    return _head(path).startswith(_PACKED)


def table_name(path: Path) -> str:
    """Return the name of the table in a file, in lower case and without the ending of a packed file.

    Raises
    ------
    FileError
        If it is an archive of several files, or of none.
    """
    name = path.name
    if _head(path).startswith(_ZIP):
        try:
            with zipfile.ZipFile(path) as archive:
                name = _only_member(path, archive).filename
        except UNPACK_ERRORS as error:
            raise FileError(path, f"cannot be read: {error}") from None
    name = name.lower()
    return next((name.removesuffix(ending) for ending in _ENDINGS if name.endswith(ending)), name)


@contextmanager
def unpacked_lines(path: Path, most: int) -> Iterator[Iterator[bytes]]:
    """Yield the lines of a file with their ends; long ones are cut after ``most`` bytes.

    Raises
    ------
    FileError
        If the file is packed in another way, or unpacks to more than `FREE_BYTES` and `MAX_EXPANSION` allow.
    OSError, EOFError, zlib.error, ...
        One of `UNPACK_ERRORS`, if it cannot be read.
    """
    head = _head(path)
    reason = next((reason for start, reason in _OTHERS.items() if head.startswith(start)), None)
    if reason is not None:
        raise FileError(path, reason)
    if head.startswith(_ZIP):
        with zipfile.ZipFile(path) as archive, archive.open(_only_member(path, archive)) as stream:
            yield _bounded_lines(path, stream, most)
        return
    with _open_stream(path, head) as stream:
        if head.startswith(_PACKED):
            yield _bounded_lines(path, stream, most)
        else:
            yield iter(lambda: stream.readline(most), b"")


def _open_stream(path: Path, head: bytes) -> IO[bytes]:
    if head.startswith(_GZIP):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if head.startswith(_BZIP2):
        return cast("IO[bytes]", bz2.open(path, "rb"))
    if head.startswith(_XZ):
        return cast("IO[bytes]", io.BufferedReader(lzma.open(path, "rb")))
    return path.open("rb")


class Unpacking:
    """A bound on the unpacked size of a packed file.

    Parameters
    ----------
    path
        The file.
    advice
        Advice for a file that is intended to be so large.
    """

    def __init__(self, path: Path, advice: str) -> None:
        self._path, self._advice = path, advice
        self._left = FREE_BYTES + MAX_EXPANSION * path.stat().st_size

    def take(self, size: int) -> None:
        """Count unpacked bytes; raise `FileError` if they are too many."""
        self._left -= size
        if self._left < 0:
            allowed = f"{FREE_BYTES >> 20} MiB and {MAX_EXPANSION} times its size"
            raise FileError(
                self._path, f"unpacks to more than {allowed}: if that is intended, {self._advice}"
            )


def _bounded_lines(path: Path, stream: IO[bytes], most: int) -> Iterator[bytes]:
    unpacking = Unpacking(path, "unpack it first")
    while raw := stream.readline(most):
        unpacking.take(len(raw))
        yield raw


def _only_member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return the only file in an archive, apart from folders and files that operating systems add."""
    names = [each for each in archive.infolist() if not each.is_dir()]
    if any(each.filename == "xl/workbook.xml" for each in names):
        raise FileError(path, "is an Excel workbook: save the sheet as CSV UTF-8")
    tables = [
        each
        for each in names
        if not each.filename.startswith("__MACOSX/") and not Path(each.filename).name.startswith(".")
    ]
    if len(tables) != 1:
        named = ", ".join(each.filename for each in tables[:8]) or "none"
        raise FileError(
            path, f"is a zip archive of {len(tables)} files ({named}); it must hold one: unpack it first"
        )
    return tables[0]


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD)
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from None
