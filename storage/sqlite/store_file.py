"""The file of a store: checks that it may be used, and is still the one that was opened; its URL."""

import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy.engine import URL, make_url

from quercus.belief.errors import InvalidInput
from quercus.storage.errors import CorruptStore, ReadOnlyStore, StoreError

LOG, SHARED_MEMORY = "-wal", "-shm"  # of SQLite, beside the file


class StoreFile:
    """An SQLite file, with the files that SQLite keeps beside it.

    Parameters
    ----------
    path : Path
    read_only : bool
        True if nothing is written, neither to the file nor beside it.

    Attributes
    ----------
    place : Path
        The file itself, after symbolic links; SQLite keeps its log beside it.
    is_still : bool
        True if nobody writes the file: neither this process nor, as far as can be seen, another.

    Raises
    ------
    CorruptStore
        If it is a folder.
    """

    def __init__(self, path: Path, read_only: bool) -> None:
        if path.is_dir():  # also "." and "/", to whose names no suffix can be added
            raise CorruptStore(f"{path} is a folder, not a store")
        self.path = path
        self.place = Path(os.path.realpath(path)) if path.is_symlink() else path
        self.read_only = read_only
        self.is_still = False
        self._files: dict[Path, tuple[int, ...]] = {}
        self._opened: tuple[int, int] | None = None  # time and size of a file that is only read

    def check_reachable(self) -> None:
        """Raise, with the reason, if SQLite would fail with "unable to open database file"."""
        parent = self.place.parent
        if not parent.exists():
            raise StoreError(f"cannot create {self.path}: the folder {parent} does not exist")
        if not parent.is_dir():
            raise StoreError(f"cannot create {self.path}: {parent} is not a folder")
        if self.read_only:
            self._check_readable()
            return
        if os.statvfs(parent).f_flag & os.ST_RDONLY:
            raise ReadOnlyStore(f"{self.path} may not be written: its file system is mounted read-only")
        if self.path.exists() and not _has_access(self.path, os.R_OK | os.W_OK):
            raise ReadOnlyStore(f"{self.path} may not be read and written by this user")
        if not _has_access(parent, os.W_OK | os.X_OK):
            raise ReadOnlyStore(
                f"{self.path} cannot be used: the folder {parent} may not be written by this user"
            )

    def _check_readable(self) -> None:
        if not self.path.exists():
            raise ReadOnlyStore(f"{self.path} does not exist, and its folder may not be written by this user")
        if not _has_access(self.path, os.R_OK):
            raise ReadOnlyStore(f"{self.path} may not be read by this user")
        self.is_still, self._opened = not self._has_log(), _time_and_size(self.path)
        if (
            not self.is_still
            and not self.path_beside(SHARED_MEMORY).exists()
            and not _has_access(self.place.parent, os.W_OK)
        ):
            raise ReadOnlyStore(
                f"{self.path} has commits in its write-ahead log, which cannot be read without permission to write: "
                "open it once where it may be written, or copy both files"
            )

    def make_file(self) -> None:
        """Create the file if there is none, for this user alone; SQLite gives the files beside it the same mode."""
        with suppress(FileExistsError):
            os.close(os.open(self.place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    def path_beside(self, suffix: str) -> Path:
        """Return a path beside the file."""
        return self.place.with_name(self.place.name + suffix)

    def _has_log(self) -> bool:
        """Return whether the write-ahead log may have commits that the file does not contain yet."""
        with suppress(OSError):
            return self.path_beside(LOG).stat().st_size > 0
        return False

    def check_in_place(self) -> None:
        """Raise if the store's file, or its write-ahead log, is no longer the one that was opened.

        A file that was deleted or replaced can be written as long as it is open, but all of that is lost when it is
        closed. The log exists from the first commit until the last connection of all processes is closed.
        """
        for path, opened in self._files.items():
            if _file_identity(path) != opened:
                raise StoreError(
                    f"{path} was deleted or replaced while it was in use: put it back, or start the server again"
                )
        if self.is_still and (self._has_log() or _time_and_size(self.path) != self._opened):
            raise StoreError(
                f"{self.path} was opened read-only, and another process writes it now: start the server again"
            )

    def remember_files(self) -> None:
        """Remember the present files as those that were opened; called after a commit."""
        for path in (self.path, self.path_beside(LOG)):
            if (found := _file_identity(path)) is not None:
                self._files[path] = found

    def size_bytes(self) -> int:
        """Return the size of the files: the database and its write-ahead log."""
        sizes = 0
        for suffix in ("", LOG, SHARED_MEMORY):
            with suppress(OSError):
                sizes += self.path_beside(suffix).stat().st_size
        return sizes


def file_url(path: Path) -> str:
    """Return the URL of a file, with special characters quoted; raise `InvalidInput` if no URL can name the path."""
    url = URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)
    if make_url(url).database != str(path):  # SQLAlchemy 2.0 quotes no question mark
        raise InvalidInput("store", f"the path {str(path)!r} has characters that a URL cannot carry")
    return url


def path_of(url: URL) -> Path:
    """Return the path of a store's URL; raise `InvalidInput` if it has none, or has parameters."""
    if url.query:
        # mode=ro, cache=shared, vfs=...: each would break a guarantee (writable, WAL, commits on the disk).
        raise InvalidInput("store", f"{str(url)!r} has parameters; only sqlite:///path/to/file is supported")
    if not url.database or url.database == ":memory:":
        raise InvalidInput(
            "store", f"{str(url)!r} names no file; server and grower meet in one: sqlite:///path"
        )
    return Path(url.database)


def _has_access(path: Path, mode: int) -> bool:
    # SQLite opens the file as the effective user
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _file_identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if it cannot be found."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _time_and_size(path: Path) -> tuple[int, int] | None:
    """Return modification time and size of a file; None if it cannot be found."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
