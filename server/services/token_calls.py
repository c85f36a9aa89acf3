"""The calls of AdminService about tokens and the audit log."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from quercus.belief.errors import InvalidInput, shown
from quercus.server.core.service_core import OnCore, ServiceCore
from quercus.server.gate.access import TOKEN_NAME, current_caller, issue_token
from quercus.server.gate.throttle import CallRates
from quercus.server.wire.errors import PermissionDenied, ResourceExhausted
from quercus.server.wire.limits import MAX_PAGE
from quercus.server.wire.models import to_timestamp
from quercus.server.wire.names import make_page_token, page_size, read_token
from quercus.storage import FailedPrecondition, NotFound, TokenRecord
from quercus.v1 import admin_pb2 as pb
from quercus.v1 import admin_pb2_grpc

_log = logging.getLogger("quercus.audit")

TOKENS_PER_S: Final = 2.0
"""Most tokens that one caller may create per second."""

DEFAULT_ENTRIES: Final = 50
"""Entries of the audit log in a response, unless the caller asks for another number."""


class TokenCalls(OnCore, admin_pb2_grpc.AdminServiceServicer):
    """Creates, lists and revokes tokens, and lists the audit log."""

    def __init__(self, core: ServiceCore) -> None:
        super().__init__(core)
        self._made = CallRates(TOKENS_PER_S)

    async def CreateToken(self, request: pb.CreateTokenRequest, context: Any) -> pb.CreateTokenResponse:
        """Create a token, whose secret is only in the response."""
        self._check_needed()
        if request.all_models == bool(request.models):
            given = "both" if request.all_models else "neither"
            raise InvalidInput(
                "models", f"and all_models: {given} given; say all_models, or name at least one model"
            )
        duration_s = _lifetime_s(request)
        caller = current_caller()
        if caller is not None:
            if caller.expires_at is not None and (
                duration_s is None or time.time() + duration_s > caller.expires_at
            ):
                left_s = max(0, int(caller.expires_at - time.time()))
                raise PermissionDenied(
                    f"lifetime: the token would outlive that of {caller.name}, which makes it and expires in {left_s} s"
                )
            try:
                self._made.admit_call(caller.name)
            except ResourceExhausted as error:
                reason = f"{caller.name} makes more than {TOKENS_PER_S:g} tokens a second"
                raise ResourceExhausted(reason, error.retry_s) from None
        secret, record = await self._core.write(
            issue_token,
            self._core.store.access,
            request.caller,
            list(request.roles),
            None if request.all_models else list(request.models),
            duration_s,
        )
        who = "anyone" if caller is None else caller.name
        _log.info(
            "%s made the token %s of %s: %s", who, record.id, record.name, ", ".join(sorted(record.roles))
        )
        return pb.CreateTokenResponse(token=_encode_token(record), secret=secret)

    async def ListTokens(self, request: pb.ListTokensRequest, context: Any) -> pb.ListTokensResponse:
        """Return a page of tokens, oldest first."""
        self._check_needed()
        size, after = page_size(request.page_size), read_token("tokens", request.page_token)
        records = await self._core.read(self._core.store.access.tokens)
        if after:  # tokens are never removed
            place = next((i for i, each in enumerate(records) if each.id == after), len(records) - 1)
            records = records[place + 1 :]
        page = records[:size]
        more = make_page_token("tokens", page[-1].id) if len(records) > size else ""
        return pb.ListTokensResponse(tokens=map(_encode_token, page), next_page_token=more)

    async def RevokeToken(self, request: pb.RevokeTokenRequest, context: Any) -> pb.Token:
        """Revoke a token, but not that of the call itself, so that nobody locks everybody out."""
        self._check_needed()
        found = TOKEN_NAME.fullmatch(request.name)
        if found is None:
            raise InvalidInput(
                "name", f"is {shown(request.name)}, must be tokens/ and the id that ListTokens gives"
            )
        caller = current_caller()
        if caller is not None and caller.token_id == found[1]:
            raise FailedPrecondition(
                f"the token {found[1]} is the one of this call: revoke it with another, or at the store"
            )
        access = self._core.store.access
        await self._core.write(access.revoke_token, found[1])
        records = await self._core.read(access.tokens)
        record = next((each for each in records if each.id == found[1]), None)
        if record is None:  # its row is damaged
            raise NotFound("token", found[1])
        return _encode_token(record)

    async def ListAuditEntries(
        self, request: pb.ListAuditEntriesRequest, context: Any
    ) -> pb.ListAuditEntriesResponse:
        """Return the newest entries of the audit log."""
        if not 0 <= request.newest <= MAX_PAGE:
            raise InvalidInput("newest", f"is {request.newest}, must lie in [0, {MAX_PAGE}]")
        records = await self._core.read(
            self._core.store.access.newest_audit, request.newest or DEFAULT_ENTRIES
        )
        return pb.ListAuditEntriesResponse(
            entries=[
                pb.AuditEntry(
                    time=to_timestamp(each.at),
                    who=each.who,
                    action=each.action,
                    target=each.target,
                    outcome=each.outcome,
                )
                for each in records
            ]
        )

    def _check_needed(self) -> None:
        """Refuse if callers need no tokens: a token that anybody created now would be valid once tokens are needed."""
        if not self._core.config.needs_tokens:
            raise FailedPrecondition(
                "this server asks for no token, so anybody could create one: use quercus tokens at the store, or start "
                "the server with --access tokens"
            )


def _lifetime_s(request: pb.CreateTokenRequest) -> float | None:
    if not request.HasField("lifetime"):
        return None
    return request.lifetime.seconds + request.lifetime.nanos / 1e9


def _encode_token(record: TokenRecord) -> pb.Token:
    return pb.Token(
        name=f"tokens/{record.id}",
        caller=record.name,
        roles=sorted(record.roles),
        all_models=record.models is None,
        models=sorted(record.models or ()),
        create_time=to_timestamp(record.created_at),
        expire_time=None if record.expires_at is None else to_timestamp(record.expires_at),
        revoke_time=None if record.revoked_at is None else to_timestamp(record.revoked_at),
        live=record.is_live(time.time()),
    )
