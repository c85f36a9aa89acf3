"""The certificate of the server."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any

import grpc

from quercus.server.gate.certificate_dates import certificate_end, expiry_warning
from quercus.server.wire.errors import BadStart

_log = logging.getLogger(__name__)


class Certificates:
    """The certificate and private key of the server, which may be renewed while it runs.

    Parameters
    ----------
    cert : PEM file with the certificate and the intermediate certificates.
    key : PEM file with the private key.
    client_ca : PEM file with the authorities whose certificates clients must have; empty if clients need none.

    Attributes
    ----------
    credentials : credentials of gRPC; each new connection uses the files that were read last.
    context : the same for HTTP.
    end : expiry of the newest certificate, in seconds since 1970; 0 if it has expired, or the date is unknown.

    Raises
    ------
    BadStart
        If a file cannot be read or is not PEM, or key and certificate do not belong together.
    """

    def __init__(self, cert: str, key: str, client_ca: str) -> None:
        self._files = cert, key, client_ca
        self._renewed: Any = None
        credentials, self.context = _read_files(*self._files)
        self._newest = self.context
        self.context.sni_callback = self._show_newest
        self.end = _end_of(cert, key)
        self.credentials = grpc.dynamic_ssl_server_credentials(
            credentials, self._take_renewed, require_client_authentication=bool(client_ca)
        )

    def reload_files(self) -> None:
        """Read the files again, for new connections.

        Raises
        ------
        BadStart
            If a file is invalid; the earlier certificate stays in use.
        """
        self._renewed, self._newest = _read_files(*self._files)
        self.end = _end_of(*self._files[:2])

    def _take_renewed(self) -> Any:
        """Return new credentials, or None; gRPC calls this before every handshake, from its own thread."""
        renewed, self._renewed = self._renewed, None
        return renewed

    def _show_newest(self, handshake: ssl.SSLObject, *_: object) -> None:
        """Use the files read last; OpenSSL calls this in every handshake, even if the client names no server."""
        handshake.context = self._newest


def _read_files(cert: str, key: str, client_ca: str) -> tuple[Any, ssl.SSLContext]:
    """Return the contents of the files, for gRPC and for HTTP."""
    chain, secret = _read_file(cert, "tls_cert"), _read_file(key, "tls_key")
    roots = _read_file(client_ca, "tls_client_ca") if client_ca else None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # gRPC does not report errors of these
    try:
        context.load_cert_chain(cert, key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise BadStart(
            f"tls_cert, tls_key: {cert} and {key} are not a certificate and its private key, unencrypted, in PEM "
            f"({_failure_reason(error)})"
        ) from None
    if roots is not None:
        try:
            context.load_verify_locations(client_ca)
        except ssl.SSLError as error:
            raise BadStart(
                f"tls_client_ca: {client_ca} has no certificate in PEM ({_failure_reason(error)})"
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return grpc.ssl_server_certificate_configuration([(secret, chain)], roots), context


def _end_of(cert: str, key: str) -> float:
    try:
        end = certificate_end(cert, key)
    except (OSError, ValueError):  # the handshake refuses an extension; only the metric is affected
        return 0.0
    if text := expiry_warning(cert, end):
        _log.warning("%s: renew the file, then send the server SIGHUP", text)
    return end


def _failure_reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error)


def _read_file(path: str, key: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadStart(f"{key}: cannot read {path}: {error.strerror}") from None
