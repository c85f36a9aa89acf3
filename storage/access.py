"""Access tokens, and the append-only audit log of administrative calls."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Connection, func, select, update

from quercus.storage import schema
from quercus.storage.engine import Database
from quercus.storage.errors import FailedPrecondition, NotFound
from quercus.storage.inserts import insert_rows

MAX_TEXT_CHARACTERS = 200  # of each column of the audit log
MAX_TOKENS = 10_000  # valid at a time: servers read all of them again and again


@dataclass(frozen=True)
class TokenRecord:
    """An access token; its secret is not stored.

    Attributes
    ----------
    id : public part of the token.
    name : name of the caller.
    digest : digest of the secret part.
    roles : roles of the caller.
    models : names of the models that the caller may use; None for all.
    created_at, expires_at, revoked_at : seconds since 1970; None for never.
    """

    id: str
    name: str
    digest: bytes
    roles: frozenset[str]
    models: frozenset[str] | None
    created_at: float
    expires_at: float | None
    revoked_at: float | None

    def is_live(self, now: float) -> bool:
        """Return whether the token is valid at the time `now`."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True)
class AuditRecord:
    """An entry of the audit log: time (seconds since 1970), caller, action, target, and outcome."""

    number: int
    at: float
    who: str
    action: str
    target: str
    outcome: str


class Access:
    """Tokens and the audit log of a store; safe for threads.

    Parameters
    ----------
    database : database of the store.
    clock : returns seconds since 1970, within a transaction.
    """

    def __init__(self, database: Database, clock: Callable[[Connection], float]) -> None:
        self._database = database
        self._clock = clock

    def create_token(
        self,
        token_id: str,
        name: str,
        digest: bytes,
        *,
        roles: frozenset[str],
        models: frozenset[str] | None = None,
        duration_s: float | None = None,
    ) -> TokenRecord:
        """Store a new token, which expires `duration_s` from now (None: never).

        Raises
        ------
        FailedPrecondition
            If there are `MAX_TOKENS` valid tokens already.
        """
        row = {
            "id": token_id,
            "name": name,
            "digest": digest,
            "roles": " ".join(sorted(roles)),
            "models": None if models is None else json.dumps(sorted(models)),
        }
        with self._database.write() as connection:
            now = self._clock(connection)
            live = schema.token.c.revoked_at.is_(None) & (
                schema.token.c.expires_at.is_(None) | (schema.token.c.expires_at > now)
            )
            if connection.execute(select(func.count()).where(live)).scalar_one() >= MAX_TOKENS:
                raise FailedPrecondition(
                    f"there are {MAX_TOKENS:,} valid tokens, the most allowed: revoke some"
                )
            expires_at = None if duration_s is None else now + duration_s
            record = TokenRecord(token_id, name, digest, roles, models, now, expires_at, None)
            columns = [*row, "created_at", "expires_at"]
            insert_rows(connection, schema.token, columns, [(*row.values(), now, expires_at)])
        return record

    def tokens(self) -> list[TokenRecord]:
        """Return all tokens, valid or not, in order of creation."""
        table = schema.token
        with self._database.read() as connection:
            rows = connection.execute(select(table).order_by(table.c.created_at, table.c.id)).all()
        found = []
        for row in rows:
            with suppress(AttributeError, TypeError, ValueError):  # a damaged token is not valid
                found.append(_token_record(row))
        return found

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token, even if the disk is full; the call is idempotent.

        Raises
        ------
        NotFound
            If there is no such token.
        """
        table = schema.token

        def revoke(connection: Connection) -> None:
            known = connection.execute(select(table.c.id).where(table.c.id == token_id)).first()
            if known is None:
                raise NotFound("token", token_id)
            connection.execute(
                update(table)
                .where(table.c.id == token_id, table.c.revoked_at.is_(None))
                .values(revoked_at=self._clock(connection))
            )

        self._database.write_when_full(revoke)

    def record(self, who: str, action: str, target: str, outcome: str) -> None:
        """Append to the audit log."""
        words = {"who": who, "action": action, "target": target, "outcome": outcome}
        row = {key: word[:MAX_TEXT_CHARACTERS].replace("\0", "\ufffd") for key, word in words.items()}
        with self._database.write() as connection:
            insert_rows(connection, schema.audit, ["at", *row], [[self._clock(connection), *row.values()]])

    def audit(self, after: int = 0, limit: int = 1000) -> list[AuditRecord]:
        """Return up to `limit` entries of the audit log after number `after`, oldest first."""
        table = schema.audit
        with self._database.read() as connection:
            rows = connection.execute(
                select(table).where(table.c.id > after).order_by(table.c.id).limit(limit)
            ).all()
        return [_audit_record(row) for row in rows]

    def newest_audit(self, limit: int) -> list[AuditRecord]:
        """Return the newest `limit` entries of the audit log, oldest first."""
        table = schema.audit
        with self._database.read() as connection:
            rows = connection.execute(select(table).order_by(table.c.id.desc()).limit(limit)).all()
        return [_audit_record(row) for row in reversed(rows)]


def _token_record(row: schema.AnyRow) -> TokenRecord:
    for column in schema.token.columns:  # in SQLite a cell may hold anything
        cell = getattr(row, column.name)
        if not isinstance(cell, column.type.python_type | bytes | memoryview | None):
            raise TypeError(column.name)
    return TokenRecord(
        id=row.id,
        name=row.name,
        digest=bytes(row.digest),
        roles=frozenset(row.roles.split()),
        models=None if row.models is None else frozenset(json.loads(row.models)),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )


def _audit_record(row: schema.AnyRow) -> AuditRecord:
    return AuditRecord(row.id, row.at, row.who, row.action, row.target, row.outcome)
