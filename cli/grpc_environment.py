"""Settings of gRPC for the processes of the command line, the server's among them."""

from __future__ import annotations

import os
from typing import Final

GRPC_EXPERIMENTS: Final = "-event_engine_listener,-event_engine_client"
"""The thread that waits for calls also reads their sockets.

With gRPC's event engine, other threads read them and then wake that thread: an empty call costs a server a fifth more
CPU time. gRPC logs a line if a later version does not know these names any more.
"""


def set_grpc_environment(command: str | None) -> None:
    """Set the environment variables of gRPC that the user has not set, before gRPC is imported, which reads them."""
    os.environ.setdefault("GRPC_EXPERIMENTS", GRPC_EXPERIMENTS)
    if command != "serve":  # errors of the client say what gRPC logs about handshakes
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
