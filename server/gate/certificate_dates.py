"""The expiry of a certificate, read by the standard library in a TLS handshake in memory."""

from __future__ import annotations

import ssl
import time
from datetime import UTC, datetime
from typing import Final

EXPIRED: Final = 10
"""OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED."""

WARNED_S: Final = 14 * 86_400.0
"""Seconds before the expiry of a certificate from which on programs warn."""


def expiry_warning(cert: str, end: float) -> str:
    """Return a warning for a certificate that expires at `end`, see `certificate_end`; empty if there is time.

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
    """Return the expiry of a certificate.

    Parameters
    ----------
    cert, key : PEM files of a certificate and its private key.

    Returns
    -------
    float : seconds since 1970; 0 if it has expired.

    Raises
    ------
    ssl.SSLError
        If the files do not belong together, or the certificate is not valid yet, or not for servers.
    OSError
        If a file cannot be read.
    """
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(cert, key, password="")
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # accept a certificate that is not self-signed
    trusting.load_verify_locations(cert)
    try:
        shown = _shown_certificate(served, trusting)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code == EXPIRED:
            return 0.0
        raise
    return float(ssl.cert_time_to_seconds(str(shown["notAfter"])))


def _shown_certificate(served: ssl.SSLContext, trusting: ssl.SSLContext) -> dict[str, object]:
    """Do a handshake between two contexts, and return the server's certificate."""
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
