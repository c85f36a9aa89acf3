"""The warning of a certificate that ends: the console and the bridge to Label Studio give it, as the server does."""

from __future__ import annotations

from quercus.cli.common import err
from quercus.server.gate.certificate_dates import certificate_end, expiry_warning


def warn_of_certificate(cert: str, key: str) -> None:
    """Print a warning if the certificate in these files has expired or soon does."""
    if not cert:
        return
    try:
        text = expiry_warning(cert, certificate_end(cert, key))
    except (OSError, ValueError):  # serving reports files that do not fit
        return
    if text:
        err.print(
            f"warning: {text}: renew the file, then start this command again",
            style="yellow", markup=False, soft_wrap=True,
        )  # fmt: skip
