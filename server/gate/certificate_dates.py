"""Expiry of a certificate, found with the standard library: a TLS handshake in memory, with itself."""

from __future__ import annotations

import ssl
import time
from datetime import UTC, datetime
from typing import Final

EXPIRED: Final = 10
"""OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED."""

WARNED_S: Final = 14 * 86_400.0
"""Programs warn of the expiry of their certificate from this many seconds before it."""


def expiry_warning(cert: str, end: float) -> str:
    """Return a warning of a certificate that expires at `end`, as in `certificate_end`; empty if there is time.

    Examples
    --------
    >>> expiry_warning("wine.pem", 0.0), expiry_warning("wine.pem", time.time() + 15 * 86_400)
    ('the certificate wine.pem has expired, and clients refuse it', '')
    """
    if not end:
        return f"the certificate {cert} has expired, and clients refuse it"
    if end < time.time() + WARNED_S:
        return f"the certificate {cert} expires on {datetime.fromtimestamp(end, UTC).date()}"
    return ""


def certificate_end(cert: str, key: str) -> float:
    """Return when a certificate expires.

    Parameters
    ----------
    cert, key : files in PEM, which fit together.

    Returns
    -------
    float : seconds since 1970; 0 when it has expired already.

    Raises
    ------
    ssl.SSLError
        When the files do not fit together, or the certificate may not be used yet or by a server.
    OSError
        When a file cannot be read.
    """
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(cert, key, password="")
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # it need not be signed by itself
    trusting.load_verify_locations(cert)
    try:
        shown = _shown_certificate(served, trusting)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code == EXPIRED:
            return 0.0
        raise
    return float(ssl.cert_time_to_seconds(str(shown["notAfter"])))


def _shown_certificate(served: ssl.SSLContext, trusting: ssl.SSLContext) -> dict[str, object]:
    """Do a handshake between the two contexts, and return the certificate of the server."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(back, there)
    server = served.wrap_bio(there, back, server_side=True)
    done = False
    while not done:
        done = True
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                done = False
    return dict(client.getpeercert() or {})
