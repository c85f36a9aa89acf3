"""AdminService: the state of the server, its caller, and its log level; calls about tokens are in `token_calls`."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Final

from quercus import __version__
from quercus.server.core.damaged_models import MOST_NAMED
from quercus.server.core.service_core import ServiceCore
from quercus.server.gate.access import EVERYBODY, Principal, allowed_methods, current_caller
from quercus.server.growth.supervisor import Supervisor
from quercus.server.machine import resident_bytes
from quercus.server.services.token_calls import TokenCalls
from quercus.server.telemetry import logs
from quercus.server.transfer.stored_contents import UNREADABLE
from quercus.server.wire.models import check_head, to_duration
from quercus.server.wire.reports import stop_text, stopped_above
from quercus.server.workers.board import Board
from quercus.specification.server import LOG_LEVEL
from quercus.storage import NotFound, StoreBusy, StoreError
from quercus.v1 import admin_pb2 as pb

_log = logging.getLogger(__name__)


class AdminService(TokenCalls):
    """Returns the state of the server, and changes its log level."""

    def __init__(self, core: ServiceCore, supervisor: Supervisor, board: Board) -> None:
        super().__init__(core)
        self._supervisor = supervisor
        self._board = board
        self._calls, self._memory, self._waiting = (
            board.tally(name) for name in ("under_way", "memory", "waiting")
        )

    async def GetStatus(self, request: pb.GetStatusRequest, context: Any) -> pb.GetStatusResponse:
        """Return the status of the server, even if the store cannot be used."""
        core, config = self._core, self._core.config
        only_read = f"can only be read: {core.writer.trouble}" if core.writer.trouble else ""
        status = pb.GetStatusResponse(
            version=__version__,
            uptime=to_duration((time.monotonic_ns() - self._board.get("started")) / 1e9),
            store_revision=core.store.revision,
            store_trouble=core.changes.trouble or only_read,
            grower=self._supervisor.status(),
            calls=self._calls.total,
            writes_waiting=core.writer.queue_length + self._waiting.elsewhere,
            memory_bytes=await asyncio.to_thread(resident_bytes) + self._memory.elsewhere,
            tls=bool(config.tls_cert),
            tokens=config.needs_tokens,
            log_level=logs.current_level(),
        )
        principal = current_caller() or EVERYBODY
        if not core.changes.trouble:
            await core.read(_read_status, core, self._supervisor.member, principal, status)
        for name, reason in (self._supervisor.damaged | core.damaged.reasons).items():
            status.damaged[name] = reason
        if principal.models is not None:
            _restrict_status(status, principal)
        return status

    async def GetCaller(self, request: pb.GetCallerRequest, context: Any) -> pb.GetCallerResponse:
        """Return the caller and its permissions."""
        principal = current_caller() or EVERYBODY
        return pb.GetCallerResponse(
            name=principal.name,
            roles=sorted(principal.roles),
            all_models=principal.models is None,
            models=sorted(principal.models or ()),
            needs_token=self._core.config.needs_tokens,
            methods=allowed_methods(principal),
        )

    async def SetLogLevel(self, request: pb.SetLogLevelRequest, context: Any) -> pb.SetLogLevelResponse:
        """Set the log level of all processes of the server."""
        LOG_LEVEL.check(request.level, "level")
        previous = logs.current_level()
        self._board.give_level(request.level)
        self._supervisor.set_log_level(request.level)
        _log.warning("the log level is %s now, it was %s", request.level, previous)
        return pb.SetLogLevelResponse(previous=previous)


_OF_ALL: Final = ("store_bytes", "calls", "writes_waiting", "memory_bytes", "growers")
"""Fields whose numbers include models that a caller may not use."""


def _restrict_status(status: pb.GetStatusResponse, principal: Principal) -> None:
    """Remove everything about models that the caller may not use."""
    status.restricted = True
    for field in _OF_ALL:
        status.ClearField(field)
    grower = status.grower
    if not principal.may_touch(grower.at):
        grower.at = ""
    for names in (grower.learning, grower.waiting):
        names[:] = [name for name in names if principal.may_touch(name)]
    grower.waiting_count = len(grower.waiting)
    for name in [name for name in status.damaged if not principal.may_touch(name)]:
        del status.damaged[name]


def _read_status(core: ServiceCore, own: str, principal: Principal, status: pb.GetStatusResponse) -> None:
    """Add the growers, and the totals of models that the caller may use; note models that cannot be read."""
    store, damaged = core.store, core.damaged
    for each in store.live_growers() if store.may_be_shared else ():
        status.growers.add(place=each.place, models=each.models, own=each.member == own)
    damaged.forget_deleted()
    status.store_bytes = store.size_bytes()
    lag_s = 0.0
    for name in store.model_names():
        try:
            record = store.get_model(name)
            check_head(record)
        except NotFound:
            continue
        except (StoreError, *UNREADABLE) as error:
            if not isinstance(error, StoreBusy):
                damaged.note_unreadable(name, error)
            continue
        if principal.may_touch(name):
            if len(status.stopped) < MOST_NAMED and (reason := stop_text(stopped_above(record.report))):
                status.stopped[name] = reason
            status.models += 1
            lag_s = max(lag_s, record.lag_s)
    status.grower.lag.CopyFrom(to_duration(lag_s))
