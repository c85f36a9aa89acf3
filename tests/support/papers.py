"""Certificates of an authority, and of a server on this machine."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme


class Papers:
    """Certificates of an authority, as files.

    Parameters
    ----------
    folder : where they lie.
    name : begins the names of the files.
    lasts : how long the server's is valid from now on; negative: it has expired.
    """

    def __init__(self, folder: Path, name: str, lasts: timedelta | None = None) -> None:
        self.authority = trustme.CA()
        end = None if lasts is None else datetime.now(UTC) + lasts
        issued = self.authority.issue_cert("localhost", "127.0.0.1", not_after=end)
        self.ca, self.cert, self.key = (folder / f"{name}.{kind}" for kind in ("ca", "cert", "key"))
        self.authority.cert_pem.write_to_path(self.ca)
        issued.private_key_pem.write_to_path(self.key)
        for blob in issued.cert_chain_pems:
            blob.write_to_path(self.cert, append=True)

    @property
    def server(self) -> dict[str, str]:
        return {"tls_cert": str(self.cert), "tls_key": str(self.key)}
