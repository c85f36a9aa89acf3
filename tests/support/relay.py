"""Stands between stores and a database server on its socket: counts journeys, and lets only part of a message pass."""

import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from support.postgres import Cluster

CHUNK = 1 << 16


class Relay:
    """A socket that passes everything on, both ways.

    Attributes
    ----------
    journeys : how often a client said something after it had heard from the server, or for the first time.
    sent : bytes that clients sent.
    room : bytes that clients may still send; what they send beyond stays here, as if they stood still. None: all.

    Parameters
    ----------
    folder : where the socket is to be.
    cluster : behind it.
    """

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.journeys = 0
        self.sent = 0
        self.room: int | None = None
        self._folder = folder
        self._behind = f"{cluster.root}/.s.PGSQL.5432"
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/.s.PGSQL.5432")
        self._listener.listen()
        self._start(self._accept)

    def url(self, url: str) -> str:
        """Return the URL of the same database through this relay."""
        before, _, _ = url.partition("?")
        return f"{before}?host={self._folder}&port=5432"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()
        for each in self._open:
            each.close()

    def cut(self) -> None:
        """Close all connections."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _start(self, work: object, *given: object) -> None:
        thread = threading.Thread(target=work, args=given)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._behind)
            self._open += [client, server]
            heard = threading.Event()
            heard.set()
            self._start(self._pass_requests, client, server, heard)
            self._start(self._pass_answers, client, server, heard)

    def _pass_requests(self, client: socket.socket, server: socket.socket, heard: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(CHUNK):
                self.journeys += heard.is_set()
                self.sent += len(data)
                heard.clear()
                if self.room is not None:
                    data, self.room = data[: self.room], max(0, self.room - len(data))
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)

    def _pass_answers(self, client: socket.socket, server: socket.socket, heard: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(CHUNK):
                heard.set()
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)
