"""The services of a server, registered in the way in which a call costs the same however many methods there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Services:
    """A substitute for a server, to which generated code adds the methods of a service: they are found by name.

    Generated code registers each method with ``grpc.aio`` as well. That server then waits for the next call of all
    registered methods at once, and adds and removes a callback for each of them at every call: 46 µs with the forty
    methods of Quercus.

    Attributes
    ----------
    handlers : what servers add; each finds the methods of one service.
    """

    def __init__(self) -> None:
        self.handlers: list[Any] = []

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        """Add a service, whose methods are found by name."""
        self.handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Do nothing: the methods are found by name."""
