"""Certificates of an authority, and of a server on this machine."""

from pathlib import Path

import trustme


class Papers:
    """Certificates of an authority, as files."""

    def __init__(self, folder: Path, name: str) -> None:
        self.authority = trustme.CA()
        issued = self.authority.issue_cert("localhost", "127.0.0.1")
        self.ca, self.cert, self.key = (folder / f"{name}.{kind}" for kind in ("ca", "cert", "key"))
        self.authority.cert_pem.write_to_path(self.ca)
        issued.private_key_pem.write_to_path(self.key)
        for blob in issued.cert_chain_pems:
            blob.write_to_path(self.cert, append=True)

    @property
    def server(self) -> dict[str, str]:
        return {"tls_cert": str(self.cert), "tls_key": str(self.key)}
