"""URLs of stores: parsing them, and showing them without passwords."""

import os
from typing import Final
from urllib.parse import urlencode

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from quercus.belief.errors import InvalidInput

SECRETS: Final = ("password", "sslpassword", "oauth_client_secret")
"""Parameters of libpq that must not be shown."""

MORE_SECRETS: Final = "QUERCUS_STORE_SECRETS"
"""Environment variable with those of `SECRETS` for which libpq has no variable, in the form of a URL's query."""

KINDS: Final = "sqlite:///path/to/file or postgresql://user@host/database"


_BEGINNINGS: Final = ("postgres:", "postgresql:", "postgresql+")
"""A store with such a beginning is meant as a URL, even if it is not a valid one."""


def is_url(store: str) -> bool:
    """Return whether a store is named by a URL, valid or not; otherwise it is the path of a file."""
    return "://" in store or store.startswith(_BEGINNINGS)


def parse_url(url: str) -> URL:
    """Parse the URL of a store; raise `InvalidInput` if it is invalid, or its database is not supported."""
    if url.startswith("postgres://"):  # libpq and other tools accept it too
        url = "postgresql" + url.removeprefix("postgres")
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        shown = url if "@" not in url else _without_place(url)
        raise InvalidInput("store", f"{shown!r} is not a URL; write {KINDS}") from error
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise InvalidInput("store", f"{parsed.get_backend_name()!r} is not supported; use {KINDS}")
    if parsed.host is not None and "@" in parsed.host:
        raise InvalidInput(
            "store", f"{_without_place(url)!r} has a second @: write an @ of a password as %40"
        )
    return parsed


def _without_place(url: str) -> str:
    return url.partition(":")[0] + "://…"


def shown_url(url: str) -> str:
    """Return the URL of a store for display; unreadable parts, which may contain a password, are omitted."""
    if not is_url(url) or url.startswith("sqlite"):
        return url
    try:
        shown = without_password(parse_url(url)).difference_update_query(SECRETS)
    except InvalidInput:
        return _without_place(url)
    return shown.render_as_string()


def without_secrets(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL without secrets, and environment variables with which it opens the same store.

    Every user of the machine can read the command line of a process, but not its environment.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        return url, {}
    password = parsed.password or parsed.query.get("password")
    environment = {} if password is None else {"PGPASSWORD": str(password)}
    if more := {name: parsed.query[name] for name in SECRETS[1:] if name in parsed.query}:
        environment[MORE_SECRETS] = urlencode(more, doseq=True)
    if not environment:
        return url, {}
    return without_password(parsed).difference_update_query(SECRETS).render_as_string(), environment


def with_secrets(url: URL) -> URL:
    """Return the URL with the secrets that `without_secrets` put into the environment, except for the password.

    Libpq itself finds the password there.
    """
    return url.update_query_string(os.environ.get(MORE_SECRETS, ""))


def without_password(url: URL) -> URL:
    """Return the URL without its password."""
    place = {"username": url.username, "host": url.host, "port": url.port, "database": url.database}
    return URL.create(url.drivername, **place, query=url.query).difference_update_query(["password"])  # type: ignore[arg-type]
