"""The audit log of administrative calls: caller, method, target and outcome."""

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
"""Most refused calls per second of one caller, or of all strangers, that are logged: they must not fill the disk."""

UNKNOWN_CALLER: Final = "a stranger"
UNREAD_TARGET: Final = "unread"
"""The target of a call whose message is malformed or was not read."""

REFUSED: Final = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED"})


Record = Callable[[str, str, str, str], Awaitable[None]]
"""Stores a line of the audit log: caller, action, target and outcome."""


class AuditLog:
    """The audit log of a server.

    Parameters
    ----------
    record : stores a line.
    needs_tokens : whether callers need tokens.
    """

    def __init__(self, record: Record, needs_tokens: bool) -> None:
        self._record = record
        self._needs_tokens = needs_tokens
        self._refusals = CallRates(REFUSALS_PER_S)

    def name_caller(self, principal: Principal | None, context: Any) -> str:
        """Return the name of a caller; `principal` is None for a caller without a valid token."""
        if principal is not None:
            return principal.name
        return f"{UNKNOWN_CALLER if self._needs_tokens else 'anyone'} at {context.peer()}"

    async def record_call(
        self, who: str, method: str, error: BaseException | None, target: str | None = None
    ) -> None:
        """Record how a call ended, even if its caller has gone meanwhile.

        Parameters
        ----------
        who : name of the caller.
        method : path of the method.
        error : error with which the call ended; None if it succeeded.
        target : object of the call; None if it was refused before its message was read.
        """
        outcome = outcome_of(error)
        if outcome in REFUSED or target is None:
            try:  # without the address, of which a stranger may have many
                self._refusals.admit_call(who.partition(" at ")[0])
            except ResourceExhausted:
                return
        await asyncio.shield(self._write_line(who, method, target or UNREAD_TARGET, outcome))

    async def _write_line(self, who: str, method: str, target: str, outcome: str) -> None:
        action = method.rpartition("/")[2]
        _log.info("%s %s %s: %s", who, action, target, outcome)
        try:
            await self._record(who, action, target, outcome)
        except Exception as error:  # the call has ended already, and a failing store is reported elsewhere
            _log.error("the audit log could not be written: %s", error)


def outcome_of(error: BaseException | None) -> str:
    """Return the name of the status with which a call ended."""
    if error is None:
        return "OK"
    failure = to_failure(error)
    return failure.code.name if failure is not None else type(error).__name__
