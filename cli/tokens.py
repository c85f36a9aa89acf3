"""``quercus tokens``: the tokens of a server and its audit log, in the store or through a server."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer
from rich.table import Table as RichTable

from quercus.belief.errors import InvalidInput
from quercus.cli.common import (
    DEFAULT_SERVER,
    CommandFailure,
    JsonOption,
    ServerOption,
    duration_s,
    err,
    fail,
    print_json,
    report,
)
from quercus.cli.completion import complete_from, complete_model
from quercus.cli.output_files import created_privately
from quercus.cli.stores import StoreOption, opened_store
from quercus.client.client import Client
from quercus.client.errors import InvalidArgument, NotFound
from quercus.client.places import plain_text
from quercus.client.results import AuditEntry, NewToken, Token

if TYPE_CHECKING:
    from quercus.storage.access import Access, TokenRecord

AtServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        "-S",
        metavar="HOST:PORT",
        help="Use this server, with an operator's token for all models, instead of opening the store.",
        show_default=False,
    ),
]

app = typer.Typer(
    no_args_is_help=True, help="Create, list and revoke the tokens of a server's store; show your own."
)


@app.command("create")
def create_token(
    *,
    name: Annotated[
        str,
        typer.Argument(help="Name of the token's owner, under which a labeller labels.", show_default=False),
    ],
    role: Annotated[
        list[str],
        typer.Option(
            "--role",
            help="Role: reader, sensor, labeller, corrector or operator; repeatable.",
            autocompletion=complete_from(("reader", "sensor", "labeller", "corrector", "operator")),
            show_default=False,
        ),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Restrict the token to this model; repeatable (default: all models).",
            autocompletion=complete_model,
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="TIME",
            help="Time after which the token expires, such as 12h or 90d (default: never).",
        ),
    ] = None,
    token_path: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the token to a new file that only you may read."
        ),
    ] = None,
    store: StoreOption = None,
    server: AtServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token and print it once: the store keeps only a digest.

    --output writes it to a new file of mode 600 instead.

    A reader reads and classifies; a sensor pushes; a labeller leases and answers queries under its own name; a
    corrector also corrects the answers of others; an operator may do everything. A running server accepts the token
    within a second.

    Try:

        quercus tokens create ann --role labeller --expires 90d --output ann.token
        quercus tokens create press-7 --role sensor --model press
        quercus tokens create bob --role labeller --server 127.0.0.1:50051
    """
    lifetime_s = None if expires is None else duration_s("--expires", expires)
    made = None
    with _token_office(store, server) as office:
        try:
            with nullcontext() if token_path is None else created_privately(token_path) as stream:
                made = office.create_token(name, role, models=model, lifetime_s=lifetime_s)
                if stream is not None:
                    stream.write(made.secret + "\n")
        except (InvalidInput, InvalidArgument) as error:
            raise typer.BadParameter(plain_text(error)) from None
        except CommandFailure:  # the file cannot be written, so nobody has the token
            if made is not None:
                office.revoke_token(made.id)
            raise
    shown = {"token": made.secret} if token_path is None else {"file": str(token_path)}
    if as_json:
        print_json(shown | {"id": made.id, "name": name, "expires_at": _iso_time(made.expires_at)})
        return
    head = f"token {made.id} of {name}, {', '.join(made.roles)}"
    if token_path is not None:
        err.print(f"{head}: wrote {token_path}", style="dim", soft_wrap=True)
        return
    err.print(f"{head}:", style="dim")
    typer.echo(made.secret)


@app.command("whoami")
def whoami(server: ServerOption = DEFAULT_SERVER, as_json: JsonOption = False) -> None:
    """Show the name and the permissions of your token at a server.

    The answer comes from the server, so no access to the store is needed.

    Try:

        quercus tokens whoami
        quercus tokens whoami --server tls://quercus.example.org:50051 --json
    """
    with Client(server) as client:
        caller = client.caller()
    if caller.needs_token:
        models = "all models" if caller.models is None else f"the models {', '.join(caller.models)}"
        text = f"{caller.name}: {', '.join(caller.roles)}, for {models}"
    else:
        text = f"The server at {server} requires no token: everybody may do everything."
    report(as_json, asdict(caller) | {"methods": sorted(caller.methods)}, text)


@app.command("list")
def list_tokens(
    store: StoreOption = None, server: AtServerOption = None, as_json: JsonOption = False
) -> None:
    """List the tokens.

    The list includes expired and revoked tokens. It has no secrets, since the store keeps none.

    Try:

        quercus tokens list
        quercus tokens list --server tls://quercus.example.org:50051
    """
    with _token_office(store, server) as office:
        tokens = list(office.tokens())
    rows = []
    table = RichTable("id", "name", "roles", "models", "created", "counts", box=None)
    for each in tokens:
        roles, models = list(each.roles), None if each.models is None else list(each.models)
        rows.append(
            {
                "id": each.id,
                "name": each.caller,
                "roles": roles,
                "models": models,
                "created_at": _iso_time(each.created_at),
                "expires_at": _iso_time(each.expires_at),
                "revoked_at": _iso_time(each.revoked_at),
            }
        )
        state = "until revoked" if each.expires_at is None else f"until {each.expires_at:%Y-%m-%d %H:%M}"
        if not each.live:
            state = "expired" if each.revoked_at is None else "revoked"
        shown = "all" if models is None else ", ".join(models)
        table.add_row(
            each.id, each.caller, ", ".join(roles), shown, f"{each.created_at:%Y-%m-%d %H:%M}", state
        )
    none = "no tokens yet; create one with: quercus tokens create NAME --role operator"
    report(as_json, rows, table if rows else none)


@app.command("revoke")
def revoke_token(
    token_id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Id of the token, as quercus tokens list shows it.", show_default=False
        ),
    ],
    store: StoreOption = None,
    server: AtServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Revoke a token.

    A running server refuses it within a second, in open streams too.

    Try:

        quercus tokens revoke 3f9a0c1d2e4b
    """
    with _token_office(store, server) as office:
        try:
            office.revoke_token(token_id)
        except NotFound as error:
            fail(f"{plain_text(error)}; list them with: quercus tokens list")
    report(as_json, {"revoked": token_id}, f"revoked {token_id}")


@app.command("audit")
def audit(
    store: StoreOption = None,
    server: AtServerOption = None,
    as_json: JsonOption = False,
    limit: Annotated[
        int, typer.Option("--newest", min=1, help="Number of newest entries; of a server at most 1,000.")
    ] = 50,
) -> None:
    """Show the audit log.

    It lists what was done to models and tokens, by whom and when, and refused attempts.

    Try:

        quercus tokens audit --newest 20
    """
    with _token_office(store, server) as office:
        found = office.audit(limit)
    entries = []
    table = RichTable("when (UTC)", "who", "action", "target", "outcome", box=None)
    for each in found:
        entry = {"who": each.who, "action": each.action, "target": each.target, "outcome": each.outcome}
        entries.append({"at": _iso_time(each.at), **entry})
        table.add_row(f"{each.at:%Y-%m-%d %H:%M:%S}", *entry.values())
    report(as_json, entries, table)


class _TokenOffice(Protocol):
    """The calls that these commands need, of a client or of a store."""

    def create_token(
        self,
        caller: str,
        roles: Collection[str],
        *,
        models: Collection[str] | None,
        lifetime_s: float | None,
    ) -> NewToken: ...

    def tokens(self) -> Iterator[Token]: ...

    def revoke_token(self, token_id: str) -> Token | None: ...

    def audit(self, newest: int) -> Sequence[AuditEntry]: ...


class _StoreOffice:
    """The tokens of a store, with the interface of the client."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def create_token(
        self,
        caller: str,
        roles: Collection[str],
        *,
        models: Collection[str] | None,
        lifetime_s: float | None,
    ) -> NewToken:
        from quercus.server.gate.access import issue_token  # noqa: PLC0415  (the server extra)

        secret, record = issue_token(self._access, caller, roles, models, lifetime_s)
        return NewToken(**vars(_token_of(record)), secret=secret)

    def tokens(self) -> Iterator[Token]:
        return map(_token_of, self._access.tokens())

    def revoke_token(self, token_id: str) -> None:
        from quercus.storage.errors import NotFound as NoSuchToken  # noqa: PLC0415  (the server extra)

        try:
            self._access.revoke_token(token_id)
        except NoSuchToken as error:
            raise NotFound(str(error)) from None

    def audit(self, newest: int) -> Sequence[AuditEntry]:
        return [
            AuditEntry(_utc(each.at), each.who, each.action, each.target, each.outcome)
            for each in self._access.newest_audit(newest)
        ]


@contextmanager
def _token_office(store: str | None, server: str | None) -> Iterator[_TokenOffice]:
    """Yield the place that has the tokens: the given server, else the store."""
    if server is not None:
        if store is not None:
            raise typer.BadParameter("--store and --server are mutually exclusive")
        with Client(server) as client:
            yield client
        return
    with opened_store("tokens", store) as opened:
        yield _StoreOffice(opened.access)


def _token_of(record: TokenRecord) -> Token:
    return Token(
        id=record.id,
        caller=record.name,
        roles=tuple(sorted(record.roles)),
        models=None if record.models is None else tuple(sorted(record.models)),
        created_at=_utc(record.created_at),
        expires_at=None if record.expires_at is None else _utc(record.expires_at),
        revoked_at=None if record.revoked_at is None else _utc(record.revoked_at),
        live=record.is_live(datetime.now(UTC).timestamp()),
    )


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=round(seconds * 1e6))  # as on the wire


def _iso_time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
