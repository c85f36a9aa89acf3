"""The parameters of the console, each declared once: default, bounds and description."""

from quercus.specification.parameter import Parameter

HOST = Parameter("host", str, "127.0.0.1", "Address to listen on", 1)
PORT = Parameter("port", int, 8080, "Port; 0: any free one", 0, 65535)
TLS_CERT = Parameter("tls_cert", str, "", "Certificate (PEM), which enables TLS")
TLS_KEY = Parameter("tls_key", str, "", "Private key of the certificate (PEM)")
PLAINTEXT = Parameter(
    "plaintext", bool, False, "Serve other machines without TLS because a reverse proxy terminates it"
)
ACCESS = Parameter(
    "access",
    str,
    "auto",
    "Who may sign in; auto: without a token only on loopback; open: anybody may, if the server is open",
    choices=("auto", "open"),
)
SEND_DELAY_S = Parameter(
    "send_delay_s",
    float,
    1.0,
    "Seconds that an answer waits in the page, where the labeller can still take it back",
    0.0,
    5.0,
)
LEASE_S = Parameter(
    "lease_s", float, 60.0, "Lease length in seconds; an open page renews it by heartbeats", 10.0, 3600.0
)
SIGN_ON_HEADER = Parameter(
    "sign_on_header",
    str,
    "",
    "Header in which a sign-on proxy names the user, such as X-Forwarded-User; with sign_on_users and --sign-on-proxy",
)
SIGN_ON_USERS = Parameter(
    "sign_on_users",
    str,
    "",
    "File of mode 600 with a line for each user of the sign-on proxy: the user, a space and the token",
)

PARAMETERS = {each.name: each for each in tuple(globals().values()) if isinstance(each, Parameter)}
"""All parameters of the console, by name."""
