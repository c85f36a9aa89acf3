"""Access control: roles, bearer tokens, and the caller of the current call.

A token is ``quercus_{id}_{secret}``. The store keeps its id and the SHA-256 of its secret. The secret is 256 random
bits, so a salt or a slow hash would not make it harder to guess. Cached tokens are at most `FRESH_S` old, so a revoked
token soon becomes invalid, even in open streams.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Collection
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from quercus.belief.errors import InvalidInput, shown
from quercus.server.gate.rpcs import CORRECTOR, OPERATOR, READER, ROLES, RPCS, rpc_of
from quercus.server.wire.errors import PermissionDenied, ResourceExhausted, Unauthenticated
from quercus.specification.bounds import check_model_id
from quercus.storage import Access, TokenRecord

FRESH_S: Final = 0.5
MISSING_TOKEN_AGE_S: Final = 0.1
"""Least seconds between two reads of the store for unknown tokens."""

MAX_MODELS: Final = 1000
"""Most models that a token may name."""

MAX_LOOKUPS: Final = 100
"""Most calls with unknown tokens that wait for a read of the store, since a token may have been created just now."""

ID_PATTERN: Final = "[0-9a-f]{12}"
TOKEN_NAME: Final = re.compile(f"tokens/({ID_PATTERN})")
"""Resource name of a token."""

DIGEST_BYTES: Final = hashlib.sha256().digest_size
_TOKEN: Final = re.compile(rf"quercus_({ID_PATTERN})_([A-Za-z0-9_-]{{43}})")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")


@dataclass(frozen=True)
class Principal:
    """A caller.

    Attributes
    ----------
    name : name of the token's owner; labellers label under it.
    roles : the roles of the token.
    models : the models that the caller may use; None for all.
    token_id : public part of the token; queries leased with it are given back when it becomes invalid.
    expires_at : expiry of the token, in seconds since 1970; None for never.
    """

    name: str
    roles: frozenset[str]
    models: frozenset[str] | None
    token_id: str = ""
    expires_at: float | None = None

    @property
    def is_operator(self) -> bool:
        """True if the caller is an operator, who may act for others."""
        return OPERATOR in self.roles

    def may_touch(self, model: str) -> bool:
        """Return whether the caller may use a model."""
        return self.models is None or model in self.models


_caller: ContextVar[Principal | None] = ContextVar("quercus_caller", default=None)


def current_caller() -> Principal | None:
    """Return the caller of the current call; None if the server requires no tokens."""
    return _caller.get()


def labeller_of(labeller: str) -> str:
    """Return the name under which the caller labels: the token's; operators, and callers without tokens, may choose.

    Raises
    ------
    PermissionDenied
        If the caller must not choose, and `labeller` is not the token's name.
    """
    principal = _caller.get()
    if principal is None or (principal.is_operator and labeller):
        return labeller
    if labeller not in {"", principal.name}:
        raise PermissionDenied(f"labeller: is {labeller[:60]!r}, but the token speaks for {principal.name!r}")
    return principal.name


def corrects_all() -> bool:
    """Return whether the caller may correct answers of others regardless of the labelling policy."""
    principal = _caller.get()
    return principal is not None and CORRECTOR in principal.roles


def is_trusted() -> bool:
    """Return whether the caller may overrule labellers unless the labelling policy lets nobody correct."""
    principal = _caller.get()
    return principal is None or bool(principal.roles & {OPERATOR, CORRECTOR})


def only_labels() -> str | None:
    """Return the name of a caller who may only label; None for callers who may see queries and labels of others.

    A caller who may only label must not find out which rows are gold questions.
    """
    principal = _caller.get()
    if principal is None or principal.roles & {OPERATOR, READER, CORRECTOR}:
        return None
    return principal.name


EVERYBODY: Final = Principal("", frozenset(ROLES), None)
"""The caller of a server that requires no tokens."""


def set_caller(principal: Principal | None) -> None:
    """Set the caller of the current call, in its task."""
    _caller.set(principal)


def check_permission(principal: Principal, method: str) -> None:
    """Raise `PermissionDenied` unless the caller's roles and models allow the method."""
    rpc = rpc_of(method)
    if not principal.roles & rpc.roles:
        have, need = ", ".join(sorted(principal.roles)), " or ".join(sorted(rpc.roles))
        raise PermissionDenied(f"the token of {principal.name} has the role {have}; this needs {need}")
    if principal.models is not None and rpc.is_unrestricted:
        what = "lists the data of all models" if rpc.reads else "changes the whole server"
        raise PermissionDenied(f"the token of {principal.name} is for some models only; this {what}")


def allowed_methods(principal: Principal) -> list[str]:
    """Return the RPCs that a caller may call, in alphabetical order."""
    return sorted(
        rpc.name
        for rpc in RPCS.values()
        if principal.roles & rpc.roles and not (principal.models is not None and rpc.is_unrestricted)
    )


def issue_token(
    access: Access,
    caller: str,
    roles: Collection[str],
    models: Collection[str] | None = None,
    lifetime_s: float | None = None,
) -> tuple[str, TokenRecord]:
    """Create a token, and store its id and the digest of its secret.

    Parameters
    ----------
    access : access tokens of the store.
    caller : name of the caller: 1 to 63 of ``A-Z a-z 0-9 . _ @ -``, a letter or digit first.
    roles : at least one of `ROLES`.
    models : names of the models that the caller may use, which need not exist yet; None for all.
    lifetime_s : seconds after which the token expires; None for never.

    Returns
    -------
    str, TokenRecord : the token, which is never shown again, and its record.

    Raises
    ------
    InvalidInput
        If an argument is invalid.
    """
    if _NAME.fullmatch(caller) is None:
        raise InvalidInput(
            "caller", f"is {shown(caller)}, must be 1 to 63 of A-Z a-z 0-9 . _ @ -, a letter or digit first"
        )
    unknown = sorted(set(roles) - set(ROLES))
    if unknown or not roles:
        raise InvalidInput("roles", f"are {', '.join(unknown) or 'none'}, must be some of {', '.join(ROLES)}")
    granted = None if models is None else frozenset(models)
    if granted is not None and len(granted) > MAX_MODELS:
        raise InvalidInput("models", f"are {len(granted):,}, at most {MAX_MODELS:,} are allowed")
    for model in sorted(granted or ()):
        check_model_id(model, "models")
    if lifetime_s is not None and not 0 < lifetime_s <= 100 * 366 * 86_400:
        raise InvalidInput("lifetime", f"is {lifetime_s:g} s, must be positive and at most 100 years")
    token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    record = access.create_token(
        token_id, caller, secret_digest(secret), roles=frozenset(roles), models=granted, duration_s=lifetime_s
    )
    return f"quercus_{token_id}_{secret}", record


def secret_digest(secret: str) -> bytes:
    """Return the digest of a secret, which is stored instead of the secret."""
    return hashlib.sha256(secret.encode()).digest()


class TokenAuthority:
    """Identifies callers by their tokens.

    Parameters
    ----------
    load : reads all tokens of the store, in a thread.
    clock : returns seconds since 1970, for expiry.
    """

    def __init__(
        self, load: Callable[[], Awaitable[list[TokenRecord]]], clock: Callable[[], float] = time.time
    ) -> None:
        self._load = load
        self._clock = clock
        self._records: dict[str, TokenRecord] = {}
        self._loaded_at = float("-inf")  # monotonic
        self._loading = asyncio.Lock()
        self._lookups = 0

    async def reload_tokens(self) -> None:
        """Read the tokens now, even if the cached ones are still fresh."""
        await self._load_newer(time.monotonic())

    async def identify_caller(self, authorization: str | None) -> Principal:
        """Return the caller.

        Parameters
        ----------
        authorization : the metadata of that name, ``Bearer {token}``.

        Raises
        ------
        Unauthenticated
            If the token is missing or invalid; the message does not tell whether its id exists.
        ResourceExhausted
            If too many unknown tokens are being looked up.
        """
        if authorization is None:
            raise Unauthenticated(
                "this server asks for a token: give the client one in QUERCUS_TOKEN or with --token-file"
            )
        scheme, _, token = authorization.partition(" ")
        found = _TOKEN.fullmatch(token.strip())
        if scheme.lower() != "bearer" or found is None:
            raise Unauthenticated("the token is malformed: it must be as `quercus tokens create` printed it")
        record = await self._find_token(found[1])
        kept = record.digest if record is not None else bytes(DIGEST_BYTES)
        same = hmac.compare_digest(kept, secret_digest(found[2]))
        if record is None or not same:
            raise Unauthenticated("the token is not known to this server")
        if not record.is_live(self._clock()):
            how = "expired" if record.revoked_at is None else "was revoked"
            raise Unauthenticated(f"the token of {record.name} {how}: ask the operator for another")
        return Principal(record.name, record.roles, record.models, record.id, record.expires_at)

    async def _find_token(self, token_id: str) -> TokenRecord | None:
        asked_at = time.monotonic()
        age = asked_at - self._loaded_at
        if token_id in self._records and age <= FRESH_S:
            return self._records[token_id]
        if token_id in self._records:
            await self._load_newer(asked_at)
            return self._records.get(token_id)
        if self._lookups >= MAX_LOOKUPS:
            raise ResourceExhausted("too many unknown tokens are looked up at once", MISSING_TOKEN_AGE_S)
        self._lookups += 1
        try:
            if age < MISSING_TOKEN_AGE_S:  # it may have been created a moment ago
                await asyncio.sleep(MISSING_TOKEN_AGE_S - age)
            await self._load_newer(asked_at)
        finally:
            self._lookups -= 1
        return self._records.get(token_id)

    async def _load_newer(self, asked_at: float) -> None:
        async with self._loading:
            if self._loaded_at < asked_at:  # otherwise another call has read them meanwhile
                started = time.monotonic()
                self._records = {record.id: record for record in await self._load()}
                self._loaded_at = started
