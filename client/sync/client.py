# Generated from client/aio/client.py by `make client`; edit that file.
"""The client: models, rows, queries, classification and trees."""

from __future__ import annotations

from quercus.client.sync.instances import InstanceCalls
from quercus.client.sync.queries import QueryCalls
from quercus.client.sync.trees import TreeCalls


class Client(InstanceCalls, QueryCalls, TreeCalls):
    """A connection to a Quercus server; threads may share it.

    Parameters
    ----------
    address
        ``host:port``, or ``tls://host:port`` for TLS. If omitted, the environment variable ``QUERCUS_SERVER``; if that
        is not set, 127.0.0.1:50051.
    timeout_s
        Deadline of each call, and of each acknowledgement of a push.
    outage_s
        Seconds for which idempotent calls, pushes, queries and watches are retried if the server is unreachable. There
        are no retries if the server has never answered.
    token
        If omitted, ``QUERCUS_TOKEN``; if that is not set, the content of the file ``QUERCUS_TOKEN_FILE``.
    ca
        PEM file of the authorities that may have signed the server's certificate. If omitted, ``QUERCUS_TLS_CA``; if
        that is not set, the authorities of the system. The client's own certificate is read from
        ``QUERCUS_CLIENT_CERT`` and ``QUERCUS_CLIENT_KEY``.

    Examples
    --------
    >>> with Client("127.0.0.1:50051") as client:                                # doctest: +SKIP
    ...     client.create_model("wine", Specification([Numeric("ash")], ["red", "white"], budget=10))
    ...     client.push("wine", [{"ash": 2.4}, {"ash": 2.1}])
    ...     for query in client.queries("wine", labeller="ann"):
    ...         client.answer(query, {"red", "white"} if query.values["ash"] > 2.3 else "red")
    ...     client.classify("wine", [[2.2]]).labels
    """
