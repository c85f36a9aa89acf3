"""Calls of several threads about one model in one transaction, as a group commit of pushes is.

Whoever writes holds the model until its transaction is on disk, so calls that each had their own would wait for as many
commits. Here the first one makes its transaction, and all that come meanwhile share the next.
"""

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from sqlalchemy import Connection

from quercus.belief.errors import InvalidInput
from quercus.storage import deferred_writes
from quercus.storage.engine import Database
from quercus.storage.errors import BeyondLog, FailedPrecondition, NotFound, StoreError

T = TypeVar("T")
AT_ONCE: Final = 64
"""Calls of one transaction at most."""

REFUSALS: Final = (BeyondLog, FailedPrecondition, InvalidInput, NotFound)
"""What a call raises before it writes anything: the others of its transaction go on."""


class _Call:
    """A call that waits for its turn: until it is done, or is to make the transaction of a group."""

    __slots__ = ("error", "group", "result", "turn", "work")

    def __init__(self, work: Callable[[Connection], object]) -> None:
        self.work = work
        self.turn = threading.Event()
        self.group: list[_Call] = []
        self.result: object = None
        self.error: BaseException | None = None

    def run(self, connection: Connection) -> None:
        """Do the work within a transaction; remember why it was refused."""
        try:
            self.result = self.work(connection)
        except REFUSALS as error:
            self.error = error

    def outcome(self) -> Any:
        """Return the result, or raise."""
        if self.error is not None:
            raise self.error
        return self.result


class GroupedCalls:
    """Runs calls, those about one model one after the other; safe for threads.

    Parameters
    ----------
    database : whose transactions they share.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._waiting: dict[str, list[_Call]] = {}  # by model; a model without entry is free

    def run(self, model: str, work: Callable[[Connection], T]) -> T:
        """Do `work` in a transaction, and return what it returns once that is committed.

        It may raise one of `REFUSALS` before it writes; any other exception undoes the transaction. Where others shared
        it, every call is then made alone, unless the store itself failed: that fails for all.
        """
        call = _Call(work)
        with self._lock:
            waiting = self._waiting.get(model)
            if waiting is None:
                self._waiting[model] = []
                call.group = [call]
            else:
                waiting.append(call)
        if not call.group:
            call.turn.wait()
        if call.group:
            try:
                self._commit(call.group)
            finally:
                self._pass_on(model, call)
        return cast(T, call.outcome())

    def _commit(self, group: list[_Call]) -> None:
        try:
            with self._database.write() as connection:
                for call in group:
                    deferred_writes.send(connection)  # the next call sees what those before it wrote
                    call.run(connection)
        except StoreError as error:
            for call in group:
                call.error = error
        except Exception as error:
            if len(group) == 1:
                group[0].error = error
                return
            for call in group:
                call.error = None
                self._commit([call])

    def _pass_on(self, model: str, leader: _Call) -> None:
        """Let the others of the group go, and the next group begin."""
        with self._lock:
            waiting = self._waiting[model]
            if waiting:
                following, self._waiting[model] = waiting[:AT_ONCE], waiting[AT_ONCE:]
            else:
                following = []
                del self._waiting[model]
        if following:
            following[0].group = following
            following[0].turn.set()
        for call in leader.group:
            call.turn.set()
