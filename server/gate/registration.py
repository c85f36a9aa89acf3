"""Adds services to a server in the way in which a call costs the same however many methods there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grpc import aio


class ByName:
    """A substitute for the server, to which generated code adds the methods of a service: they are found by name.

    Generated code registers each method with ``grpc.aio`` as well. That server then waits for the next call of all
    registered methods at once, and adds and removes a callback for each of them at every call: 46 µs with the forty
    methods of Quercus.

    Parameters
    ----------
    server : server of ``grpc.aio``, before its start.
    """

    def __init__(self, server: aio.Server) -> None:
        self._server = server

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        """Make the server find methods by name."""
        self._server.add_generic_rpc_handlers(tuple(handlers))

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Do nothing: the methods are found by name."""
