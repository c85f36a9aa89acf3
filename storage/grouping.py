"""Calls of several threads about one model in one transaction, as a group commit of pushes is.

Whoever writes holds the model until its transaction is on disk, so calls that each had their own would wait for as many
commits. Here the first one makes its transaction, and all that come meanwhile share the next. One thread that has
several calls to make hands them over together (`GroupedCalls.run_all`).
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Generic, TypeVar, cast

from sqlalchemy import Connection

from quercus.belief.errors import InvalidInput
from quercus.storage import deferred_writes
from quercus.storage.clocks import Clock, StoreClock
from quercus.storage.engine import Database
from quercus.storage.errors import BeyondLog, FailedPrecondition, NotFound, StoreError
from quercus.storage.queries import shared_view
from quercus.storage.queries.claims import LeaseClaim
from quercus.storage.queries.shared_view import SharedView

T = TypeVar("T")
AT_ONCE: Final = 64
"""Calls of one transaction at most."""

GATHER_SHARE: Final = 0.25
"""Longest wait of a small group for more calls, as a share of the time of the previous transaction."""
GATHER_S: Final = 0.05
"""Longest wait of any group, in seconds."""

REFUSALS: Final = (BeyondLog, FailedPrecondition, InvalidInput, NotFound)
"""Errors that a call raises before it writes anything: the other calls of its transaction go on."""


@dataclass(frozen=True, slots=True)
class GroupWork(Generic[T]):
    """The work of a call in a transaction that others share.

    Attributes
    ----------
    model : its name.
    alone : does it, reading all it needs. It may raise one of `REFUSALS` before it writes.
    together : the same, by what was read for the group; None where that does not suffice, and nothing was written.
    asking : the labeller who asks for queries, and for how many; or
    claim : of which lease something is said.
    reads_alone : what is read for the group does not suffice; those behind it wait for what it does.
    """

    model: str
    alone: Callable[[Connection], T]
    together: Callable[[Connection, SharedView], T | None]
    asking: tuple[str, int] | None = None
    claim: LeaseClaim | None = None
    reads_alone: bool = False


class _Call:
    """A call that waits for its turn: until it is done, or is to make the transaction of a group."""

    __slots__ = ("error", "group", "result", "turn", "work")

    def __init__(self, work: GroupWork[Any], turn: threading.Event | None = None) -> None:
        self.work = work
        self.turn = turn
        self.group: list[_Call] = []
        self.result: object = None
        self.error: BaseException | None = None

    def run(self, connection: Connection) -> None:
        """Do the work within a transaction; remember why it was refused."""
        try:
            self.result = self.work.alone(connection)
        except REFUSALS as error:
            self.error = error

    def run_together(self, connection: Connection, seen: SharedView) -> bool:
        """Do the work by what was read for the group; False: it must `run`."""
        try:
            self.result = self.work.together(connection, seen)
        except REFUSALS as error:
            self.error = error
            return True
        return self.result is not None

    def let_go(self) -> None:
        """Wake the thread that waits for it, if one does."""
        if self.turn is not None:
            self.turn.set()

    def outcome(self) -> Any:
        """Return the result, or raise."""
        if self.error is not None:
            raise self.error
        return self.result


class _Queue:
    """The calls that wait while another makes a transaction about the same model.

    Parameters
    ----------
    lock : of all queues.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self._arrived = threading.Condition(lock)
        self.waiting: list[_Call] = []
        self._enough = AT_ONCE
        self._last = 0  # calls of the last transaction
        self._until = 0.0  # for how long the next one may wait for them
        self.is_busy = False
        """Somebody makes a transaction."""

    def add(self, call: _Call) -> None:
        """Wait in it; the lock is held."""
        self.waiting.append(call)
        if len(self.waiting) >= self._enough:
            self._arrived.notify()

    def note_done(self, calls: int, took_s: float) -> None:
        """A transaction ended; the lock is held."""
        self._last, self._until = calls, time.monotonic() + min(GATHER_SHARE * took_s, GATHER_S)

    def take(self, most: int) -> list[_Call]:
        """Take the first ones; the lock is held."""
        taken, self.waiting = self.waiting[:most], self.waiting[most:]
        return taken

    def gather(self, leader: _Call) -> None:
        """Wait a moment where the last group was much larger: most of its callers are about to call again.

        Else large groups and small ones would take turns, and every second transaction would be made for a few calls.
        """
        with self._arrived:
            self._enough = self._last - len(leader.group)
            left_s = self._until - time.monotonic()
            if self._enough > len(leader.group) and left_s > 0:
                self._arrived.wait_for(lambda: len(self.waiting) >= self._enough, left_s)
            self._enough = AT_ONCE
            leader.group += self.take(AT_ONCE - len(leader.group))


class GroupedCalls:
    """Runs calls, those about one model one after the other; safe for threads.

    Parameters
    ----------
    database : whose transactions they share.
    clocks : asked when a model is held.
    """

    def __init__(self, database: Database, clocks: StoreClock) -> None:
        self._database = database
        self._clocks = clocks
        self._gathers = not database.dialect.one_writer
        self._lock = threading.Lock()
        self._queues: dict[str, _Queue] = {}  # by model; a model without entry is free

    def run_all(self, works: Sequence[GroupWork[Any]]) -> list[Any]:
        """Do the works of one thread, those about one model in order and in one transaction, `AT_ONCE` at most.

        Returns
        -------
        list
            What each returns, or the exception that `run` would have raised.
        """
        calls = [_Call(work) for work in works]
        by_model: defaultdict[str, list[_Call]] = defaultdict(list)
        for call in calls:
            by_model[call.work.model].append(call)
        for model, group in by_model.items():
            for first in range(0, len(group), AT_ONCE):
                self._commit(model, group[first : first + AT_ONCE])
        return [call.result if call.error is None else call.error for call in calls]

    def run(self, work: GroupWork[T]) -> T:
        """Do `work` in a transaction, and return what it returns once that is committed.

        Any exception but `REFUSALS` undoes the transaction. Where others shared it, every call is then made alone,
        unless the store itself failed: that fails for all.
        """
        turn = threading.Event()
        call, model = _Call(work, turn), work.model
        with self._lock:
            queue = self._queues.setdefault(model, _Queue(self._lock))
            if queue.is_busy:
                queue.add(call)
            else:
                queue.is_busy, call.group = True, [call]
        if not call.group:
            turn.wait()
        if call.group:
            if self._gathers:
                queue.gather(call)
            started = time.monotonic()
            try:
                self._commit(model, call.group)
            finally:
                self._pass_on(model, call, time.monotonic() - started)
        return cast(T, call.outcome())

    def _commit(self, model: str, group: list[_Call]) -> None:
        try:
            with self._database.write() as connection:
                for part in _parts(group):
                    deferred_writes.send(connection)
                    for call in self._run_together(connection, model, part):
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
                self._commit(model, [call])

    def _run_together(self, connection: Connection, model: str, group: list[_Call]) -> list[_Call]:
        """Read once for all calls, and do those for which that suffices; the others are left."""
        if len(group) == 1 or group[0].work.reads_alone or not deferred_writes.takes_several(connection):
            return group
        wanted: Counter[str] = Counter()
        for call in group:
            if call.work.asking is not None and call.work.asking[1] > 0:
                wanted[call.work.asking[0]] += call.work.asking[1]
        claims = [call.work.claim for call in group if call.work.claim is not None]
        try:
            seen = shared_view.look(connection, model, wanted, claims, Clock(self._clocks, connection))
        except NotFound:
            return group  # each is told so
        return [call for call in group if not call.run_together(connection, seen)]

    def _pass_on(self, model: str, leader: _Call, took_s: float) -> None:
        """Let the others of the group go, and the next group begin."""
        with self._lock:
            queue = self._queues[model]
            queue.note_done(len(leader.group), took_s)
            following = queue.take(AT_ONCE)
            queue.is_busy = bool(following)
            if not following and len(leader.group) == 1:
                del self._queues[model]
        if following:
            following[0].group = following
            following[0].let_go()
        for call in leader.group:
            call.let_go()


def _parts(group: Iterable[_Call]) -> list[list[_Call]]:
    """Split a group where calls that read alone begin and end, in order."""
    return [list(part) for _, part in groupby(group, lambda call: call.work.reads_alone)]
