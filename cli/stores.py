"""The store that a command works on; it must exist, so that a typing error does not create one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from quercus.belief.errors import InvalidInput
from quercus.cli.common import err, fail, needs_extra

if TYPE_CHECKING:
    from quercus.storage.store import Store

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="The store: a file or postgresql://user@host/database (QUERCUS_STORE, else quercus.db).",
    ),
]
CreateOption = Annotated[bool, typer.Option("--create", help="Create the store if there is none.")]
NewNameOption = Annotated[
    str | None, typer.Option("--as", metavar="MODEL", help="Give the model another name.")
]


@contextmanager
def store_errors(command: str) -> Iterator[None]:
    """Wrap work on a store, so that its errors end the command with a message."""
    with needs_extra(command):
        from quercus.server.wire.errors import BadStart  # noqa: PLC0415  (the server extra)
        from quercus.storage.errors import StorageError  # noqa: PLC0415
    try:
        yield
    except (BadStart, StorageError, InvalidInput) as error:
        fail(str(error))


def store_url(given: str | None, *, create: str | None = None) -> str:
    """Return the URL of the store, by the rules of ``quercus serve``.

    Parameters
    ----------
    given
        The value of ``--store``.
    create
        The option that permits a new store, for the error message; ``""``: it was given. None: no option does.
    """
    from quercus.server.config import Config  # noqa: PLC0415  (the server extra)
    from quercus.storage.dialect import dialect_for  # noqa: PLC0415
    from quercus.storage.sqlite.dialect import SqliteDialect  # noqa: PLC0415

    url = Config.load({"store": given}).store_url
    dialect = dialect_for(url, 5.0)
    if isinstance(dialect, SqliteDialect) and create != "" and not dialect.path.exists():
        hint = "name the store with --store" if given is None else "is --store right?"
        hint += f"; to create one: {create}" if create else ""
        fail(f"the store {dialect.path} does not exist: {hint}")
    return url


def is_named(given: str | None) -> bool:
    """Return whether the store is named, by an option or by ``QUERCUS_STORE``."""
    return given is not None or "QUERCUS_STORE" in os.environ


@contextmanager
def opened_store(command: str, given: str | None, *, create: str | None = None) -> Iterator[Store]:
    """Open the store; see `store_url`."""
    with store_errors(command):
        from quercus.storage.store import Store  # noqa: PLC0415  (the server extra)

        with Store.open(store_url(given, create=create)) as opened:
            yield opened


def say_retired(opened: Store, names: Iterable[str]) -> None:
    """Say which models were stored with a setting that no model has any more, and what they do now."""
    from quercus.server.wire.models import retired_setting  # noqa: PLC0415  (the server extra)

    for name in names:
        if said := retired_setting(opened.get_model(name).specification):
            err.print(f"{name}: {said}", style="yellow", soft_wrap=True)
