"""Exit code 0 while store and grower are well: asks /livez, which needs no token.

Where clients must show a certificate (QUERCUS_TLS_CLIENT_CA), it shows the server's own.
"""

import os
import ssl
import sys
import urllib.error
import urllib.request

port = os.environ.get("QUERCUS_HTTP_PORT", "9464")
cert, key = (os.environ.get(f"QUERCUS_TLS_{kind}", "") for kind in ("CERT", "KEY"))
context = ssl.create_default_context()
context.check_hostname = False  # it asks this machine
context.verify_mode = ssl.CERT_NONE
if os.environ.get("QUERCUS_TLS_CLIENT_CA"):
    context.load_cert_chain(cert, key)
url = f"{'https' if cert else 'http'}://127.0.0.1:{port}/livez"
try:
    with urllib.request.urlopen(url, timeout=4, context=context) as page:  # noqa: S310 - made above
        print(page.read().decode())
except urllib.error.HTTPError as error:
    sys.exit(error.read().decode())
