"""The audit log: who called what that administers the server, and how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from quercus.server.gate.access import Principal
from quercus.server.gate.throttle import CallRates
from quercus.server.wire.errors import ResourceExhausted, to_failure

_log = logging.getLogger("quercus.audit")

REFUSALS_PER_S: Final = 1.0
"""Refused calls per second of one caller, or of all strangers, in the audit log: they must not fill the disk."""

UNKNOWN_CALLER: Final = "a stranger"
UNREAD_TARGET: Final = "unread"
"""The target of a call whose message is malformed or was not read."""

REFUSED: Final = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED"})


Record = Callable[[str, str, str, str], Awaitable[None]]
"""Stores a line of the audit log: who, action, target and outcome."""


class AuditLog:
    """The audit log of a server.

    Parameters
    ----------
    record : stores a line.
    needs_tokens : whether callers show tokens.
    """

    def __init__(self, record: Record, needs_tokens: bool) -> None:
        self._record = record
        self._needs_tokens = needs_tokens
        self._refusals = CallRates(REFUSALS_PER_S)

    def name_caller(self, principal: Principal | None, context: Any) -> str:
        """Return the name of a caller; None: one without a token that counts."""
        if principal is not None:
            return principal.name
        return f"{UNKNOWN_CALLER if self._needs_tokens else 'anyone'} at {context.peer()}"

    async def record_call(
        self, who: str, method: str, error: BaseException | None, target: str | None = None
    ) -> None:
        """Record how a call ended, also if its caller has gone meanwhile.

        Parameters
        ----------
        who : name of the caller.
        method : path of the method.
        error : with what the call ended; None: it succeeded.
        target : what it was about; None: it was refused before its message was read.
        """
        outcome = outcome_of(error)
        if outcome in REFUSED or target is None:
            try:  # addresses are as many as a stranger likes
                self._refusals.admit_call(who.partition(" at ")[0])
            except ResourceExhausted:
                return
        await asyncio.shield(self._write_line(who, method, target or UNREAD_TARGET, outcome))

    async def _write_line(self, who: str, method: str, target: str, outcome: str) -> None:
        action = method.rpartition("/")[2]
        _log.info("%s %s %s: %s", who, action, target, outcome)
        try:
            await self._record(who, action, target, outcome)
        except Exception as error:  # the call itself has ended; a failing store is reported elsewhere
            _log.error("the audit log could not be written: %s", error)


def outcome_of(error: BaseException | None) -> str:
    """Return how a call ended: the name of its status."""
    if error is None:
        return "OK"
    failure = to_failure(error)
    return failure.code.name if failure is not None else type(error).__name__
