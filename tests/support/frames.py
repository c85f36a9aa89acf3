"""HTTP/2 written by hand: frames in an order, of a size and at a pace that no library would send."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
ACK = END_STREAM = 1
END_HEADERS: Final = 4
CANCEL: Final = 8
INITIAL_WINDOW: Final = 4
"""Number of the setting SETTINGS_INITIAL_WINDOW_SIZE."""

FIRST_WINDOW: Final = 65_535
LARGEST_FRAME: Final = 16_384
WAIT_S: Final = 30.0

Frame = tuple[int, int, int, bytes]
"""Kind, flags, stream and content."""


def frame(kind: int, content: bytes = b"", stream: int = 0, flags: int = 0) -> bytes:
    """Return the bytes of a frame."""
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content


def fields(*pairs: tuple[str, str]) -> bytes:
    """Return header fields, each written out: without tables and without Huffman's code."""
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in pairs)


def _text(text: str) -> bytes:
    return _length(len(text)) + text.encode()


def _length(size: int) -> bytes:
    """Return a number with a prefix of seven bits (RFC 7541 §5.1)."""
    if size < 127:
        return bytes([size])
    size, written = size - 127, b"\x7f"
    while size >= 128:
        size, written = size >> 7, written + bytes([size & 127 | 128])
    return written + bytes([size])


def call(method: str, *metadata: tuple[str, str]) -> bytes:
    """Return the header fields with which a call of gRPC begins."""
    return fields(
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        *metadata,
    )


def opened(method: str, stream: int, *metadata: tuple[str, str]) -> bytes:
    """Return the frame that opens a stream for a call."""
    return frame(HEADERS, call(method, *metadata), stream, END_HEADERS)


def opened_and_reset(method: str, streams: range) -> bytes:
    """Return frames that open each stream and reset it at once."""
    block, reset = call(method), struct.pack(">I", CANCEL)
    return b"".join(
        frame(HEADERS, block, stream, END_HEADERS) + frame(RST_STREAM, reset, stream) for stream in streams
    )


class Peer:
    """A connection to a server, over which anything may be sent.

    Parameters
    ----------
    address : ``host:port`` of the server.
    trusted : PEM file of the authority of its certificate; None: without TLS.
    greets : send the preface and settings, and acknowledge those of the server.
    """

    def __init__(self, address: str, trusted: Path | None = None, greets: bool = True) -> None:
        host, _, port = address.rpartition(":")
        self.socket: socket.socket = socket.create_connection((host, int(port)), WAIT_S)
        if trusted is not None:
            context = ssl.create_default_context(cafile=trusted)
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self._window, self._first = FIRST_WINDOW, FIRST_WINDOW
        self._windows: dict[int, int] = {}
        self._ended: set[int] = set()
        self._unread = b""
        if greets:
            try:
                self._greet()
            except BaseException:
                self.close()
                raise

    def _greet(self) -> None:
        self.socket.sendall(PREFACE + frame(SETTINGS))
        while self.take_frame()[:2] != (SETTINGS, 0):
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def send(self, data: bytes) -> bool:
        """Send bytes; False if the server has hung up."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def take_frame(self) -> Frame:
        """Return the server's next frame; updates of windows are noted.

        Raises
        ------
        ConnectionError
            When the server has hung up.
        """
        head = self._take(9)
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        content = self._take(size)
        self._note(kind, flags, stream, content)
        return kind, flags, stream, content

    def _take(self, size: int) -> bytes:
        while len(self._unread) < size:
            data = self.socket.recv(65_536)
            if not data:
                raise ConnectionError("the server has hung up")
            self._unread += data
        taken, self._unread = self._unread[:size], self._unread[size:]
        return taken

    def _note(self, kind: int, flags: int, stream: int, content: bytes) -> None:
        if kind == WINDOW_UPDATE:
            more = int.from_bytes(content, "big")
            if stream == 0:
                self._window += more
            else:
                self._windows[stream] = self._windows.get(stream, self._first) + more
        elif kind == SETTINGS and not flags & ACK:
            for key, value in struct.iter_unpack(">HI", content):
                if key == INITIAL_WINDOW:
                    self._windows = {each: left + value - self._first for each, left in self._windows.items()}
                    self._first = value
            self.socket.sendall(frame(SETTINGS, flags=ACK))
        elif kind == RST_STREAM or (kind == HEADERS and flags & END_STREAM):
            self._ended.add(stream)

    def frames(self, quiet_s: float = 0.0) -> Iterator[Frame]:
        """Yield frames of the server until it sends none for so long, or hangs up."""
        with suppress(ConnectionError, OSError):
            while self._is_readable(quiet_s):
                yield self.take_frame()

    def _is_readable(self, wait_s: float) -> bool:
        if self._unread or (isinstance(self.socket, ssl.SSLSocket) and self.socket.pending()):
            return True
        return bool(select.select([self.socket], [], [], wait_s)[0])

    def send_data(self, stream: int, data: memoryview, quiet_s: float) -> int:
        """Send all that the server's window allows on a stream, until no more is granted; return the bytes sent."""
        self._windows.setdefault(stream, self._first)
        sent = 0
        with suppress(ConnectionError, OSError):
            while sent < len(data) and stream not in self._ended:
                granted = min(self._window, self._windows[stream], LARGEST_FRAME, len(data) - sent)
                if granted > 0:
                    self.socket.sendall(frame(DATA, bytes(data[sent : sent + granted]), stream))
                    self._window -= granted
                    self._windows[stream] -= granted
                    sent += granted
                for _ in self.frames(0.0 if granted > 0 else quiet_s):
                    if self._window > 0 and self._windows[stream] > 0:
                        break
                else:
                    if granted <= 0:
                        break
        return sent

    def drain(self) -> threading.Thread:
        """Read and forget all that the server sends, in a thread, so that it is never held up."""

        def read() -> None:
            with suppress(OSError):
                while self.socket.recv(1 << 20):
                    pass

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread
