"""``quercus tokens``: the tokens of a server, and its audit log."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

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
from quercus.client.places import plain_text

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
    """
    lifetime_s = None if expires is None else duration_s("--expires", expires)
    record = None
    with opened_store("tokens", store) as opened:
        from quercus.server.gate.access import issue_token  # noqa: PLC0415  (the server extra)

        try:
            with nullcontext() if token_path is None else created_privately(token_path) as stream:
                token, record = issue_token(opened.access, name, role, model, lifetime_s)
                if stream is not None:
                    stream.write(token + "\n")
        except InvalidInput as error:
            raise typer.BadParameter(plain_text(error)) from None
        except CommandFailure:  # the file cannot be written, and nobody has the token
            if record is not None:
                opened.access.revoke_token(record.id)
            raise
    shown = {"token": token} if token_path is None else {"file": str(token_path)}
    if as_json:
        print_json(shown | {"id": record.id, "name": name, "expires_at": _iso_time(record.expires_at)})
        return
    head = f"token {record.id} of {name}, {', '.join(sorted(record.roles))}"
    if token_path is not None:
        err.print(f"{head}: wrote {token_path}", style="dim", soft_wrap=True)
        return
    err.print(f"{head}:", style="dim")
    typer.echo(token)


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
        text = f"The server at {server} asks for no token: everybody may do everything."
    report(as_json, asdict(caller) | {"methods": sorted(caller.methods)}, text)


@app.command("list")
def list_tokens(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the tokens.

    The list includes expired and revoked tokens. It has no secrets, since the store keeps none.

    Try:

        quercus tokens list
    """
    with opened_store("tokens", store) as opened:
        records = opened.access.tokens()
    now = datetime.now(UTC).timestamp()
    rows = []
    table = RichTable("id", "name", "roles", "models", "created", "counts", box=None)
    for record in records:
        roles, models = sorted(record.roles), None if record.models is None else sorted(record.models)
        rows.append(
            {
                "id": record.id,
                "name": record.name,
                "roles": roles,
                "models": models,
                "created_at": _iso_time(record.created_at),
                "expires_at": _iso_time(record.expires_at),
                "revoked_at": _iso_time(record.revoked_at),
            }
        )
        state = "until revoked" if record.expires_at is None else f"until {_minute_text(record.expires_at)}"
        if not record.is_live(now):
            state = "expired" if record.revoked_at is None else "revoked"
        shown = "all" if models is None else ", ".join(models)
        created = _minute_text(record.created_at)
        table.add_row(record.id, record.name, ", ".join(roles), shown, created, state)
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
    as_json: JsonOption = False,
) -> None:
    """Revoke a token.

    A running server refuses it within a second, in open streams too.

    Try:

        quercus tokens revoke 3f9a0c1d2e4b
    """
    with opened_store("tokens", store) as opened:
        from quercus.storage.errors import NotFound  # noqa: PLC0415  (the server extra)

        try:
            opened.access.revoke_token(token_id)
        except NotFound as error:
            fail(f"{error}; those there are: quercus tokens list")
    report(as_json, {"revoked": token_id}, f"revoked {token_id}")


@app.command("audit")
def audit(
    store: StoreOption = None,
    as_json: JsonOption = False,
    limit: Annotated[int, typer.Option("--newest", min=1, help="Number of newest entries.")] = 50,
) -> None:
    """Show the audit log.

    It lists creations, changes and deletions of models with caller and time, and refused attempts.

    Try:

        quercus tokens audit --newest 20
    """
    with opened_store("tokens", store) as opened:
        records = opened.access.newest_audit(limit)
    entries = []
    table = RichTable("when (UTC)", "who", "action", "target", "outcome", box=None)
    for each in records:
        entry = {"who": each.who, "action": each.action, "target": each.target, "outcome": each.outcome}
        entries.append({"at": _iso_time(each.at), **entry})
        table.add_row(f"{datetime.fromtimestamp(each.at, UTC):%Y-%m-%d %H:%M:%S}", *entry.values())
    report(as_json, entries, table)


def _iso_time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def _minute_text(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
