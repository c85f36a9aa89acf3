"""Reasons why a server cannot be reached, with advice; gRPC reports all of them as UNAVAILABLE."""

from __future__ import annotations

TLS_SCHEME = "tls://"
_PHRASES = (
    "failed to connect",
    "connections to all backends",
    "connection refused",
    "errors resolving",
    "dns resolution",
)
_CAUSES = {
    ("certificate has expired", "certificate is not yet valid"): (
        "the certificate of the server at {address} is not valid now ({detail}): renew the certificate, or correct the "
        "clock"
    ),
    ("hostname verification",): (
        "the certificate of the server at {address} was issued for another name: use the name in the certificate"
    ),
    ("certificate_verify_failed",): (
        "the certificate of the server at {address} was not issued by an authority that this client trusts ({detail}): "
        "name the authority's file with --tls-ca or QUERCUS_TLS_CA"
    ),
    ("wrong_version_number",): "the server at {address} does not speak TLS: omit {scheme}",
    ("tls handshake failed", "certificate_required", "alert certificate"): (
        "TLS with {address} failed ({detail}): if the server requires a client certificate, give --client-cert and "
        "--client-key"
    ),
    (
        "failed parsing http/2",
        "trying to connect an http1",
    ): "the server at {address} is not a quercus server",
    ("socket closed", "connection reset", "endpoint closing"): (
        "{address} closed the connection: if the server there speaks TLS, write {other}"
    ),
    (
        "errors resolving",
        "dns resolution",
        "domain name not found",
    ): "there is no host with the name in {address}",
}
"""Explanations by phrases of gRPC's errors, in lower case."""

_REFUSED = (
    "{address} closed the connection: if the server requires a client certificate, give one that has not expired, of "
    "an authority that it trusts, with --client-cert and --client-key"
)


def is_transport(details: str) -> bool:
    """Return whether the error comes from gRPC itself, not from a server."""
    return any(phrase in details.lower() for phrase in _PHRASES)


def is_rejected(details: str) -> bool:
    """Return whether a call was cancelled by the server's gRPC because too many calls are waiting.

    Examples
    --------
    >>> is_rejected("CANCELLED"), is_rejected("Locally cancelled by application!"), is_rejected("Channel closed!")
    (True, False, False)
    """
    return details == "CANCELLED" or "RST_STREAM" in details


def explain(details: str, address: str) -> str:
    """Return gRPC's reason in plain words, with advice.

    Examples
    --------
    >>> explain("failed to connect to all addresses; last error: Connection refused", "127.0.0.1:1")
    'no server answers at 127.0.0.1:1'
    >>> explain("failed to connect to all addresses; last error: UNAVAILABLE: Socket closed", "example.org:1")
    'example.org:1 closed the connection: if the server there speaks TLS, write tls://example.org:1'
    >>> explain("UNAVAILABLE: Socket closed", "tls://example.org:1")[:71]
    'tls://example.org:1 closed the connection: if the server requires a cli'
    """
    # OpenSSL's reason without its source location
    detail = details.removesuffix(": OK").rpartition("OPENSSL_internal:")[2] or details
    detail = detail.replace("_", " ").lower()[:200]
    words = {"address": address, "detail": detail, "scheme": TLS_SCHEME, "other": f"{TLS_SCHEME}{address}"}
    for phrases, explanation in _CAUSES.items():
        if any(phrase in details.lower() for phrase in phrases):
            if "{other}" in explanation and address.startswith(TLS_SCHEME):
                return _REFUSED.format(**words)
            return explanation.format(**words)
    return f"no server answers at {address}"
