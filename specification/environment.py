"""All environment variables that Quercus reads; others with the same prefix are errors."""

import difflib
import re
from collections.abc import Mapping

from quercus.belief.errors import InvalidInput
from quercus.specification import console, server

PREFIX = "QUERCUS_"

CLIENT = ("SERVER", "TOKEN", "TOKEN_FILE", "TLS_CA", "CLIENT_CERT", "CLIENT_KEY")
"""Variables of the client library and of the commands that call a server."""

BRIDGES = (
    "MQTT_USERNAME", "MQTT_PASSWORD", "REDIS_USERNAME", "REDIS_PASSWORD", "WEBHOOK_SECRET", "LABEL_STUDIO_SECRET",
)  # fmt: skip
"""Secrets of the bridges."""

CONSOLE = tuple(
    f"CONSOLE_{name.upper()}"
    for name in (*console.PARAMETERS, "name", "media", "trusted_proxy", "sign_on_proxy")
)

SERVER = ("CONFIG", "STORE_SECRETS", *(name.upper() for name in server.PARAMETERS))
"""Variables of the server: its configuration file, the secrets that it passes to its grower, and each parameter."""

VARIABLES = frozenset(PREFIX + name for name in (*CLIENT, *BRIDGES, *CONSOLE, *SERVER))

_OF_KUBERNETES = re.compile(
    r"QUERCUS_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""Variables that Kubernetes sets in the containers of a namespace with a service of this name."""


def check_environment(environ: Mapping[str, str]) -> None:
    """Raise `InvalidInput` for a variable that nothing reads, such as a misspelt one.

    Examples
    --------
    >>> check_environment({"QUERCUS_SERVER": "db:50051", "PATH": "/bin", "QUERCUS_SERVICE_HOST": "10.0.0.7"})
    >>> check_environment({"QUERCUS_SERVRE": "db:50051"})
    Traceback (most recent call last):
        ...
    quercus.belief.errors.InvalidInput: QUERCUS_SERVRE: is not a variable of Quercus; did you mean QUERCUS_SERVER?
    """
    for name in sorted(environ):
        upper = name.upper()
        if not upper.startswith(PREFIX) or upper in VARIABLES or _is_of_kubernetes(upper, environ[name]):
            continue
        near = difflib.get_close_matches(upper, sorted(VARIABLES), n=1)
        hint = f"did you mean {near[0]}?" if near else "docs/parameters.md lists them; remove it"
        raise InvalidInput(name, f"is not a variable of Quercus; {hint}")


def _is_of_kubernetes(name: str, value: str) -> bool:
    is_address = name.endswith("_PORT") and value.startswith(("tcp://", "udp://", "sctp://"))
    return is_address or _OF_KUBERNETES.fullmatch(name) is not None
