"""The manifest of an archived model: it describes the model and lists the pieces of its log.

A piece counts only if the manifest lists it.
"""

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from quercus.belief.errors import InvalidInput, shown
from quercus.labelling.checks import MAX_COUNT
from quercus.storage.admin.durable import new_file, open_plain
from quercus.storage.admin.transfer_lines import check_range
from quercus.storage.errors import CorruptStore, StoreError

FORMAT: Final = "quercus-archive"
VERSION: Final = 1
NAME: Final = "manifest.json"
MAX_MANIFEST_BYTES: Final = 2**27
MAX_PIECE_EVENTS: Final = 1_000_000
MAX_PIECE_BYTES: Final = 2**33
UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_KEYS: Final = {"format", "version", "uid", "head", "pieces", "digest"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A Parquet file with a range of events.

    Attributes
    ----------
    first, last : int
        Sequence numbers of the first and the last event.
    bytes : int
        Size of the file.
    sha256 : str
        SHA-256 of the file.
    digest : str
        SHA-256 of the events, see `quercus.storage.archive.pieces.EventDigest`.
    """

    first: int
    last: int
    bytes: int
    sha256: str
    digest: str

    @property
    def file_name(self) -> str:
        """Name of the file within the model's folder."""
        return piece_file(self.first)

    @property
    def events(self) -> int:
        """Number of events."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of an archived model.

    Attributes
    ----------
    uid : str
        The model's uid, which is also the name of its folder.
    head : dict
        The content of the first line of an exported log.
    pieces : tuple of Piece
        In order, without gaps between their events.
    """

    uid: str
    head: dict[str, Any]
    pieces: tuple[Piece, ...]

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last archived event; 0 if there is none."""
        return self.pieces[-1].last if self.pieces else 0


def piece_file(first: int) -> str:
    """Return the file name of the piece that begins with event `first`; names sort in the order of events."""
    return f"{first:019d}.parquet"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a folder atomically."""
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION} | asdict(manifest)
    content["digest"] = _manifest_digest(content)
    data = (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()
    if len(data) > MAX_MANIFEST_BYTES:
        raise StoreError(
            f"{folder / NAME} would have {len(data):,} bytes, at most {MAX_MANIFEST_BYTES:,} are read: "
            "archive to a new folder"
        )
    with new_file(folder / NAME) as stream:
        stream.write(data)


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder; None if there is none.

    Raises
    ------
    InvalidInput
        If a field is invalid; the message names the file, the field and its value.
    CorruptStore
        If the manifest is damaged.
    """
    path = folder / NAME
    if not os.path.lexists(path):
        return None
    with open_plain(path) as stream:
        data = stream.read(MAX_MANIFEST_BYTES + 1)
    content = _parse_manifest(data, path)
    where, uid = str(path), content["uid"]
    if uid != folder.name:
        raise InvalidInput(where, f"has uid {shown(uid)}, must be the name of its folder")
    if not isinstance(content["head"], dict):
        raise InvalidInput(where, f"has head {shown(content['head'])}, must be an object")
    return Manifest(uid, content["head"], _read_pieces(content["pieces"], where))


def _parse_manifest(data: bytes, path: Path) -> dict[str, Any]:
    if len(data) > MAX_MANIFEST_BYTES:
        raise InvalidInput(str(path), f"has more than {MAX_MANIFEST_BYTES:,} bytes")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptStore(f"{path} is damaged: it is not JSON ({error})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidInput(str(path), f"is not a manifest of an archive: it has no format {FORMAT!r}")
    if content.get("version") != VERSION:
        raise InvalidInput(
            str(path), f"has version {shown(content.get('version'))}, this version of quercus reads {VERSION}"
        )
    if set(content) != _KEYS:
        raise InvalidInput(
            str(path), f"has {', '.join(sorted(content))}, must have {', '.join(sorted(_KEYS))}"
        )
    if content["digest"] != _manifest_digest(content):
        raise CorruptStore(f"{path} is damaged: its content does not match its digest")
    return content


def _read_pieces(entries: object, where: str) -> tuple[Piece, ...]:
    if not isinstance(entries, list):
        raise InvalidInput(where, f"has pieces {shown(entries)}, must be a list")
    pieces: list[Piece] = []
    for entry in entries:
        piece, expected = _read_piece(entry, where), pieces[-1].last + 1 if pieces else 1
        if piece.first != expected:
            raise InvalidInput(
                where, f"has a gap: a piece begins at event {piece.first}, must begin at {expected}"
            )
        pieces.append(piece)
    return tuple(pieces)


def _read_piece(entry: object, where: str) -> Piece:
    types = {field.name: field.type for field in fields(Piece)}
    if not isinstance(entry, dict) or set(entry) != set(types):
        raise InvalidInput(where, f"has a piece {shown(entry)}, must have {', '.join(types)}")
    for name, kind in types.items():
        if type(entry[name]) is not kind:
            raise InvalidInput(where, f"has a piece with {name} {shown(entry[name])}, must be of type {kind}")
    piece = Piece(**entry)
    check_range(where, "a piece with first", piece.first, 1, MAX_COUNT)
    check_range(where, "a piece with last", piece.last, piece.first, piece.first + MAX_PIECE_EVENTS - 1)
    check_range(where, "a piece with bytes", piece.bytes, 1, MAX_PIECE_BYTES)
    for name in ("sha256", "digest"):
        if not _SHA256.fullmatch(entry[name]):
            raise InvalidInput(
                where, f"has a piece with {name} {shown(entry[name], 80)}, must be 64 hexadecimal digits"
            )
    return piece


def _manifest_digest(content: dict[str, Any]) -> str:
    """Return the digest of a manifest without its field `digest`."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
