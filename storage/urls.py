"""URLs of stores: read, and shown without their passwords."""

from typing import Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from quercus.belief.errors import InvalidInput

SECRETS: Final = ("password", "sslpassword", "oauth_client_secret")
"""Parameters of libpq that nobody but the database is shown."""

KINDS: Final = "sqlite:///path/to/file or postgresql://user@host/database"


def parse_url(url: str) -> URL:
    """Parse the URL of a store; `InvalidInput` when it is none, or of a database that is not supported."""
    if url.startswith("postgres://"):  # as libpq and its friends have it too
        url = "postgresql" + url.removeprefix("postgres")
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        shown = url if "@" not in url else url.partition("://")[0] + "://…"
        raise InvalidInput("store", f"{shown!r} is not a URL; write {KINDS}") from error
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise InvalidInput("store", f"{parsed.get_backend_name()!r} is not supported; use {KINDS}")
    return parsed


def shown_url(url: str) -> str:
    """Return the URL of a store for display; unreadable parts, which may contain a password, are omitted."""
    if "://" not in url or url.startswith("sqlite"):
        return url
    try:
        shown = without_password(parse_url(url)).difference_update_query(SECRETS)
    except InvalidInput:
        return url.partition("://")[0] + "://…"
    return shown.render_as_string()


def without_secrets(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL that others may see, and the environment in which it opens the same store.

    The command line of a process can be read by every user of the machine, its environment cannot.
    """
    parsed = parse_url(url)
    secret = parsed.password or parsed.query.get("password")
    if parsed.get_backend_name() == "sqlite" or secret is None:
        return url, {}
    return without_password(parsed).render_as_string(), {"PGPASSWORD": str(secret)}


def without_password(url: URL) -> URL:
    """Return the same URL without its secrets."""
    place = {"username": url.username, "host": url.host, "port": url.port, "database": url.database}
    return URL.create(url.drivername, **place, query=url.query).difference_update_query(["password"])  # type: ignore[arg-type]
