"""The limits of gRPC itself, which apply before any code of Quercus runs. All of them are set explicitly.

gRPC's defaults suit a network of trusted callers: a call may send 4 MB before anyone reads it, a connection may have
any number of calls, and a thousand waiting calls make the server reject calls of all callers at random. Here the
resources of each connection are bounded, so that a stranger exhausts its own connection and not the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from grpc import StatusCode

MAX_CALLS_OF_CONNECTION: Final = 100
"""Most calls at a time on one connection; its client holds further ones back."""

CLOSING_CALLS: Final = 100
"""Most calls of one connection that have ended for the client but not yet for the server."""

MAX_WAITING_CALLS: Final = 20_000
"""Most calls that have arrived but not begun: as many as a hundred connections may have, closing ones included."""

WINDOW_BYTES: Final = 16 * 1024
"""Bytes that a call may send before anyone reads them; while a message is read, up to 1 MB more at a time."""

MAX_METADATA_BYTES: Final = 16 * 1024
PING_EVERY_MS: Final = 30_000
PING_TIMEOUT_MS: Final = 20_000
HANDSHAKE_MS: Final = 10_000
"""Longest time, in milliseconds, for the handshake of a connection: TLS, HTTP/2's preface and settings."""

IDLE_MS: Final = 300_000
"""Milliseconds after which a connection without calls is closed; a client connects again when it calls."""

UNREQUESTED_CALL_S: Final = 3600
"""Longest time, in seconds, that a call waits until the server begins it.

By default, gRPC cancels a call after 30 s. A busy machine begins only some hundreds of calls in that time, and the
other callers would see CANCELLED although nobody cancelled anything. Their own deadlines limit the wait.
"""


@dataclass(frozen=True)
class GrpcLimit:
    """An option of gRPC's servers.

    Attributes
    ----------
    option : name of the option.
    value : its value; None if the configuration gives it.
    reason : why it has this value.
    status : status with which a call beyond the limit ends; None if no call ends.
    """

    option: str
    value: int | None
    reason: str
    status: StatusCode | None = None


GRPC_LIMITS: Final = (
    GrpcLimit(
        "grpc.max_allowed_incoming_connections",
        None,
        "`max_connections`. Open files must be left for the store: a connection beyond it is closed.",
        StatusCode.UNAVAILABLE,
    ),
    GrpcLimit(
        "grpc.max_concurrent_streams",
        MAX_CALLS_OF_CONNECTION,
        "One connection cannot take all the room; clients wait, or open another connection.",
        StatusCode.UNAVAILABLE,
    ),
    GrpcLimit(
        "grpc.http.overload_protection",
        1,
        "Calls that a client resets count until the server has ended them.",
        StatusCode.UNAVAILABLE,
    ),
    GrpcLimit(
        "grpc.http2.max_deallocating_streams",
        CLOSING_CALLS,
        "A client that begins a call when another has ended is not refused.",
        StatusCode.UNAVAILABLE,
    ),
    GrpcLimit(
        "grpc.server.max_pending_requests",
        MAX_WAITING_CALLS,
        "No call is rejected at random.",
        StatusCode.CANCELLED,
    ),
    GrpcLimit(
        "grpc.server.max_pending_requests_hard_limit",
        MAX_WAITING_CALLS,
        "What waits costs memory.",
        StatusCode.CANCELLED,
    ),
    GrpcLimit(
        "grpc.server_max_unrequested_time_in_server",
        UNREQUESTED_CALL_S,
        "Deadlines of callers bound the wait; the server cancels no call because it is busy.",
        StatusCode.CANCELLED,
    ),
    GrpcLimit(
        "grpc.max_receive_message_length",
        None,
        "`max_message_bytes`.",
        StatusCode.RESOURCE_EXHAUSTED,
    ),
    GrpcLimit("grpc.max_send_message_length", -1, "Whole trees are sent."),
    GrpcLimit(
        "grpc.max_metadata_size",
        MAX_METADATA_BYTES,
        "As the hard limit: no call is rejected at random.",
        StatusCode.RESOURCE_EXHAUSTED,
    ),
    GrpcLimit(
        "grpc.absolute_max_metadata_size",
        MAX_METADATA_BYTES,
        "A token and some headers of proxies.",
        StatusCode.RESOURCE_EXHAUSTED,
    ),
    GrpcLimit("grpc.http.tarpit", 0, "A call that is refused is not kept."),
    GrpcLimit(
        "grpc.http2.lookahead_bytes", WINDOW_BYTES, "What is sent before the token is checked is held."
    ),
    GrpcLimit("grpc.http2.bdp_probe", 0, "It raises the window of every call to 4 MB."),
    GrpcLimit(
        "grpc.http2.max_frame_size",
        16_384,
        "The least that HTTP/2 allows; a frame is held until it is whole.",
    ),
    GrpcLimit("grpc.http2.hpack_table_size.decoder", 4_096, "Memory of each connection."),
    GrpcLimit("grpc.experimental.tcp_max_read_buffer_size", 65_536, "Memory of each connection."),
    GrpcLimit("grpc.server_handshake_timeout_ms", HANDSHAKE_MS, "A connection that says nothing is closed."),
    GrpcLimit(
        "grpc.http2.settings_timeout", HANDSHAKE_MS, "So is one that does not acknowledge the settings."
    ),
    GrpcLimit("grpc.max_connection_idle_ms", IDLE_MS, "So is one without calls; clients connect again."),
    GrpcLimit(
        "grpc.keepalive_time_ms", PING_EVERY_MS, "A peer that is gone is noticed.", StatusCode.UNAVAILABLE
    ),
    GrpcLimit(
        "grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS, "A slow line answers in time.", StatusCode.UNAVAILABLE
    ),
    GrpcLimit("grpc.keepalive_permit_without_calls", 1, "Idle peers are looked after as well."),
    GrpcLimit("grpc.http2.min_ping_interval_without_data_ms", 5_000, "Clients may look after the server."),
    GrpcLimit(
        "grpc.http2.max_ping_strikes",
        0,
        "gRPC's own clients send pings that its servers would hang up on; pings cost next to nothing.",
    ),
    GrpcLimit(
        "grpc.so_reuseport",
        None,
        "A second server on the port is an error; the workers of one server share it.",
    ),
)
"""Every limit of gRPC that can end a call, hold memory or close a connection."""


def grpc_options(
    max_message_bytes: int, max_connections: int, *, shares_port: bool = False
) -> list[tuple[str, int]]:
    """Return the options of a server.

    Parameters
    ----------
    max_message_bytes : greatest size of a received message.
    max_connections : most connections at a time.
    shares_port : whether other workers of the same server listen on the port too.
    """
    given = {
        "grpc.max_receive_message_length": max_message_bytes,
        "grpc.max_allowed_incoming_connections": max_connections,
        "grpc.so_reuseport": int(shares_port),
    }
    return [(each.option, given[each.option] if each.value is None else each.value) for each in GRPC_LIMITS]
